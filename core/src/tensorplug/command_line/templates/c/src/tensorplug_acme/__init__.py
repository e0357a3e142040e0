"""The tensorplug backend acme; its hooks are in ``plugin``."""

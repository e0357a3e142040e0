"""The tensorplug backend acme; its hooks stand in ``plugin``."""

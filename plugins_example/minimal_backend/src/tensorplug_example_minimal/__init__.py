"""The tensorplug backend minimal; its hooks are in ``plugin``."""

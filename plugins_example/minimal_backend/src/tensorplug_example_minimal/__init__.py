"""The tensorplug backend minimal; its hooks stand in ``plugin``."""

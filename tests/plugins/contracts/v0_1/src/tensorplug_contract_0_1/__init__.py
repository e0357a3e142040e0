"""The smallest complete backend of tensorplug; its hooks stand in ``plugin``."""

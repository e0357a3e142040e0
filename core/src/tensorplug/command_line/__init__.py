"""The commands of ``python -m tensorplug``."""

"""The command ``tensorplug``, also ``python -m tensorplug``."""

"""A backend of tensorplug on XLA, by way of JAX; its hooks are in ``plugin``."""

"""Kernels of each element, from others of the kind."""

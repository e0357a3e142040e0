"""Kernels for other distributions' backends."""

"""Kernels from primitives, by family."""

"""Kernels, in one module per backend, which is imported when that backend is opened."""

"""Kernels, one module per backend; each is imported only when that backend is opened."""

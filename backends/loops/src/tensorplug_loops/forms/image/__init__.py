"""Kernels of images."""

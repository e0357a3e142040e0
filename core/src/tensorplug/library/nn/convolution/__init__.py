"""Sliding windows: convolution, pooling, morphology."""

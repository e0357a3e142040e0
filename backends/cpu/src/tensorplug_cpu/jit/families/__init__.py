"""Native loops of kernels, one module per family."""

"""Windows that slide: convolution, pooling, morphology."""

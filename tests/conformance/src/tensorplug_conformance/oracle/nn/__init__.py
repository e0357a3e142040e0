"""References for neural networks, by family."""

"""Cases of neural networks, by family."""

"""Rules of neural networks."""

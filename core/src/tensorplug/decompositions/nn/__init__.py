"""Decompositions of neural networks."""

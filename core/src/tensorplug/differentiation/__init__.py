"""Gradients of Python functions: with the tape on forward, along the tape back."""

"""Loops that several families share: over windows, products and strips, and calls of them."""

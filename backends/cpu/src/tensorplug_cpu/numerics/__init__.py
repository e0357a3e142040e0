"""Algorithms on arrays that NumPy lacks."""

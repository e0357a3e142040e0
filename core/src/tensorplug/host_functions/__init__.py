"""Functions that no ops can express, on NumPy arrays."""

"""Functions on NumPy arrays that ops cannot express."""

"""Indexing: gather, scatter, slices, and subscripts as NumPy has them."""

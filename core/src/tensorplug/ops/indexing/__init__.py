"""Indexing: gather, scatter, slices, and subscripts by NumPy's rules."""

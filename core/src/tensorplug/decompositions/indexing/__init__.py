"""Decompositions of indexing."""

"""Mapping functions over axes: vmap."""

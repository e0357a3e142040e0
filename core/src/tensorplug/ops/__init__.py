"""Ops by family: kernel specs and the public functions that call them."""

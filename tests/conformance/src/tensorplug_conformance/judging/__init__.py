"""Judges a callable by the cases, the oracle and the bounds of a kernel, without a backend."""

"""Traces: the kernel calls of a function, and passes over them."""

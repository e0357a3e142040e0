"""Kernels by family; each module holds one inert table called ``kernels``."""

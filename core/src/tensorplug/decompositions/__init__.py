"""Kernels written with other ops, for backends that lack them, by family.

They read no tensor's data and use, in the end, only the primitive kernels.
"""

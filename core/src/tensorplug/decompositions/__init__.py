"""Kernels written with other ops, for backends that lack them, by family.

They read no tensor's data. Expanded fully, they use only the primitive kernels.
"""

"""By family: which group a kernel is.

A module holds the kernels of the core's family of its name, in a table called ``forms``.
"""

"""Gradient rules by family: one function per differentiable input, written with ops.

A rule reads like its formula. The tape sums over broadcast axes and checks shapes and dtypes.
"""

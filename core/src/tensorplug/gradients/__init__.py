"""Gradient rules by family: one function per differentiable input, written with ops.

A rule reads like its formula. Summing over broadcast axes is the tape's business, and so is
checking shape and dtype.
"""

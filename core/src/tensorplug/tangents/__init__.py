"""Tangent rules by family: how the derivative along a direction passes a kernel.

What follows from the structure is stated in a line: that a kernel is linear in inputs, or
elementwise. A kernel without an entry is elementwise if its spec has a scalar expression; else its
gradient rule is transposed.
"""

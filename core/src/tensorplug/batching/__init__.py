"""Batching rules by family: how kernels run on all examples of ``vmap`` at once.

A rule is written with ops. Families whose kernels batch through their decompositions have none.
"""

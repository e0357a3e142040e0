"""Rules by family: how derivatives pass a kernel backward and forward, and how ``vmap`` runs it.

A rule is written with ops, and reads like its formula. The tape sums over broadcast axes and
checks shapes and dtypes. What follows from a kernel's structure is stated in a line.
"""

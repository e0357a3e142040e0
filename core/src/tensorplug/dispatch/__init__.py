"""Calling a kernel: tensors, contexts, devices with their plan caches, and ``dispatch``."""

"""Loops compiled by LLVM, through llvmlite (the extra ``jit``)."""

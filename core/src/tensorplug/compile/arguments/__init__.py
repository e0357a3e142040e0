"""The arguments of a compiled function: signatures, Python floats, donated tensors."""

"""References for the conformance cases. None uses the formulas of the kernels."""

"""Linear algebra: factorizations, norms, and functions of matrices."""

"""Groups of calls as kernels: rows and columns of elementwise expressions and reductions."""

"""What one call of a kernel needs: the Tensor record, the context, and ``dispatch`` itself."""

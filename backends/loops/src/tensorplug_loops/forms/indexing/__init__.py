"""Reading and writing at indices, and slices."""

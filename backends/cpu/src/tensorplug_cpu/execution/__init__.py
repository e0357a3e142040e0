"""Running NumPy: threads, blocks, warnings, and where results go."""

"""References for indexing, by family."""

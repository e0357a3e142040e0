"""Cases of indexing, by family."""

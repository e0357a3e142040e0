"""Rules of indexing."""

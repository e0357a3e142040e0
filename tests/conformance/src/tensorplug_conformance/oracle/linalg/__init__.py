"""References for linear algebra, by family."""

"""Cases of linear algebra, by family."""

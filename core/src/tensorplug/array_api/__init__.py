"""The array API standard's inspection functions."""

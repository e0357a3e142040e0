"""What the array API standard wants beside the functions."""

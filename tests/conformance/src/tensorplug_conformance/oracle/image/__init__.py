"""References for images, by family."""

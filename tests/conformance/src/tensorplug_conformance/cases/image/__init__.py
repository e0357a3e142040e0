"""Cases of images, by family."""

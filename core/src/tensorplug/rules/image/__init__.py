"""Rules of images."""

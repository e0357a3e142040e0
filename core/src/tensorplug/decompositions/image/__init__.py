"""Decompositions of images."""

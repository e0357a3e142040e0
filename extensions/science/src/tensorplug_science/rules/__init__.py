"""Gradient rules, by family."""

"""Explaining calls without running them."""

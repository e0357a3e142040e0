"""Fusion: calls that a backend runs as one."""

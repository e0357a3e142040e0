"""Compiled functions: traced once per signature, then run as a flat program of kernel calls."""

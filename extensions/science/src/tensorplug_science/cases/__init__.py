"""Conformance cases, by family. Only the suite imports them."""

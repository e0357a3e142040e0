"""Signed reports: who says what, of which installed files, and when."""

"""Compiled programs: one trace of a function, its passes, and how it runs."""

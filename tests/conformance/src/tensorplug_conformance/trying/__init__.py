"""Trials of rows: a session, the calls of each case, and what must hold for them."""

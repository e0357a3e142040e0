"""Runs: worker processes, their supervisor, the journal, the levels in order."""

"""Backward passes of tapes as programs."""

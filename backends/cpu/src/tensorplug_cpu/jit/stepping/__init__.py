"""Loops of compiled functions that run natively: all steps in one call."""

"""Helpers for the tests of those who write backends, ops and gradients."""

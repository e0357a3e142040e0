"""Helpers for the tests of those who write backends, ops and gradients."""

from __future__ import annotations

from tensorplug.testing.check_grads import check_grads
from tensorplug.testing.isolation import isolated_engine

__all__ = ["check_grads", "isolated_engine"]

"""Walks along rows, and folds of their elements."""

from __future__ import annotations

"""Sorting, and searches for extremes."""

from __future__ import annotations

"""Copies of elements without computing."""

from __future__ import annotations

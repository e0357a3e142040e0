"""Fourier transforms of rows."""

from __future__ import annotations

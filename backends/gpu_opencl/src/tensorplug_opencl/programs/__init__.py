"""Programs: built once, kept on disk, and their kernel objects."""

from __future__ import annotations

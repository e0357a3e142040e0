"""What is known of this machine and its devices before one is opened."""

from __future__ import annotations

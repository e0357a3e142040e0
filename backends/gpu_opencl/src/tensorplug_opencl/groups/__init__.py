"""Groups of a program's calls, each as one kernel."""

from __future__ import annotations

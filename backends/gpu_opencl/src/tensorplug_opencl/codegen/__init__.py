"""Program texts: C types, templates, statements, formulas, and the launches that most kernels make of them."""

from __future__ import annotations

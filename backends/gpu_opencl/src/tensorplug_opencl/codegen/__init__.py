"""Program texts: C types, templates, statements, formulas; and the launches made of them."""

from __future__ import annotations

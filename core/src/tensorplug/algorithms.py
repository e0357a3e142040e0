"""What several backends compute in the same way; it may change with a minor version.

``tensorplug.plugin`` is the contract; here are formulas, constants and geometry. A plugin that
uses them says in its dependencies which minor version of tensorplug it needs.
"""

from __future__ import annotations

from tensorplug.ops.nn import attention_scores
from tensorplug.ops.order import highest, in_range, lowest
from tensorplug.ops.special import gamma_formulas, incomplete_gamma_formulas
from tensorplug.ops.special.evaluation import polynomial

__all__ = [
    "attention_scores",
    "gamma_formulas",
    "highest",
    "in_range",
    "incomplete_gamma_formulas",
    "lowest",
    "polynomial",
]

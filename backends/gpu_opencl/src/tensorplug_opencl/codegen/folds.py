"""Sums, whose texts name the type of an element ``A``, the sum ``acc``, and an element ``v``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tensorplug.plugin import DType


class Fold(NamedTuple):
    """A sum: its declaration, the statement that takes an element, and its result."""

    state: str
    step: str
    result: str


def sum_fold(dtype: DType) -> Fold:
    """Return the fold that adds up, in a dtype in which sums are stored.

    A sum of floats keeps the rounding error of each addition (Knuth's error-free sum), so that
    its error is about one rounding, whatever its length. An overflow or an infinity makes that
    error NaN; then the plain sum is the result.
    """
    if dtype.kind != "float":
        return Fold("A acc = (A)(0);", "acc = (acc + v);", "acc")
    return Fold(
        "A acc = (A)(0), acc_low = (A)(0);",
        "{ const A t = acc + v; const A z = t - acc; "
        "acc_low += (acc - (t - z)) + (v - z); acc = t; }",
        # The difference is 0 only for finite numbers; drivers would call a function for isfinite.
        "(acc_low - acc_low == 0 ? acc + acc_low : acc)",
    )

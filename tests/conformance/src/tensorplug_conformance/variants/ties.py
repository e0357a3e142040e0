"""Numbers halfway between two that a narrower dtype has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.floats import finfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus


def ties(corpus: Corpus) -> Iterator[Case]:
    """Yield numbers half way between two floats of fewer digits: the even one is right."""
    for target in sorted(dt.FLOATING, key=lambda dtype: dtype.name):
        if target.significand < corpus.dtype.significand:
            even = 1 + target.eps * np.array([0, 2, 2, 4, 4, -1, 0])
            ties = 1 + target.eps * np.array([0.5, 1.5, 2.5, 3.5, 4.5, -0.75, -0.25])
            inputs = (corpus.of([*ties, *-ties]),)
            expected = (np.array([*even, *-even], np.longdouble),)
            name = target.name
            yield Case(f"ties to {name}", inputs, {"dtype": name}, expected=expected)
            if corpus.dtype is not dt.float64:
                continue  # there is no float between, to which it could be rounded first
            # Just beside a tie, at a distance that is lost on the way through another float.
            beside = np.array([1 + target.eps * (n + 0.5) for n in range(4)])
            near = corpus.of([*(beside + 2.0**-45), *(beside - 2.0**-45)])
            right = [1 + target.eps * n for n in (1, 2, 3, 4, 0, 1, 2, 3)]
            numbers = np.array(right, np.longdouble)
            both = (np.concatenate([numbers, -numbers]),)
            inputs = (np.concatenate([near, -near]),)
            yield Case(f"beside ties to {name}", inputs, {"dtype": name}, expected=both)


def whole_ties(corpus: Corpus) -> Iterator[Case]:
    """Yield integers half way between two floats, and their neighbours.

    As another float, which holds more digits, some of them would be ties. That rounds twice.
    """
    bits = 8 * corpus.dtype.itemsize - (corpus.dtype in dt.SIGNED)
    for target in sorted(dt.FLOATING, key=lambda dtype: dtype.name):
        digits = target.significand
        highest = min(bits - 1, int(finfo(target.numpy).maxexp) - 2)
        for exponent in sorted({highest, digits + 1}):
            if not digits < exponent <= highest:
                continue
            half = 1 << (exponent - digits)
            values = [(1 << exponent) + half * odd + by for odd in (1, 3) for by in (-1, 0, 1)]
            if corpus.dtype in dt.SIGNED:
                values += [-value for value in values]
            inputs = (np.array(values, dtype=corpus.dtype.numpy),)
            right = [_to_even(value, 2 * half) for value in values]
            expected = (np.array(right, dtype=object).astype(np.longdouble),)
            name = target.name
            said = f"about ties at 2**{exponent} to {name}"
            yield Case(said, inputs, {"dtype": name}, expected=expected)


def _to_even(value: int, unit: int) -> int:
    """Return the multiple of ``unit`` nearest to ``value``, of two the even one."""
    below, rest = divmod(value, unit)
    return (below + (2 * rest > unit or (2 * rest == unit and below % 2 == 1))) * unit

"""References for bits: Python's integers, which have any number of bits."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.corpus import wide, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array


def _bits(function: Callable[..., int], inputs: int) -> Callable[..., Array]:
    elementwise = np.frompyfunc(function, inputs, 1)

    def reference(*operands: Array) -> Array:
        dtype = operands[0].dtype
        exact = np.asarray(elementwise(*map(wide, operands)))
        if dtype.kind == "b":
            return np.asarray(exact % 2 == 1)
        return wrap(exact, dtype)

    return reference


def _shift(function: Callable[[int, int], int]) -> Callable[[Array, Array], Array]:
    """Return a reference in which shifts by invalid counts lose all bits but the sign."""

    def reference(a: Array, b: Array) -> Array:
        most = 8 * a.dtype.itemsize

        def shifted(x: Any, count: Any) -> int:
            return function(int(x), int(count) if 0 <= count < most else most)

        return wrap(np.asarray(np.frompyfunc(shifted, 2, 1)(wide(a), wide(b))), a.dtype)

    return reference


bitwise_and = _bits(operator.and_, 2)
bitwise_or = _bits(operator.or_, 2)
bitwise_xor = _bits(operator.xor, 2)
invert = _bits(operator.invert, 1)
left_shift = _shift(operator.lshift)
right_shift = _shift(operator.rshift)

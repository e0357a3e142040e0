"""What the formulas of special functions share.

A formula is written once, for NumPy's arrays and for tensors alike. ``xp`` holds the functions
that it calls (``abs``, ``exp``, ``floor``, ``log``, ``sin``, ``cos``, ``sqrt``, ``where``): NumPy
itself, or ours. ``where`` chooses between branches that are all computed, and ``piecewise``
between costly ones, which NumPy only computes where they are chosen; what a branch gives outside
its interval does not matter. The dtype is that of the argument, float32 or float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FEW: Final = 1 << 14  # numbers that fit a cache


def piecewise(
    xp: Any,
    choices: Sequence[tuple[Any, Callable[..., Any]]],
    otherwise: Callable[..., Any],
    *operands: Any,
) -> Any:
    """Return for each element the first function whose condition holds, else ``otherwise``.

    The functions take ``xp`` and the operands.
    """
    if xp is not np:
        result = otherwise(xp, *operands)
        for condition, function in reversed(choices):
            result = xp.where(condition, function(xp, *operands), result)
        return result
    arrays = np.broadcast_arrays(*operands)
    left = np.ones(arrays[0].shape, bool)
    result = np.empty_like(arrays[0])
    for condition, function in (*choices, (True, otherwise)):
        chosen = left & condition
        if chosen.any():
            result[chosen] = function(xp, *(array[chosen] for array in arrays))
        left &= ~chosen
    return result


def are_few(xp: Any, x: Any, count: int) -> bool:
    """Return whether ``count`` terms of a sum for each element are best computed at once.

    They lie along an axis before all others. A call on a few elements takes longer than its
    arithmetic, and the program of a decomposition has far fewer calls.
    """
    return bool(count * x.size <= _FEW if xp is np else xp.are_few(x, count))


def column(xp: Any, numbers: Any, like: Any) -> Any:
    """Return numbers along an axis before those of ``like``, in its dtype."""
    return xp.asarray(np.reshape(numbers, (-1,) + (1,) * like.ndim), dtype=like.dtype)


def distance_to_whole(xp: Any, size: Any) -> Any:
    """Return ``size`` >= 0 less the nearest whole number: exact, in (-0.5, 0.5]."""
    part = size - xp.floor(size)
    return xp.where(part > 0.5, part - 1.0, part)

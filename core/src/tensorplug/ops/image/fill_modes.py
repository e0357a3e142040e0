"""Values beyond the edges of an image, as in tf.raw_ops.ImageProjectiveTransformV3.

The functions take places along an axis, as tensors or arrays. ``Arithmetic`` holds the two
functions that have no operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Numbers = Any  # a tensor, or a NumPy array


class Arithmetic(NamedTuple):
    """``floor(x)`` and ``where(condition, t, e)``."""

    floor: Callable[[Numbers], Numbers]
    where: Callable[[Numbers, Numbers, Numbers], Numbers]


def mapped(at: Numbers, length: int, mode: str, by: Arithmetic) -> Numbers:
    """Map finite places ``at`` to places on the ``length`` pixels of an axis.

    With "constant" the results may still lie outside, by at most two pixels.
    """
    if mode == "constant":
        return _clip(at, -2, length + 1, by)
    return _clip(_repeat(at, length, mode, by), 0, length - 1, by)


def slope(at: Numbers, length: int, mode: str, by: Arithmetic) -> Numbers:
    """Return the derivative of ``mapped``, which is 1, -1 or 0."""
    if mode == "constant":
        return at * 0 + 1
    if length == 1:
        return at * 0
    position = _repeat(at, length, mode, by)
    flat = by.where(position < 0, 0, by.where(position > length - 1, 0, at * 0 + 1))
    if mode != "reflect":
        return flat
    half = by.floor(at / length) / 2
    return by.where(half > by.floor(half), -flat, flat)


def _repeat(at: Numbers, length: int, mode: str, by: Arithmetic) -> Numbers:
    """Return the places before clipping to the edges."""
    if mode == "nearest":
        return at
    if length == 1:
        return at * 0
    if mode == "reflect":  # abcd is dcba|abcd|dcba
        period = 2 * length
        low = at + period * by.floor(-at / period)
        low = by.where(low < -length, low + period, -low - 1)
        high = at - period * by.floor(at / period)
        high = by.where(high >= length, period - high - 1, high)
    else:  # wrap: abcd is abcd|abcd|abcd, and places between d and a count as d
        low = at + length * (by.floor(-at / (length - 1)) + 1)
        high = at - length * by.floor(at / (length - 1))
    return by.where(at < 0, low, by.where(at > length - 1, high, at))


def _clip(at: Numbers, low: float, high: float, by: Arithmetic) -> Numbers:
    return by.where(at < low, low, by.where(at > high, high, at))

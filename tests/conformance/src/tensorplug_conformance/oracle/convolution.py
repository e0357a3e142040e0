"""References for convolution: one multiplication after another, no im2col."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.corpus import wide
from tensorplug_conformance.oracle.reduction import epsilon, levels
from tensorplug_conformance.oracle.windows import Axis, both, taps
from tensorplug_conformance.tables import Bounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.tables import Array


def conv2d(x: Array, filter: Array, **options: Any) -> Bounded:
    """``out[n, p, q, o] = sum x[n, p*s + i*d, q*s + j*d, c] * filter[i, j, c, o]``."""
    nhwc, kernel = _nhwc(wide(x), options), wide(filter)
    height, width = _axes(nhwc.shape, filter.shape, options)
    out = np.zeros((nhwc.shape[0], height.out, width.out, filter.shape[3]), dtype=np.longdouble)
    size = out.copy()
    for i, j, (p, row), (q, column) in taps(height, width):
        taken = nhwc[:, row, column, :]
        out[:, p, q, :] += taken @ kernel[i, j]
        size[:, p, q, :] += np.abs(taken) @ np.abs(kernel[i, j])
    n = filter.shape[0] * filter.shape[1] * filter.shape[2]
    return _bounded(out, size, n, x, options)


def conv2d_backprop_input(
    dy: Array, filter: Array, *, input_shape: Sequence[int], **options: Any
) -> Bounded:
    """The transpose in x: every product goes back to where its x came from."""
    pulled, kernel = _nhwc(wide(dy), options), wide(filter)
    shape = _nhwc_shape(tuple(input_shape), options)
    height, width = _axes(shape, filter.shape, options)
    out = np.zeros(shape, dtype=np.longdouble)
    size = out.copy()
    for i, j, (p, row), (q, column) in taps(height, width):
        # One tap touches no place twice, so adding through an index loses nothing.
        out[:, row, column, :] += pulled[:, p, q, :] @ kernel[i, j].T
        size[:, row, column, :] += np.abs(pulled[:, p, q, :]) @ np.abs(kernel[i, j].T)
    n = filter.shape[0] * filter.shape[1] * filter.shape[3]
    return _bounded(out, size, n, dy, options)


def conv2d_backprop_filter(
    x: Array, dy: Array, *, filter_shape: Sequence[int], **options: Any
) -> Bounded:
    """The transpose in the filter."""
    nhwc, pulled = _nhwc(wide(x), options), _nhwc(wide(dy), options)
    height, width = _axes(nhwc.shape, tuple(filter_shape), options)
    out = np.zeros(tuple(filter_shape), dtype=np.longdouble)
    size = out.copy()
    for i, j, (p, row), (q, column) in taps(height, width):
        taken, dys = nhwc[:, row, column, :], pulled[:, p, q, :]
        out[i, j] += np.einsum("npqc,npqo->co", taken, dys)
        size[i, j] += np.einsum("npqc,npqo->co", np.abs(taken), np.abs(dys))
    n = dy.size // max(1, filter_shape[3])
    return _bounded(out, size, n, x, {})


def _axes(x: Sequence[int], filter: Sequence[int], options: dict[str, Any]) -> tuple[Axis, Axis]:
    return both((x[1], x[2]), (filter[0], filter[1]), **options)


def _nhwc(x: Array, options: dict[str, Any]) -> Array:
    return x.transpose(0, 2, 3, 1) if options.get("data_format") == "NCHW" else x


def _nhwc_shape(shape: tuple[int, ...], options: dict[str, Any]) -> tuple[int, ...]:
    if options.get("data_format") == "NCHW":
        return (shape[0], shape[2], shape[3], shape[1])
    return shape


def _bounded(out: Array, size: Array, n: int, like: Array, options: dict[str, Any]) -> Bounded:
    bound = size * (levels(n) + 1) * epsilon(like)
    if options.get("data_format") == "NCHW":
        return Bounded(out.transpose(0, 3, 1, 2), bound.transpose(0, 3, 1, 2))
    return Bounded(out, bound)

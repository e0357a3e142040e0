"""References for the fused kernels: product, bias and activation, in the widest float."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon
from tensorplug_conformance.oracle import matrix_products as linalg
from tensorplug_conformance.oracle.nn import convolution

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array, Reference

_ROUNDINGS = 8  # of what the activation returns, at most, in eps


def fused_conv2d(x: Array, filter: Array, *rest: Array | None, **options: Any) -> Reference:
    return _convolved(convolution.conv2d, x, filter, *rest, **options)


def fused_depthwise(x: Array, filter: Array, *rest: Array | None, **options: Any) -> Reference:
    return _convolved(convolution.depthwise, x, filter, *rest, **options)


def fused_mat_mul(
    a: Array,
    b: Array,
    bias: Array | None,
    weights: Array | None,
    *,
    activation: str = "linear",
    leakyrelu_alpha: float = 0.2,
    **flags: bool,
) -> Reference:
    """The product of matrices; integers wrap at every step."""
    product = linalg.batch_mat_mul(a, b, **flags)
    if isinstance(product, Bounded):
        slopes = leakyrelu_alpha if activation != "prelu" else wide(np.asarray(weights))
        return _ended(product, None if bias is None else wide(bias), slopes, activation, a)
    total = product if bias is None else wrap(wide(product) + wide(bias), a.dtype)
    if activation == "linear":
        return total
    return np.asarray(np.clip(total, 0, 6 if activation == "relu6" else None))


def _convolved(
    product: Callable[..., Bounded],
    x: Array,
    filter: Array,
    bias: Array | None,
    weights: Array | None,
    *,
    activation: str = "linear",
    leakyrelu_alpha: float = 0.2,
    **options: Any,
) -> Reference:
    first = convolution.channels_first(options)

    def aligned(array: Array) -> Array:
        return wide(array).reshape(-1, 1, 1) if first and array.ndim == 1 else wide(array)

    slopes = leakyrelu_alpha if activation != "prelu" else aligned(np.asarray(weights))
    offsets = None if bias is None else aligned(bias)
    return _ended(product(x, filter, **options), offsets, slopes, activation, x)


def _ended(
    product: Bounded, bias: Array | None, slopes: Any, activation: str, like: Array
) -> Bounded:
    """Return the activation of product + bias; none is steeper than 1 or its slope."""
    total, bound = product.value, product.bound
    if bias is not None:
        bound = bound + (np.abs(total) + np.abs(bias)) * epsilon(like)
        total = total + bias
    steepest = np.maximum(1, np.abs(slopes)) if activation in ("prelu", "leakyrelu") else 1
    value = np.asarray(_activated(total, slopes, activation))
    ending = 0 if activation == "linear" else _ROUNDINGS * np.abs(value) * epsilon(like)
    return Bounded(value, bound * steepest + ending)


def _activated(x: Array, slopes: Any, activation: str) -> Any:
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "relu6":
        return np.clip(x, 0, 6)
    if activation == "elu":
        return np.where(x > 0, x, np.expm1(x))
    if activation == "sigmoid":
        return 1 / (1 + np.exp(-x))
    if activation in ("prelu", "leakyrelu"):
        return np.where(x < 0, x * slopes, x)
    return x

"""Rounding, signs, bounds, and the neighbours of a float.

The source is the array API standard 2025.12 unless a docstring says otherwise.
"""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import Attribute, KernelSpec
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_binary, dispatch_unary
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops.elementwise import astype, maximum, minimum
from tensorplug.ops.movement import identity

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "ceil",
    "clip",
    "clip_by_value",
    "copysign",
    "nextafter",
    "round",
    "sign",
    "signbit",
    "trunc",
]

CEIL = KernelSpec("Ceil", ("x",), inference.same, accepts=dt.REAL, promote=("x",))
ROUND = KernelSpec("Round", ("x",), inference.same, accepts=dt.NUMERIC, promote=("x",))
TRUNC = KernelSpec("Trunc", ("x",), inference.same, accepts=dt.REAL, promote=("x",))
SIGN = KernelSpec("Sign", ("x",), inference.same, accepts=dt.NUMERIC, promote=("x",))
SIGN_BIT = KernelSpec(
    "SignBit", ("x",), inference.same_shape(dt.bool_), accepts=dt.REAL, promote=("x",)
)
COPY_SIGN = KernelSpec(
    "CopySign",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.REAL,
    promote=("a", "b"),
    inexact=True,
)
NEXT_AFTER = KernelSpec(
    "NextAfter",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.REAL,
    promote=("a", "b"),
    inexact=True,
)


def _bound(value: Any, types: InputTypes) -> dt.Scalar:
    """Return a bound as a number of x's dtype.

    Bounds of integers are truncated towards zero, which is what they come to where they are
    kept as integers, and need not fit into the dtype.
    """
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, bool | int | float):
        raise ArgumentError(f"must be a real number, got {value!r}")
    if isnan(number):
        raise ArgumentError("must not be NaN")
    dtype = types["x"].dtype
    if dtype not in dt.INTEGER:
        try:
            return float(number)
        except OverflowError:  # an integer beyond every float
            return inf if number > 0 else -inf
    low, high = _limits(dtype)
    return high if number >= high else low if number <= low else int(number)


def _limits(dtype: DType) -> tuple[int, int]:
    about = np.iinfo(dtype.name)
    return int(about.min), int(about.max)


def _upper(value: Any, types: InputTypes) -> dt.Scalar:
    bound, lower = _bound(value, types), types["clip_value_min"]
    if bound < lower:
        raise ArgumentError(f"must be at least clip_value_min, {lower!r}, got {bound!r}")
    return bound


_BOUND_FORM = "int that x's dtype holds; float where that is floating"

CLIP_BY_VALUE = KernelSpec(
    "ClipByValue",
    ("x",),
    inference.same,
    attributes={
        "clip_value_min": Attribute(_bound, form=_BOUND_FORM),
        "clip_value_max": Attribute(_upper, form=f"{_BOUND_FORM}; >= clip_value_min"),
    },
    accepts=dt.REAL,
    promote=("x",),
)


@chained
def ceil(x: Any, /) -> Tensor:
    """Return ``smallest integer >= x`` elementwise. Rounding up; integers stay as they are."""
    return dispatch_unary(CEIL, x)


@chained
def round(x: Any, /) -> Tensor:
    """Return the integer nearest to ``x`` elementwise, the even one of two.

    Of complex numbers both parts are rounded; integers stay as they are.
    """
    return dispatch_unary(ROUND, x)


@chained
def trunc(x: Any, /) -> Tensor:
    """Return ``x`` without its fraction, elementwise. Rounding towards zero; integers stay."""
    return dispatch_unary(TRUNC, x)


@chained
def sign(x: Any, /) -> Tensor:
    """Return -1, 0 or 1 elementwise, NaN for NaN; of complex numbers ``x / |x|``, and 0 for 0."""
    return dispatch_unary(SIGN, x)


@chained
def signbit(x: Any, /) -> Tensor:
    """Return whether ``x`` is negative elementwise, which -0.0 is, and a NaN may be."""
    return dispatch_unary(SIGN_BIT, x)


@chained
def copysign(a: Any, b: Any, /) -> Tensor:
    """Return ``|a|`` with the sign of ``b`` elementwise, also of zeros; integers become floats."""
    return dispatch_binary(COPY_SIGN, a, b)


@chained
def nextafter(a: Any, b: Any, /) -> Tensor:
    """Return the float next to ``a`` in the direction of ``b`` elementwise; ``b`` if equal.

    Its gradient is that of ``a``.
    """
    return dispatch_binary(NEXT_AFTER, a, b)


@chained
def clip_by_value(x: Any, clip_value_min: Any, clip_value_max: Any) -> Tensor:
    """Return ``min(max(x, clip_value_min), clip_value_max)`` elementwise; NaN stays NaN.

    The bounds are numbers; those of integers are truncated towards zero. The gradient passes
    within the bounds and at them. (TensorFlow's ClipByValue.)

    Raises:
        ArgumentError: a bound is NaN or no number, or the upper is less than the lower.

    """
    return dispatch(CLIP_BY_VALUE, x, clip_value_min=clip_value_min, clip_value_max=clip_value_max)


@chained
def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Return ``x`` with what is less than ``min`` or greater than ``max`` replaced by that.

    A bound is a number, a tensor that broadcasts with ``x``, or None for none. The result has
    the dtype of ``x``, and is NaN where ``x`` or a bound is.

    Raises:
        DTypeError: a bound is of another kind than ``x``, such as 0.5 beside integers.
        ArgumentError: both bounds are numbers, and the upper is less than the lower.

    """
    tensor = x if hasattr(x, "_placement") else as_tensor(x, what="clip: x")
    if min is None and max is None:
        return identity(tensor)
    if _is_plain(min) and _is_plain(max):
        for bound in (min, max):
            if bound is not None:
                _check_kind(tensor, bound)
        return clip_by_value(tensor, -inf if min is None else min, inf if max is None else max)
    result = tensor if min is None else maximum(tensor, _bounding(tensor, min, "min"))
    return result if max is None else minimum(result, _bounding(tensor, max, "max"))


_NUMBERS = (bool, int, float)  # not NumPy's scalars, which have dtypes


def _is_plain(bound: Any) -> bool:
    """Return whether a bound can be an attribute: None, or a number other than NaN."""
    return bound is None or (bound.__class__ in _NUMBERS and not isnan(bound))


def _check_kind(tensor: Tensor, bound: float) -> None:
    if tensor.dtype in dt.INTEGER and isinstance(bound, float):
        raise DTypeError(
            f"clip: x is {tensor.type}, whose bounds must be integers, got {bound!r}; "
            "convert x with astype"
        )


def _bounding(tensor: Tensor, bound: Any, name: str) -> Any:
    """Return a bound in the dtype of ``tensor``; what lies beyond that becomes its limit."""
    if bound.__class__ in _NUMBERS:
        _check_kind(tensor, bound)
        return bound
    limit = as_tensor(bound, what=f"clip: {name}")
    if limit.dtype is tensor.dtype or tensor.dtype not in dt.INTEGER:
        return astype(limit, tensor.dtype)
    if limit.dtype not in dt.INTEGER:
        raise DTypeError(
            f"clip: x is {tensor.type}, but {name} is {limit.type}, and the result has the "
            "dtype of x; convert one of them with astype"
        )
    return astype(clip_by_value(limit, *_limits(tensor.dtype)), tensor.dtype)

"""Rounding, signs, bounds, and neighbouring floats.

The source is the array API standard 2025.12 unless a docstring says otherwise.
"""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.arguments import quoted
from tensorplug.contract.expressions import of_floats
from tensorplug.contract.spec import Attribute, KernelSpec
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_binary, dispatch_unary
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops.elementwise import astype, maximum, minimum
from tensorplug.ops.movement import identity

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expression_rules import Given
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


def _define(name: str, accepts: frozenset[DType], expression: Given | None = None) -> KernelSpec:
    return KernelSpec(
        name, ("x",), inference.same, accepts=accepts, promote=("x",), expression=expression
    )


CEIL = _define("Ceil", dt.REAL, of_floats("ceil"))
ROUND = _define("Round", dt.NUMERIC, of_floats("round"))
TRUNC = _define("Trunc", dt.REAL, of_floats("trunc"))
SIGN = _define("Sign", dt.NUMERIC)
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
    expression="copysign",
)
NEXT_AFTER = KernelSpec(
    "NextAfter",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.REAL,
    promote=("a", "b"),
    inexact=True,
    exact=True,
)


def _read_bound(value: Any, types: InputTypes) -> dt.Scalar:
    """Return a bound as a number of x's kind.

    Bounds of integers are truncated towards zero and may exceed the dtype's range.
    """
    number = value.item() if getattr(value, "size", None) == 1 else value
    if not isinstance(number, bool | int | float):
        raise ArgumentError(f"must be a real number, got {quoted(value)}")
    if isinstance(number, float) and isnan(number):
        raise ArgumentError("must not be NaN")
    dtype = types["x"].dtype
    if dtype not in dt.INTEGER:
        try:
            return float(number)
        except OverflowError:  # an integer larger than every float
            return inf if number > 0 else -inf
    low, high = dtype.min, dtype.max
    return high if number >= high else low if number <= low else int(number)


def _read_upper(value: Any, types: InputTypes) -> dt.Scalar:
    bound, lower = _read_bound(value, types), types["clip_value_min"]
    if bound < lower:
        raise ArgumentError(f"must be at least clip_value_min ({lower!r}), got {quoted(bound)}")
    return bound


_BOUND_FORM = "int that x's dtype holds; float where that is floating"

CLIP_BY_VALUE = KernelSpec(
    "ClipByValue",
    ("x",),
    inference.same,
    attributes={
        "clip_value_min": Attribute(_read_bound, form=_BOUND_FORM),
        "clip_value_max": Attribute(_read_upper, form=f"{_BOUND_FORM}; >= clip_value_min"),
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
    """Return the integer nearest to ``x`` elementwise, the even one at halves.

    Both parts of complex numbers are rounded; integers stay as they are.
    """
    return dispatch_unary(ROUND, x)


@chained
def trunc(x: Any, /) -> Tensor:
    """Return ``x`` without its fraction, elementwise. Rounding towards zero; integers stay."""
    return dispatch_unary(TRUNC, x)


@chained
def sign(x: Any, /) -> Tensor:
    """Return -1, 0, 1 or NaN elementwise; for complex numbers ``x / |x|``, and 0 for 0."""
    return dispatch_unary(SIGN, x)


@chained
def signbit(x: Any, /) -> Tensor:
    """Return whether the sign bit of ``x`` is set elementwise, as in -0.0 and some NaNs."""
    return dispatch_unary(SIGN_BIT, x)


@chained
def copysign(a: Any, b: Any, /) -> Tensor:
    """Return ``|a|`` with the sign of ``b``, even of 0.0, elementwise. Integers become floats."""
    return dispatch_binary(COPY_SIGN, a, b)


@chained
def nextafter(a: Any, b: Any, /) -> Tensor:
    """Return the float next to ``a`` towards ``b`` elementwise; ``b`` if they are equal.

    The gradient flows to ``a``.
    """
    return dispatch_binary(NEXT_AFTER, a, b)


@chained
def clip_by_value(x: Any, clip_value_min: Any, clip_value_max: Any) -> Tensor:
    """Return ``min(max(x, clip_value_min), clip_value_max)`` elementwise; NaN stays NaN.

    The bounds are numbers; those of integers are truncated towards zero. The gradient flows
    within and at the bounds. (TensorFlow's ClipByValue.)

    Raises:
        ArgumentError: a bound is NaN or no number, or the upper is less than the lower.

    """
    return dispatch(CLIP_BY_VALUE, x, clip_value_min=clip_value_min, clip_value_max=clip_value_max)


@chained
def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Return ``x`` limited to the range from ``min`` to ``max``.

    A bound is a number, a tensor that broadcasts with ``x``, or None for no bound. The result
    has the dtype of ``x``. It is NaN where ``x`` or a bound is NaN.

    Raises:
        DTypeError: a bound is of another kind than ``x``, such as 0.5 beside integers.
        ArgumentError: both bounds are numbers, and ``max`` is less than ``min``.

    """
    tensor = x if hasattr(x, "_placement") else as_tensor(x, what="clip: x")
    min, max = dt.as_number(min), dt.as_number(max)
    if min is None and max is None:
        return identity(tensor)
    if _is_plain(min) and _is_plain(max):
        for bound in (min, max):
            if bound is not None:
                _check_kind(tensor, bound)
        return clip_by_value(tensor, -inf if min is None else min, inf if max is None else max)
    result = tensor if min is None else maximum(tensor, _convert_bound(tensor, min, "min"))
    return result if max is None else minimum(result, _convert_bound(tensor, max, "max"))


_NUMBERS = (bool, int, float)


def _is_plain(bound: Any) -> bool:
    """Return whether a bound can be an attribute: None, or a number other than NaN."""
    if bound.__class__ is float:
        return not isnan(bound)
    return bound is None or bound.__class__ in _NUMBERS


def _check_kind(tensor: Tensor, bound: float) -> None:
    if tensor.dtype in dt.INTEGER and isinstance(bound, float):
        raise DTypeError(
            f"clip: the bounds of {tensor.type} must be integers, got {quoted(bound)}; convert x "
            "with "
            "astype"
        )


def _convert_bound(tensor: Tensor, bound: Any, name: str) -> Any:
    """Return a bound in the dtype of ``tensor``, limited to the dtype's range."""
    if bound.__class__ in _NUMBERS:
        _check_kind(tensor, bound)
        return bound
    limit = as_tensor(bound, what=f"clip: {name}")
    if limit.dtype is tensor.dtype or tensor.dtype not in dt.INTEGER:
        return astype(limit, tensor.dtype)
    if limit.dtype not in dt.INTEGER:
        raise DTypeError(
            f"clip: {name} must be an integer, like x, {tensor.type}, got {limit.type}; convert "
            "one of them with astype"
        )
    return astype(clip_by_value(limit, tensor.dtype.min, tensor.dtype.max), tensor.dtype)

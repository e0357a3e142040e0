"""Numbers kept within bounds: the spec and the public functions."""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops.elementwise.arithmetic import maximum, minimum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.movement import identity

if TYPE_CHECKING:
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, Scalar


__all__ = ["clip", "clip_by_value"]


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
    elementwise=True,
)


@chained
def clip_by_value(
    x: ArrayLike, clip_value_min: Scalar | Tensor, clip_value_max: Scalar | Tensor
) -> Tensor:
    """Return ``min(max(x, clip_value_min), clip_value_max)`` elementwise; NaN stays NaN.

    The bounds are numbers; for integers they are truncated towards zero. The gradient flows
    within and at the bounds. (TensorFlow's ClipByValue.)

    Raises:
        ArgumentError: a bound is NaN or no number, or the upper is less than the lower.

    Examples:
        >>> tp.clip_by_value([-3.0, 0.5, 3.0], -1, 1)
        Tensor([-1. ,  0.5,  1. ], dtype=float32, device='cpu')
        >>> tp.clip_by_value([-3, 0, 3], -1.9, 1.9)
        Tensor([-1,  0,  1], dtype=int32, device='cpu')

    """
    return dispatch(CLIP_BY_VALUE, x, clip_value_min=clip_value_min, clip_value_max=clip_value_max)


@chained
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """Return ``x`` limited to the range from ``min`` to ``max``.

    A bound is a number, a tensor that broadcasts with ``x``, or None for no bound. The result
    has the dtype of ``x``. It is NaN where ``x`` or a bound is NaN.

    Raises:
        DTypeError: a bound is of another kind than ``x``, such as 0.5 for integers.
        ArgumentError: both bounds are numbers, and ``max`` is less than ``min``.

    Source: the array API standard.

    Examples:
        >>> tp.clip([-3.0, 0.5, 3.0, tp.nan], -1, 1)
        Tensor([-1. ,  0.5,  1. ,  nan], dtype=float32, device='cpu')
        >>> tp.clip([1, 5, 9], max=[4, 5, 6])
        Tensor([1, 5, 6], dtype=int32, device='cpu')
        >>> tp.clip([1, 5, 9], 0.5)
        Traceback (most recent call last):
            ...
        tensorplug.errors.DTypeError: clip: the bounds of int32[3] must be integers, got 0.5; ...

    """
    tensor: Any = x if hasattr(x, "_placement") else as_tensor(x, what="clip: x")
    low, high = dt.as_number(min), dt.as_number(max)
    if low is None and high is None:
        return identity(tensor)
    if _is_plain(low) and _is_plain(high):
        for bound in (low, high):
            if bound is not None:
                _check_kind(tensor, bound)
        return clip_by_value(tensor, -inf if low is None else low, inf if high is None else high)
    result = tensor if low is None else maximum(tensor, _convert_bound(tensor, low, "min"))
    return result if high is None else minimum(result, _convert_bound(tensor, high, "max"))


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

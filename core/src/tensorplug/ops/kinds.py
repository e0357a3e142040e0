"""Conversion of arguments to tensors of a kind of dtype, for composed functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.host_values import is_scalar
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise.casting import astype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor


def widen_half(x: Tensor) -> Tensor:
    """Return a tensor in the dtype for sums and for several rounding steps."""
    return astype(x, x.dtype.compute, copy=False)


def operands(a: Any, b: Any, a_what: str, b_what: str) -> tuple[Tensor, Tensor]:
    """Return two operands as tensors. A scalar gets the dtype that it has beside the other one."""
    if is_scalar(b):
        left = as_tensor(a, what=a_what)
        return left, as_tensor(dt.as_number(b), dt.of_scalar(b, left.dtype), what=b_what)
    right = as_tensor(b, what=b_what)
    return as_tensor(
        dt.as_number(a), dt.of_scalar(a, right.dtype) if is_scalar(a) else None, what=a_what
    ), right


def numbers(value: Any, what: str) -> Tensor:
    """Return ``value``, called ``what`` in messages, as a tensor of any dtype but string.

    Raises:
        DTypeError: it holds strings.

    """
    tensor = as_tensor(value, what=what)
    if tensor.dtype is dt.string:
        raise DTypeError(f"{what} must hold numbers, got {tensor.type}")
    return tensor


def real(value: Any, what: str) -> Tensor:
    """Return ``value`` as a tensor of real numbers or booleans.

    Raises:
        DTypeError: it holds complex numbers or strings.

    """
    tensor = as_tensor(value, what=what)
    if tensor.dtype in dt.COMPLEX or tensor.dtype is dt.string:
        raise DTypeError(f"{what} must hold real numbers, got {tensor.type}")
    return tensor


def inexact(value: Any, what: str) -> Tensor:
    """Return ``value`` as a tensor of real or complex floats; integers become floats."""
    tensor = numbers(value, what)
    return tensor if tensor.dtype in dt.INEXACT else astype(tensor, dt.default_float)


def floating(value: Any, what: str) -> Tensor:
    """Return ``value`` as a tensor of real floats; integers become floats."""
    tensor = real(value, what)
    return tensor if tensor.dtype in dt.FLOATING else astype(tensor, dt.default_float)


def images(value: Any, what: str) -> Tensor:
    """Return [height, width, channels] or [batch, height, width, channels] as a tensor.

    Raises:
        ShapeError: the rank is another one.

    """
    tensor = as_tensor(value, what=what)
    if tensor.ndim not in (3, 4):
        raise ShapeError(
            f"{what} must have the shape [height, width, channels] or [batch, height, width, "
            f"channels], got {tensor.type}"
        )
    return tensor


def compute(caller: str, function: Callable[..., Tensor], /, **named: Any) -> Tensor:
    """Return ``function`` of the named arguments, as tensors of one floating dtype.

    Python's numbers take the dtype of the tensors. Integers become the default float. What has
    half precision is computed in float32, and the result rounded back.

    Raises:
        DTypeError, ArgumentError: an argument does not hold real numbers.

    """
    values = [_read_real(value, f"{caller}: {name}") for name, value in named.items()]
    tensors = [value for value in values if not is_scalar(value)]
    chosen = dt.promote(tensor.dtype for tensor in tensors) if tensors else dt.default_float
    work = dt.float32 if chosen.itemsize < dt.float32.itemsize else chosen
    result = function(*[_as_tensor(value, work) for value in values])
    return astype(result, chosen, copy=False)


def _read_real(value: Any, what: str) -> Any:
    """Return a Python number as it is, anything else as a floating tensor."""
    if not is_scalar(value):
        return floating(value, what)
    if isinstance(value, complex):
        raise DTypeError(f"{what} must hold real numbers, got {value!r}")
    return value


def _as_tensor(value: Any, dtype: DType) -> Tensor:
    if is_scalar(value):
        return full((), value, dtype=dtype)
    return astype(value, dtype, copy=False)

"""The arguments of functions that are composed of ops, and the dtype in which they compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch import host_values
from tensorplug.errors import DTypeError
from tensorplug.ops import kinds
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise import astype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor


def compute(caller: str, function: Callable[..., Tensor], /, **named: Any) -> Tensor:
    """Return ``function`` of the named arguments, as tensors of one floating dtype.

    Python's numbers take the dtype of the tensors. Integers become the default float. What has
    half precision is computed in float32, and the result rounded back.

    Raises:
        DTypeError, ArgumentError: an argument does not hold real numbers.

    """
    values = [_read(value, f"{caller}: {name}") for name, value in named.items()]
    tensors = [value for value in values if not host_values.is_scalar(value)]
    chosen = dt.promote(tensor.dtype for tensor in tensors) if tensors else dt.default_float
    work = dt.float32 if chosen.itemsize < dt.float32.itemsize else chosen
    result = function(*[_as_tensor(value, work) for value in values])
    return astype(result, chosen, copy=False)


def _read(value: Any, what: str) -> Any:
    """Return a Python number as it is, anything else as a floating tensor."""
    if not host_values.is_scalar(value):
        return kinds.floating(value, what)
    if isinstance(value, complex):
        raise DTypeError(f"{what} must hold real numbers, got {value!r}")
    return value


def _as_tensor(value: Any, dtype: DType) -> Tensor:
    if host_values.is_scalar(value):
        return full((), value, dtype=dtype)
    return astype(value, dtype, copy=False)

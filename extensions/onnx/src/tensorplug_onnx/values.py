"""The values that flow between nodes.

- a tensor on the device: ``tensorplug.Tensor``;
- an array on the host: ``numpy.ndarray``. Constants are, and what is computed from constants and
  shapes alone, so that shapes are known while a model is compiled. Text has NumPy's StringDType;
- a sequence: a list of tensors or arrays; an optional without a value: ``None``;
- a map of the traditional machine learning operators: a dict.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from types import ModuleType


Host = np.ndarray[Any, Any]
Value = tp.Tensor | Host | list[Any] | dict[Any, Any] | None


def namespace(*values: Value) -> ModuleType:
    """Return ``numpy`` if all values that are present are host arrays, else ``tensorplug``."""
    present = [value for value in values if value is not None]
    return np if all(isinstance(value, np.ndarray) for value in present) else tp


def as_tensor(value: Any) -> Any:
    """Return a host array as a tensor on the active device; other values as they are.

    An array of a dtype that the device lacks stays on the host.
    """
    if isinstance(value, list):
        return [as_tensor(one) for one in value]
    if isinstance(value, np.ndarray) and has_dtype(dtype_of(value)):
        return tp.asarray(value)
    return value


def has_dtype(name: str) -> bool:
    """Return whether the active device holds elements of a dtype.

    If it does not say, it holds all that tensorplug has.
    """
    dtypes = _dtypes_of(tp.get_backend())
    return hasattr(tp, name) if dtypes is None else name in dtypes


@cache
def _dtypes_of(device: str) -> frozenset[str] | None:
    backend, _, _ = device.partition(":")
    dtypes = tp.devices(backend)[device].dtypes
    return None if dtypes is None else frozenset(dtype.name for dtype in dtypes)


def as_host(value: Any) -> Any:
    """Return a tensor as a host array; other values as they are.

    Raises:
        tensorplug.errors.DataNeededError: the model is being compiled, and the tensor depends on
            its inputs.

    """
    if isinstance(value, list):
        return [as_host(one) for one in value]
    return value.numpy() if isinstance(value, tp.Tensor) else value


def dtype_of(value: tp.Tensor | Host) -> str:
    """Return the name of the element dtype: ``float32``, ``string``, ..."""
    if isinstance(value, np.ndarray):
        return "string" if value.dtype.kind in "OUT" else str(value.dtype)
    return str(value.dtype)


def described(value: Any) -> str:
    """Return the type of a value as messages tell it: ``float32[2,3]``."""
    if isinstance(value, list):
        return f"[{', '.join(map(described, value))}]"
    if not isinstance(value, np.ndarray | tp.Tensor):
        return "nothing" if value is None else type(value).__name__
    return f"{dtype_of(value)}{list(value.shape)}".replace(" ", "")


def to_numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a name that ``dtype_of`` returns."""
    if name == "string":
        return np.dtypes.StringDType()
    if hasattr(np, name):
        return np.dtype(name)
    import ml_dtypes  # takes a while, and few models need it

    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found

"""The bits of NumPy arrays, read as another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType

__all__ = ["bitcast"]

Array = np.ndarray[Any, Any]


def bitcast(input: Array, *, dtype: DType) -> Array:
    """Return a view; of a copy if the parts of an element do not lie side by side."""
    old, new = input.dtype.itemsize, dtype.itemsize
    if old == new:
        return input.view(dtype.numpy)
    whole = np.ascontiguousarray(input)
    if new < old:
        return whole[..., None].view(dtype.numpy).reshape(*input.shape, old // new)
    return whole.view(dtype.numpy).reshape(input.shape[:-1])

"""Tensors compared exactly."""

from __future__ import annotations

from typing import Any

import numpy as np


def expect(tensor: Any, dtype: str, shape: tuple[int, ...], values: Any) -> None:
    """Check dtype and shape first, then the values exactly (NaN equals NaN)."""
    assert (str(tensor.dtype), tensor.shape) == (dtype, shape)
    np.testing.assert_array_equal(tensor.numpy(), np.asarray(values, dtype=dtype))

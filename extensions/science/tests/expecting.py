"""Tensors compared, exactly or to a few units of rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import tensorplug as tp

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


def expect(tensor: Any, dtype: str, shape: tuple[int, ...], values: Any) -> None:
    """Check dtype and shape first, then the values exactly (NaN equals NaN)."""
    assert (str(tensor.dtype), tensor.shape) == (dtype, shape)
    np.testing.assert_array_equal(tensor.numpy(), np.asarray(values, dtype=dtype))


def close(found: tp.Tensor, dtype: str, expected: Any, *, units: float = 8) -> None:
    """Compare shape, dtype, and values to ``units`` epsilons."""
    right = np.asarray(expected, float)
    assert (found.dtype.name, found.shape) == (dtype, right.shape)
    np.testing.assert_allclose(found.numpy().astype(float), right, rtol=units * EPS[dtype])

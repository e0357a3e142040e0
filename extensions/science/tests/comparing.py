"""Results compared with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np


def near(actual: Any, expected: Any, dtype: str, terms: int = 1) -> None:
    """Check dtype and shape first, then the values, to some units in the last place per term."""
    wanted = np.asarray(expected)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape)
    eps = np.finfo(dtype).eps if np.dtype(dtype).kind in "fc" else 0
    np.testing.assert_allclose(
        actual.numpy(), wanted.astype(dtype), rtol=8 * eps * terms, atol=8 * eps * terms
    )

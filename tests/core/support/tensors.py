"""Making, comparing and counting tensors in tests of gradients."""

from __future__ import annotations

import functools
import gc
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable


def same(actual: tp.Tensor, expected: Any, *, dtype: tp.DType = tp.float32) -> None:
    """Compare dtype and shape, then values to float32 rounding."""
    wanted = np.array(expected, dtype.numpy)
    assert (actual.dtype, actual.shape) == (dtype, wanted.shape)
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=2e-6)


def tensor(values: Any) -> tp.Tensor:
    """Return a float32 tensor."""
    return tp.asarray(values, dtype=tp.float32)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function whose result is the sum of that of ``f``, which ``tp.grad`` takes."""
    return functools.wraps(f)(lambda *args, **options: tp.sum(f(*args, **options)))


def live() -> int:
    """Return how many tensors there are."""
    return sum(type(get_object_) is tp.Tensor for get_object_ in gc.get_objects())

"""A decomposition may serve some dtypes only; for others the next step is taken, and explained."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import KernelNotFoundError
from tensorplug.testing import isolated_engine


@pytest.fixture
def bare():
    """Without the native Tanh, and with no other backend to fall back to."""
    with isolated_engine("cpu") as engine:
        engine.fallback = "error"
        tp.unregister_kernel("Tanh", "cpu")
        yield


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_it_serves_its_dtypes(bare, dtype: dt.DType) -> None:
    x = tp.asarray([0.5], dtype=dtype)
    y = tp.tanh(x)
    assert y.type == x.type
    assert abs(y.item() - 0.46211715726000975) < 1e-7
    assert tp.explain("Tanh", dtype=dtype).how == "decomposed"


def test_others_are_refused_with_the_reason(bare) -> None:
    with pytest.raises(KernelNotFoundError, match="does not take complex64"):
        tp.tanh(tp.asarray([0.5j]))
    for explanation in (
        tp.explain("Tanh", dtype="complex64"),
        tp.explain("Tanh", [TensorType(dt.complex64, (1,))]),
    ):
        assert explanation.how is None
        assert "does not take complex64" in str(explanation)

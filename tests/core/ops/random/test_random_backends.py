"""Every installed backend gives the CPU backend's numbers, bit for bit where documented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import BackendUnavailableError
from tensorplug.testing import isolated_engine

random = tp.random
SHAPE = (7, 143)

EXACT = {
    "split": lambda key: random.split(key, 5),
    "fold_in": lambda key: random.fold_in(key, tp.asarray(12345)),
    "integers of tensors": lambda key: random.integers(
        key, (9, 2), low=tp.asarray([1, 5]), high=[100, 6]
    ),
    "bernoulli": lambda key: random.bernoulli(key, SHAPE, p=0.3),
    "permutation": lambda key: random.permutation(key, 143),
    "choice": lambda key: random.choice(key, 50, (20,), replace=False),
}
NEAR = {  # by way of log, exp and erf, which are each backend's own
    # And a square root, which not every device rounds in float32 as IEEE 754 says; on those that
    # do, the tests of the backend compare bits.
    "gumbel": lambda key: random.gumbel(key, SHAPE),
    "truncated_normal": lambda key: random.truncated_normal(key, SHAPE, "float64"),
    "gamma": lambda key: random.gamma(key, SHAPE, concentration=0.4),
}


@pytest.fixture(params=["minimal", "opencl"])
def other(request: Any) -> str:
    """Return the name of a backend that is installed and can be opened."""
    name: str = request.param
    if name not in {backend.name for backend in tp.backends()}:
        pytest.skip(f"backend {name} is not installed")
    try:
        with isolated_engine(name):
            return name
    except BackendUnavailableError as error:
        pytest.skip(str(error))


def drawn(backend: str, draw: Any) -> np.ndarray[Any, Any]:
    with isolated_engine(backend) as engine:
        engine.fallback = "error"
        return np.array(draw(random.key(11)).numpy())


def both(other: str, draw: Any) -> tuple[np.ndarray, np.ndarray]:
    found, expected = drawn(other, draw), drawn("cpu", draw)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    return found, expected


@pytest.mark.parametrize("name", EXACT)
def test_the_same_bits(other: str, name: str) -> None:
    found, expected = both(other, EXACT[name])
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", NEAR)
def test_nearly_the_same_numbers(other: str, name: str) -> None:
    found, expected = both(other, NEAR[name])
    eps = np.finfo(found.dtype).eps if found.dtype.kind == "f" else 0  # counts: exactly
    np.testing.assert_allclose(found, expected, rtol=64 * eps, atol=8 * eps)

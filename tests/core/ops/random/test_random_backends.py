"""Every installed backend gives the CPU backend's numbers, bit for bit where documented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import BackendUnavailableError, DTypeError
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


LACKING = {  # uint32, the dtype of keys
    "three dtypes": {tp.bool, tp.int32, tp.float32},
    "no unsigned dtypes": {tp.bool, tp.int32, tp.int64, tp.float32, tp.float64},
}
WITHOUT = EXACT | {
    "fold_in": lambda key: random.fold_in(key, 2**63 + 5),
    "fold_in of negative": lambda key: random.fold_in(key, tp.asarray(-5)),
    "uniform": lambda key: random.uniform(key, SHAPE),
    "segments": lambda key: random.uniform(key, (2**16 + 3,)),
    "normal": lambda key: random.normal(key, SHAPE),
    "exponential": lambda key: random.exponential(key, SHAPE),
    "wide span": lambda key: random.integers(key, SHAPE, low=-(2**31), high=2**31 - 1),
    "every example": lambda key: tp.vmap(lambda k: random.uniform(k, (3,)))(random.split(key, 4)),
    "compiled": lambda key: tp.compile(lambda k: random.normal(k, SHAPE))(random.fold_in(key, 1)),
    "generator": lambda _: random.Generator(5).uniform((3,)) + random.Generator(6).normal((3,)),
    "dropout": lambda key: tp.nn.dropout(key, tp.ones(SHAPE), 0.3),
    "multinomial": lambda _: tp.run_kernel(
        "Multinomial", [np.zeros((2, 9), np.float32)], {"num_samples": 40, "seed": 2**40 + 3}
    ),
}
WIDE = {
    "uniform": lambda key: random.uniform(key, SHAPE, "float64"),
    "normal": lambda key: random.normal(key, SHAPE, "float64"),
    "exponential": lambda key: random.exponential(key, SHAPE, "float64"),
    "integers": lambda key: random.integers(key, SHAPE, "int64", low=0, high=2**32),
}


@pytest.mark.parametrize(
    ("lacking", "name"),
    [
        *(("three dtypes", name) for name in WITHOUT),
        *(("no unsigned dtypes", f"{name}, 64 bits") for name in WIDE),
    ],
)
def test_the_same_bits_without_uint32(lacking: str, name: str) -> None:
    minimal = pytest.importorskip("tensorplug_example_minimal.backend")
    kernels = pytest.importorskip("tensorplug_example_minimal.kernels").kernels

    class Lacking(minimal.MinimalBackend):  # type: ignore[name-defined,misc]
        name = "lacking"
        dtypes = frozenset(LACKING[lacking])

    draw = WIDE[name.removesuffix(", 64 bits")] if "64" in name else WITHOUT[name]
    expected = drawn("cpu", draw)
    with isolated_engine() as engine:
        engine.fallback = "error"
        tp.register_backend("lacking", Lacking, kernels=[kernels])
        with tp.use_backend("lacking"):
            found = np.array(draw(random.key(11)).numpy())
    as_int32 = expected.dtype == np.uint32  # keys
    assert found.dtype == (np.int32 if as_int32 else expected.dtype)
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def test_a_key_has_the_dtype_of_its_device() -> None:
    with (
        isolated_engine("cpu"),
        pytest.raises(DTypeError, match=r"uniform: key .* be uint32\[4\]"),
    ):
        random.uniform(tp.zeros((4,), dtype="int32"))

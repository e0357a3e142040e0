"""Compiled chains of narrow floats: each call rounds, and nothing has another range than alone."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import BackendNotInstalledError, BackendUnavailableError

DTYPES = ["float16", "bfloat16"]
# Backends, and how the CPU runs groups: by LLVM if they are large, by LLVM, or by NumPy.
PLACES = [("cpu", "1"), ("cpu", "always"), ("cpu", "0"), ("opencl", "1")]
SHAPES = [(96,), (24, 64), (2, 9000)]
CHAINS = 12

UNARY = {
    "negative": tp.negative,
    "abs": tp.abs,
    "square": tp.square,
    "root": lambda x: tp.sqrt(tp.abs(x)),
    "exp": tp.exp,
    "tanh": tp.tanh,
    "log": lambda x: tp.log(tp.abs(x)),
    "gelu": tp.nn.gelu,
    "silu": tp.nn.silu,
    "relu": tp.nn.relu,
    "reciprocal": lambda x: 1 / x,
    "float8": lambda x: tp.astype(tp.astype(x, "float8_e4m3fn"), x.dtype),
    "float4": lambda x: tp.astype(tp.astype(x, "float4_e2m1fn"), x.dtype),
}
SCALED = {
    "times": lambda x, by: x * by,
    "over": lambda x, by: x / by,
    "plus": lambda x, by: x + by,
    "less": lambda x, by: x - by,
}
WITH_INPUT = {
    "plus input": lambda x, y: x + y,
    "times input": lambda x, y: x * y,
    "over input": lambda x, y: x / y,
    "less input": lambda x, y: x - y,
}
REDUCED = {
    name: (lambda f, x, axis: f(x, axis=axis, keepdims=True), f)
    for name, f in {
        "sum": tp.sum,
        "mean": tp.mean,
        "max": tp.max,
        "min": tp.min,
        "var": tp.var,
        "log of sum": tp.log_sum_exp,
    }.items()
}


@pytest.fixture(params=PLACES, ids="-".join)
def backend(request, monkeypatch):
    name, loops = request.param
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", loops)
    try:
        with tp.use_backend(name):
            yield name
    except (BackendNotInstalledError, BackendUnavailableError) as error:
        pytest.skip(str(error))


@pytest.fixture(params=["1", "always", "0"])
def loops(request, monkeypatch):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", request.param)


def random_chain(rng: Any) -> list[tuple[str, Any]]:
    """Return the names of two to five steps, each with its argument."""
    steps: list[tuple[str, Any]] = []
    for _ in range(rng.integers(2, 6)):
        table, arguments = [
            (UNARY, [None]),
            (SCALED, [2.0, 0.5, 0.01, 100.0, 0.001, 3.0]),
            (WITH_INPUT, [None]),
            (REDUCED, [-1, 0]),
        ][rng.choice(4, p=[0.3, 0.4, 0.1, 0.2])]
        steps.append((str(rng.choice(list(table))), arguments[rng.integers(len(arguments))]))
    return steps


def run(steps: Any, x: Any) -> Any:
    y = x
    for name, argument in steps:
        if name in UNARY:
            y = UNARY[name](y)
        elif name in SCALED:
            y = SCALED[name](y, argument)
        elif name in WITH_INPUT:
            y = WITH_INPUT[name](y, x)
        else:
            reduce, function = REDUCED[name]
            y = reduce(function, y, argument)
    return y


def random_numbers(rng: Any, dtype: Any, shape: Any) -> Any:
    """Return float32 near the ends of the range of a dtype, all over it, or near 1."""
    info = tp.finfo(dtype)
    tiny, top = float(info.smallest_normal), float(info.max)
    kind = rng.integers(4)
    if kind == 0:
        x = top * rng.uniform(0.2, 1, shape)
    elif kind == 1:
        x = tiny * rng.uniform(0, 8, shape)
    elif kind == 2:
        x = np.exp(rng.uniform(np.log(tiny), np.log(top), shape)) * rng.choice([-1, 1], shape)
    else:
        x = 10 * rng.standard_normal(shape)
    return x.astype(np.float32)


def both(f: Any, *inputs: Any) -> tuple[Any, Any]:
    """Return the results of a function, and of the function compiled, in float64."""
    alone = f(*inputs).numpy()
    compiled = tp.compile(f)
    compiled(*inputs)  # the first run is kernel by kernel
    together = compiled(*inputs).numpy()
    assert (together.dtype, together.shape) == (alone.dtype, alone.shape)
    return alone.astype(np.float64), together.astype(np.float64)


def check_near(alone: Any, together: Any, dtype: Any, told: Any) -> None:
    """Compare which are infinite or NaN, then values within two units in the last place."""
    for which in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(which(together), which(alone), err_msg=str(told))
    info, known = tp.finfo(dtype), np.isfinite(alone)
    units = np.maximum(np.abs(alone[known]), float(info.smallest_normal)) * float(info.eps)
    assert (np.abs(together[known] - alone[known]) <= 2 * units).all(), told


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_chains_equal_their_calls(backend, dtype, shape):
    rng = np.random.default_rng([len(dtype), *shape])
    for _ in range(CHAINS):
        steps = random_chain(rng)
        x = tp.astype(tp.asarray(random_numbers(rng, dtype, shape)), dtype)
        check_near(*both(partial(run, steps), x), dtype, (backend, steps))


# The function, and its exact value with x everywhere 0.75 times the largest number of the dtype,
# as a multiple of that number; None for infinity, where a step does not fit into the dtype.
TOO_LARGE: list[Any] = [
    (lambda x: (x * 2.0) * 0.25, None),
    (lambda x: (x * 0.5) * 2.0, 0.75),
    (lambda x: (x + x) - x, None),
    (lambda x: tp.sum(tp.reshape(x, (-1, 4)), axis=1) * 0.125, None),
    (lambda x: tp.mean(x * 0.5), 0.375),
    (lambda x: tp.sqrt(x + x), None),
    (lambda x: tp.maximum(x + x, x) * 0.25, None),
    (lambda x: tp.where(x > 0, x + x, x) * 0.25, None),
]


@pytest.mark.parametrize("number", range(len(TOO_LARGE)))
@pytest.mark.parametrize("size", [8, 1 << 15])
def test_a_step_that_does_not_fit_is_infinite(backend, number, size):
    f, multiple = TOO_LARGE[number]
    top = float(tp.finfo(tp.float16).max)
    x = tp.full((size,), 0.75 * top, dtype=tp.float16)
    for actual in both(f, x):
        expected = np.inf if multiple is None else multiple * top
        np.testing.assert_allclose(actual, expected, rtol=2**-10, err_msg=backend)


PRODUCTS = {
    "bias": lambda a, b: tp.nn.relu(tp.matmul(a, b) - 60000.0),
    "slope": lambda a, b: tp.nn.leaky_relu(tp.matmul(-a, b), 0.01),
    "plain": lambda a, b: tp.nn.relu(tp.matmul(a, b)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_an_ending(backend, name):
    """The product, 64 * 40 * 40, is too large for float16."""
    a = tp.full((64, 64), 40.0, dtype=tp.float16)
    alone, together = both(PRODUCTS[name], a, a)
    sign = -1 if name == "slope" else 1
    np.testing.assert_array_equal(alone, np.full((64, 64), sign * np.inf))
    np.testing.assert_array_equal(together, alone, err_msg=backend)


# Lengths and orders of numbers that add up to 2**126, but whose parts do not fit into float32.
LENGTHS = [12, 4096, 1 << 16]
ORDERS = {
    "halves": lambda half: [1.0] * half + [-1.0] * (half - 1) + [-0.5],
    "pairs": lambda half: [1.0, 1.0, -1.0, -1.0] * (half // 2 - 1) + [1.0, 1.0, -1.0, -0.5],
}


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("length", "order"), [*product(LENGTHS, ORDERS)])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_parts_of_sums_that_do_not_fit(dtype, length, order, axis):
    """The CPU adds in float64 then, whether a sum stands alone or in a group."""
    column = np.array(ORDERS[order](length // 2), np.float32) * np.float32(2.0**127)
    table = np.stack([column] * 2, axis=1 if axis == 0 else 0)
    with tp.use_backend("cpu"):
        x = tp.astype(tp.asarray(table), dtype)
        for actual in both(lambda x: tp.sum(x * 0.5, axis=axis), x):
            expected = np.full(actual.shape, 2.0**126 if axis is None else 2.0**125)
            np.testing.assert_array_equal(actual, expected)

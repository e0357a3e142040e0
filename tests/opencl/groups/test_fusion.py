"""Chains of elementwise kernels in compiled programs become one kernel, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.engine.current import current_engine

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _on_the_device() -> Any:
    with tp.use_backend("opencl"):
        yield


def numbers(*shape: int, dtype: Any = np.float32) -> tp.Tensor:
    return tp.asarray((RNG.standard_normal(shape) * 3).astype(dtype))


def check(f: Any, *args: Any, groups: list[str]) -> None:
    """Compare a compiled function with itself, bit by bit, and with what should be together."""
    compiled = tp.compile(f)
    for _ in range(2):
        ours, theirs = compiled(*args), f(*args)
        pairs = zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]
        for mine, other in pairs:
            assert mine.type == other.type
            np.testing.assert_array_equal(mine.numpy(), other.numpy())
    (special,) = compiled._known.values()
    assert [step.call.name for step in special.executable._steps] == groups


def test_a_chain_is_one_kernel():
    def f(x, y):
        z = tp.maximum(tp.sqrt(tp.abs(x * 2 + y)), 0.5)
        return z * z / (y * y + 1)

    chain = "Multiply+Add+Abs+Sqrt+Maximum+Multiply+Multiply+Add+..."
    check(f, numbers(70, 9), numbers(70, 9), groups=[chain])


def test_rows_columns_and_numbers():
    row, column = numbers(9), numbers(20, 1)

    def f(x):
        return (x + row) * column - row / 2

    check(f, numbers(20, 9), groups=["Add+Multiply+Sub"])


def test_a_value_with_other_users_is_written():
    def f(x):
        y = x * 2 + 1
        return tp.abs(y) - 3, tp.max(y, axis=0), y

    check(f, numbers(20, 9), groups=["Multiply+Add+Abs+Sub+Max"])
    check(lambda x: f(x)[:2], numbers(20, 9), groups=["Multiply+Add+Abs+Sub+Max"])


def test_other_dtypes_join():
    def f(x):
        return tp.astype(x * 2 + 1 > 0, tp.float32) * x + 1

    check(f, numbers(50), groups=["Multiply+Add+Greater+Cast+Multiply+Add"])


def test_integers():
    x = tp.asarray(np.array([1, -2, 2**31 - 1, -(2**31)], np.int32))
    compiled = tp.compile(lambda x: tp.abs(x) * 3 - x)
    np.testing.assert_array_equal(compiled(x).numpy(), (tp.abs(x) * 3 - x).numpy())


def test_a_kernel_that_replaces_ours_is_left_alone():
    def twice(x: Any) -> Any:
        return x  # takes and returns the device's own buffers

    with tp.register_kernel("Abs", "opencl", twice, override=True):
        check(lambda x: tp.abs(x * 2) + 1, numbers(30), groups=["Multiply", "Abs", "Add"])


def test_many_operands_make_multiple_kernels():
    operands = [numbers(30) for _ in range(80)]

    def f(*xs):
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        return total

    half = "+".join(["Add"] * 8) + "+..."
    check(f, *operands, groups=[half, half])


def test_small_backward_passes_give_the_same_bits_every_time():
    """They run from rule to rule: single calls are groups here, which a program would not have."""
    x, y = numbers(50), numbers(50)
    f = tp.grad(lambda x, y: tp.sum(tp.tanh(x * y) / (1.0 + tp.exp(x))), argnums=(0, 1))
    first, *later = ([gradient.numpy().tobytes() for gradient in f(x, y)] for _ in range(3))
    assert later == [first] * 2
    device = current_engine().devices.open("opencl")
    assert not any(isinstance(known, tuple) for known in device.programs.values())

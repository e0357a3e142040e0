"""Kernels neither warn nor obey the user's NumPy settings, and leave those alone."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from tensorplug.errors import BackendMemoryError
from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution import floating_point

VECTOR = TensorType(dt.float32, (2,))
ONE = np.array([1.0, 1.0], "float32")
ZERO = np.array([0.0, 0.0], "float32")


@pytest.fixture(autouse=True)
def strict():
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def divided(a, b):
    return np.true_divide(a, b)


CALLS = {
    "ufunc": floating_point.ufunc(np.true_divide, VECTOR, signals=True),
    "rank 0": floating_point.ufunc(np.true_divide, TensorType(dt.float32, ()), signals=True),
    "kernel": floating_point.kernel(divided, VECTOR),
    "without_warnings": floating_point.without_warnings(divided),
}


@pytest.mark.parametrize("how", CALLS)
def test_division_by_zero_is_infinite(how):
    a, b = (ONE[0:1].reshape(()), ZERO[0:1].reshape(())) if how == "rank 0" else (ONE, ZERO)
    with pytest.raises(FloatingPointError):
        np.true_divide(a, b)  # the settings of this test do raise
    result = CALLS[how](a, b)
    assert isinstance(result, np.ndarray)
    assert np.isinf(result).all()
    with pytest.raises(FloatingPointError):
        np.true_divide(a, b)  # and still do


def test_every_thread_has_its_own_context():
    call = CALLS["ufunc"]
    start, results = threading.Barrier(4), []

    def work():
        start.wait()
        results.extend(np.isinf(call(ONE, ZERO)).all() for _ in range(500))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2000
    assert all(results)


@pytest.mark.parametrize("how", ["ufunc", "kernel", "without_warnings"])
def test_a_kernel_while_the_context_is_entered(how):
    """As when a finalizer computes something while a kernel runs."""
    result = floating_point._silenced.run(CALLS[how], ONE, ZERO)
    assert np.isinf(result).all()


def test_a_unary_kernel_while_the_context_is_entered():
    log = floating_point.ufunc(np.log, VECTOR, signals=True)
    assert np.isneginf(floating_point._silenced.run(log, ZERO)).all()


def test_errors_of_a_kernel_come_through():
    def broken(_x):
        raise RuntimeError("its own")

    with pytest.raises(RuntimeError, match="its own"):
        floating_point.without_warnings(broken)(ONE)


def test_memory_errors_are_the_backends():
    def greedy(_x):
        raise MemoryError("Unable to allocate 1 PiB")

    with pytest.raises(BackendMemoryError, match="1 PiB") as caught:
        floating_point.without_warnings(greedy)(ONE)
    assert isinstance(caught.value.__cause__, MemoryError)


def test_integers_call_the_ufunc_itself():
    small, large = TensorType(dt.int32, (2,)), TensorType(dt.int32, (1 << 20,))
    assert floating_point.ufunc(np.add, small, signals=False) is np.add
    assert (
        floating_point.ufunc(np.add, large, signals=False) is not np.add
    )  # turns a MemoryError into ours
    assert floating_point.ufunc(np.add, small, signals=True) is not np.add


def test_a_new_thread_only_copies_its_context(monkeypatch):
    """Its first call would wait for ``seterr``."""
    asked, found = [], []
    monkeypatch.setattr(np, "seterr", lambda **how: asked.append(how))
    thread = threading.Thread(target=lambda: found.append(CALLS["kernel"](ONE, ZERO).tolist()))
    thread.start()
    thread.join()
    assert (found, asked) == ([[np.inf, np.inf]], [])


def test_another_function_for_what_overflows():
    calls = floating_point.without_overflow(np.add.reduce, lambda x: x.sum(dtype=np.float64))
    assert calls(ONE) == 2
    large = np.array([3e38, 3e38, -3e38, -3e38], "float32")
    assert calls(large) == 0

"""Variables on an OpenCL device, and moving between devices."""

from __future__ import annotations

import contextvars
import threading

import numpy as np
import pytest
from tests.opencl.conftest import require_device

import tensorplug as tp
from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True)
def engine():
    require_device()
    with isolated_engine("opencl") as made:
        yield made


def held():
    actual = tp.memory()["opencl"]
    return actual.tensors, actual.buffers, actual.bytes


def test_contents_are_shared_and_freed():
    start = held()
    x = tp.asarray(np.arange(1024, dtype=np.float32))
    tensors, buffers, size = held()
    v = tp.Variable(x, name="v")
    assert (v.device, held()) == ("opencl", (tensors + 1, buffers, size))
    y = x + 1.0
    v.assign(y)
    x.dispose()
    y.dispose()
    assert held() == (tensors, buffers, size)
    np.testing.assert_array_equal(v.numpy(), np.arange(1, 1025, dtype=np.float32))
    v.dispose()
    v.dispose()
    assert held() == start


def test_training_gives_what_numpy_gives():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(32, 4)).astype(np.float32)
    y = rng.normal(size=(32, 2)).astype(np.float32)
    weight = rng.normal(size=(4, 2)).astype(np.float32)
    w, bias = tp.Variable(weight, name="w"), tp.Variable(np.zeros(2, np.float32), name="bias")
    inputs, targets = tp.asarray(x), tp.asarray(y)

    def loss():
        error = inputs @ w + bias - targets
        return tp.mean(error * error)

    expected_w, expected_bias = weight.astype(np.float64), np.zeros(2)
    for _ in range(3):
        value, grads = tp.variable_grads(loss)
        error = x @ expected_w + expected_bias - y
        np.testing.assert_allclose(value.item(), np.mean(error**2), rtol=1e-5)
        w -= 0.5 * grads["w"]
        bias -= 0.5 * grads["bias"]
        expected_w -= 0.5 * 2 * x.T @ error / error.size
        expected_bias -= 0.5 * 2 * error.sum(axis=0) / error.size
    assert (w.device, bias.device) == ("opencl", "opencl")
    np.testing.assert_allclose(w.numpy(), expected_w, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(bias.numpy(), expected_bias, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_memory_is_flat_over_training():
    v = tp.Variable(np.ones(256, np.float32), name="v")

    def step():
        grads = tp.variable_grads(lambda: tp.sum(v * v * 0.5)).grads
        v.assign(v - 0.1 * grads["v"])

    step()
    before = held()
    for _ in range(50):
        step()
        assert held() == before
    np.testing.assert_allclose(v.numpy(), np.full(256, 0.9**51), rtol=1e-4)


def test_a_variable_follows_what_is_assigned():
    v = tp.Variable([1.0, 2.0], name="v")
    with tp.use_backend("cpu"):
        grads = tp.variable_grads(lambda: tp.sum(v * v)).grads
        assert (v.device, grads["v"].device) == ("opencl", "cpu")
        v -= grads["v"]
    assert v.device == "cpu"
    np.testing.assert_array_equal((v * 2.0).numpy(), [-2, -4])
    v.assign(v.to("opencl"))
    assert v.device == "opencl"
    tp.remove_backend("opencl")
    np.testing.assert_array_equal(v.numpy(), [-1, -2])


def test_a_variable_that_moves_while_others_read():
    v = tp.Variable(np.zeros(16, np.float32))
    done = threading.Event()
    failures = []

    def assign():
        try:
            for turn in range(60):
                with tp.use_backend("cpu" if turn % 2 else "opencl"):
                    v.assign(np.full(16, turn, np.float32))
        finally:
            done.set()

    def read():
        try:
            while not done.is_set():
                assert len(set((v + v).numpy())) == 1
        except BaseException as error:  # noqa: BLE001  # handed to the test
            failures.append(error)

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(work,))
        for work in (assign, read, read)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    np.testing.assert_array_equal(v.numpy(), np.full(16, 59))

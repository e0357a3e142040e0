"""Memory is given back by reference count alone: 200 steps of training without the collector."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.ops import elementwise, linalg, movement
from tensorplug.testing import isolated_engine

from . import engines
from .training import STEPS, check_flat, own_garbage


def more_kernels():
    """Return what the network needs beside the basic kernels."""
    kernels = engines.basic_kernels()

    @kernels.register(linalg.BATCH_MAT_MUL)
    def matmul(a, b, *, transpose_a, transpose_b):
        a = np.swapaxes(a, -1, -2) if transpose_a else a
        b = np.swapaxes(b, -1, -2) if transpose_b else b
        return np.matmul(a, b)

    @kernels.register(elementwise.TANH)
    def tanh(x):
        return np.asarray(np.tanh(x))

    @kernels.register(elementwise.SUB)
    def subtract(a, b):
        return np.asarray(np.subtract(a, b))

    @kernels.register(elementwise.REAL_DIV)
    def divide(a, b):
        return np.asarray(np.divide(a, b))

    @kernels.register(movement.TRANSPOSE)
    def transpose(x, *, perm):
        return np.transpose(x, perm)

    return kernels


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_training_in_memory(step):
    with engines.using(engines.make({"memory": [more_kernels()]})):
        check_flat(step)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_training_on_the_cpu(step):
    with isolated_engine("cpu"):
        check_flat(step)


def test_training_on_two_devices():
    """Parameters live on one device and are copied to the other at every step."""

    def step(p, number):
        with tp.use_backend("other"):
            new = STEPS[0](p, number)
        return tp.tree_map(lambda each: each.to("memory"), new)

    tables = {"memory": [more_kernels()], "other": [more_kernels()]}
    with engines.using(engines.make(tables)):
        check_flat(step)
        assert tp.memory()["other"].transfers > 0


def test_the_census_sees_a_cycle():
    with engines.using(engines.make()):
        own_garbage()  # engines of other tests, which are cycles themselves
        x = tp.asarray([1.0])
        cycle = [x]
        cycle.append(cycle)
        del x, cycle
        assert "Tensor" in own_garbage()
        assert own_garbage() == []


def test_the_census_sees_a_leak():
    kept = []

    def step(p, number):
        kept.append(tp.asarray([float(number)]))
        return p

    with engines.using(engines.make()), pytest.raises(AssertionError, match="'Tensor': 180"):
        check_flat(step)

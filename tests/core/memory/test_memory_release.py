"""Memory is given back by reference count alone: 200 steps of training without the collector."""

from __future__ import annotations

import pytest
from tests.core.support import engines
from tests.core.support.training import STEPS, check_flat, more_kernels, own_garbage

import tensorplug as tp
from tensorplug.testing import isolated_engine


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_training_in_memory(step):
    with engines.using(engines.make({"memory": [more_kernels()]})):
        check_flat(step)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_training_on_the_cpu(step):
    with isolated_engine("cpu"):
        check_flat(step)


def test_training_on_two_devices():
    """Parameters live on one device and are copied to the other at every step."""

    def step(p, number):
        with tp.use_backend("other"):
            new = STEPS[0](p, number)
        return tp.tree_map(lambda tensor: tensor.to("memory"), new)

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

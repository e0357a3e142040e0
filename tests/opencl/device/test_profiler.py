"""Profiles and debug mode on an asynchronous device."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.dispatch.context import use_context
from tensorplug.errors import NonFiniteError
from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True)
def on_the_device(context):
    with use_context(context):
        yield


def random(*shape):
    return tp.asarray(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def test_a_kernel_is_waited_for(context, monkeypatch):
    """The time of the multiplication is the device's, not that of its submission."""
    runtime = context.device.backend.runtime
    waited = []
    finish = runtime.synchronize
    x = random(64, 64)
    tp.exp(x @ x)  # the first runs of programs are waited for, too
    monkeypatch.setattr(
        type(runtime), "synchronize", lambda _self: (waited.append(len(p.kernels)), finish())[1]
    )
    with tp.profile() as p:
        y = x @ x
        tp.exp(y)
    assert [kernel.name for kernel in p.kernels] == ["BatchMatMul", "Exp"]
    assert waited == [0, 0, 1, 1]  # before and after each
    assert all(kernel.seconds > 0 for kernel in p.kernels)
    assert {kernel.device for kernel in p.kernels} == {"opencl"}
    assert {kernel.how for kernel in p.kernels} == {"native"}


def test_memory_is_the_device_s():
    gc.collect()
    x = random(256)
    with tp.profile() as p:
        y = tp.exp(x)
        tp.negative(y)
        view = tp.reshape(y, (16, 16))
        del y
        assert p.new_bytes >= 1024  # what the pool gave
        held = p.new_bytes
        del view
        assert p.new_bytes == 0
    assert [kernel.new_bytes for kernel in p.kernels] == [held, held, 0]
    assert p.peak_bytes == 2 * held
    assert (p.new_bytes, p.new_tensors, p.uploads, p.transfers) == (0, 0, 0, 0)


def test_the_tape_s_buffers_are_held():
    sizes = []

    def loss(x):
        y = tp.exp(x)
        z = tp.negative(y)
        y.dispose()
        sizes.append(p.new_bytes)
        return tp.sum(z)

    with isolated_engine("opencl"):  # with the core's gradient rules
        x = random(16)
        with tp.profile() as p:
            tp.grad(loss)(x)
    assert sizes[0] == p.kernels[0].new_bytes + p.kernels[1].new_bytes
    assert p.new_bytes == 0


def test_debug_mode_reads_what_the_device_computed():
    with tp.debug():
        tp.exp(tp.asarray([1.0, 2.0]))
        with pytest.raises(NonFiniteError, match="made 1 infinity of 2, at \\[1\\]: inf"):
            tp.exp(tp.asarray([1.0, 1000.0]))
        with pytest.raises(NonFiniteError, match="holds 1 NaN of 1"):
            tp.asarray([math.nan])


def test_time_waits_for_the_device():
    timing = tp.time(lambda x: x @ x, random(128, 128), repeat=3)
    assert timing.kernel_ms > 0
    assert timing.wall_ms > 0

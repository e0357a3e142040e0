"""Kernels under the leak check; training that leaves nothing on the device."""

from __future__ import annotations

import functools
import gc
import sys

import numpy as np
import pytest
from tests.core.support import training
from tests.core.support.catalogue_calls import KERNELS, cases, run_twice
from tests.opencl.conftest import require_device

import tensorplug as tp
from tensorplug.contract.backend import CountsBuffers
from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.dispatch.calls import dispatch_binary
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.errors import BackendMemoryError, LeakError
from tensorplug.observers.leaks import LeakCheck
from tensorplug.ops import creation
from tensorplug.ops.elementwise.arithmetic import ADD
from tensorplug.testing import isolated_engine


@pytest.fixture
def checked(context):
    """Enter a context in which kernels are checked."""
    with use_context(context.replace(observers=(LeakCheck(),))) as entered:
        yield entered


@pytest.mark.slow
@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_kernel_leaks(kernel, context):
    called = [run_twice(*case) for case in cases(kernel)]
    registered = context.engine.registry.state.kernel(kernel, "opencl") is not None
    assert any(called) is registered


# Kernels with faults ------------------------------------------------------------------------


def new(backend):
    return backend.from_host(np.zeros(3, np.float32))


FAULTS = [
    ("keeps one", lambda stash, backend, _: stash.append(new(backend)), "leaked 1 buffer"),
    (
        "keeps a view of its own",
        lambda stash, backend, _: stash.append(new(backend).view((2,), 1)),
        "leaked 1 buffer",
    ),
    (
        "drops what it kept",
        lambda stash, *_: stash.clear(),
        "freed 5 buffers that it did not allocate",
    ),
    ("returns what it kept", lambda stash, *_: stash[0], "or returned as many old ones"),
    (
        "frees an input",
        lambda _stash, _backend, a: a.memory.release(),
        "freed 1 buffer that it did",
    ),
    (
        "takes an input's memory",
        lambda *arguments: take(arguments[2]),
        "freed memory of its input 'a'",
    ),
    (
        "takes an input's memory and keeps as much",
        lambda stash, backend, a: (take(a), stash.append(new(backend)))[1],
        "freed memory of its input 'a', .*; it leaked 1 buffer",
    ),
]
FINE = [
    ("a temporary", lambda _, backend, __: del_(new(backend))),
    ("a view of an input", lambda _stash, _backend, a: a.view((3,))),
    ("keeps a view of an input", lambda stash, _backend, a: stash.append(a.view((2,), 1))),
    ("keeps one without elements", lambda stash, backend, _: stash.append(empty(backend))),
    ("exchanges one", lambda stash, backend, _: stash.__setitem__(0, new(backend))),
]


def take(buffer):
    buffer.memory = None


def del_(_buffer):
    return None


def empty(backend):
    return backend.from_host(np.zeros(0, np.float32))


@pytest.fixture
def replaced(checked):
    """Return a function that makes Add return the result of ``act``, or else a copy of ``b``."""
    backend = checked.device.backend
    stash = [new(backend) for _ in range(5)]
    handles = []

    def replace(act):
        def add(a, b, *, backend):
            copied = backend.from_host(backend.to_host(b))
            other = act(stash, backend, a)
            return copied if other is None else other

        entry = kernel_entry(ADD, add, override=True)
        handles.append(checked.engine.registry.add(Owner("faulty"), kernels=[("opencl", entry)]))

    yield replace
    for handle in handles:
        handle.remove()


def operands():
    return [creation.asarray(np.float32([1, 2, 3])), creation.asarray(np.float32([4, 5, 6]))]


@pytest.mark.parametrize(("act", "fault"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_faults_are_seen(replaced, act, fault):
    replaced(act)
    place = r"kernel Add\(.*\) of faulty on backend 'opencl' "
    with pytest.raises(LeakError, match=place + f".*{fault}"):
        dispatch_binary(ADD, *operands())


@pytest.mark.parametrize("act", [act for _, act in FINE], ids=[what for what, _ in FINE])
def test_kernels_without_faults_pass(replaced, act):
    replaced(act)
    x, y = operands()
    for _ in range(3):
        assert dispatch_binary(ADD, x, y).shape == (3,)


# Counting -----------------------------------------------------------------------------------


def test_counts_are_exact(backend):
    assert isinstance(backend, CountsBuffers)
    assert backend.live_buffers() == 0
    buffers = [backend.from_host(np.zeros(n, np.float32)) for n in (1, 1000, 0, 3)]
    assert [backend.counts(buffer) for buffer in buffers] == [True, True, False, True]
    assert backend.live_buffers() == 3
    view = buffers[1].view((10,), 5)
    buffers[1] = None
    assert backend.live_buffers() == 3
    assert backend.counts(view)
    del view
    assert backend.live_buffers() == 2  # what the pool keeps for reuse is not counted
    backend.to_host(buffers[0])
    assert backend.live_buffers() == 2
    buffers.clear()
    assert backend.live_buffers() == 0


# Training -----------------------------------------------------------------------------------


STEPS = (
    training.tidied,
    training.with_a_custom_gradient,
    training.with_second_order,
    training.with_failures,
    training.with_variables,
)


def forget_structures():
    """Empty the caches of the library of loops: a kernel that is prepared again adds to them."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tensorplug_loops."):
            for cached in vars(module).values():
                if isinstance(cached, functools._lru_cache_wrapper):
                    cached.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_training_leaves_nothing_on_the_device(step):
    """This includes blocks of the pool: ``check_flat`` compares the backend's own figures."""
    require_device()
    with isolated_engine("opencl"):
        device = current_context().device
        training.check_flat(step, forget=forget_structures)
        device.forget_plans()  # the programs of decompositions hold constants
        gc.collect()
        assert device.backend.live_buffers() == len(device.constants)
        assert tp.memory()["opencl"].buffers == 0


class Pool:
    """The real pool, out of room at one allocation and when that is tried again."""

    def __init__(self, real):
        self.real = real
        self.made = 0
        self.fails_at = -1

    def allocate(self, nbytes):
        if self.made + 1 == self.fails_at:
            raise MemoryError("none left")
        self.made += 1
        return self.real.allocate(nbytes)

    def __getattr__(self, name):
        return getattr(self.real, name)


@pytest.mark.slow
def test_each_allocation_of_the_device_fails_once():
    require_device()
    with isolated_engine("opencl"):
        device = current_context().device
        memory = device.backend.runtime.memory
        pool = memory.pool = Pool(memory.pool)

        def compute():
            return training.with_second_order(training.parameters(), 1)["w1"].numpy()

        expected = compute()
        start, context = device.backend.live_buffers(), current_context()
        gc.collect()
        gc.disable()
        try:
            for failing in range(1, 2000, 3):
                pool.made, pool.fails_at = 0, failing
                try:
                    result = compute()
                except BackendMemoryError as error:
                    assert "none left" in str(error.__cause__)  # noqa: PT017  # freed at once
                else:
                    break
                assert device.backend.live_buffers() == start, failing
                assert current_context() is context
        finally:
            gc.enable()
        assert failing > 100
        np.testing.assert_array_equal(result, expected)

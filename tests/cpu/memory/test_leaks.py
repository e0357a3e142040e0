"""Kernels under the leak check, and how NumPy's memory is counted for it."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from tests.core.support.catalogue_calls import KERNELS, cases, run_twice

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.dispatch.calls import dispatch_binary
from tensorplug.dispatch.context import use_context
from tensorplug.errors import LeakError
from tensorplug.observers.leaks import LeakCheck
from tensorplug.ops import creation
from tensorplug.ops.elementwise.arithmetic import ADD
from tensorplug.plugin import CountsBuffers
from tensorplug_cpu.backend import CpuBackend
from tensorplug_cpu.memory import tracing as memory_tracing

TEXT = np.dtypes.StringDType()


@pytest.fixture(autouse=True)
def traced_here_alone():
    """Stop what the first count has started."""
    assert not tracemalloc.is_tracing()
    yield
    memory_tracing.stop()


@pytest.fixture
def checked(context):
    """Enter a context in which kernels are checked."""
    with use_context(context.replace(observers=(LeakCheck(),))) as entered:
        yield entered


@pytest.mark.slow
@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_kernel_leaks(kernel, context):
    called = []
    for spec, case in cases(kernel):
        called.append(run_twice(spec, case))
        memory_tracing.stop()  # what was made so far makes counting slow
    registered = context.engine.registry.state.kernel(kernel, "cpu") is not None
    assert any(called) is registered


# Kernels with faults ------------------------------------------------------------------------

stash = []


def adding(act):
    def add(a, b):
        result = np.add(a, b)
        act(a)
        return result

    return add


FAULTS = [
    ("keeps one", lambda _: stash.append(np.zeros(2)), "leaked 1 buffer"),
    ("keeps a large one", lambda _: stash.append(np.zeros(100_000)), "leaked 1 buffer"),
    ("keeps some without elements", lambda _: stash.extend([np.zeros(0)] * 3), "leaked 1 buffer"),
    ("keeps strings", lambda _: stash.append(np.array(["a"], TEXT)), "leaked 1 buffer"),
    ("keeps many", lambda _: stash.extend(np.zeros(1) for _ in range(9)), "leaked 9 buffers"),
    ("keeps a view of its own", lambda _: stash.append(np.zeros(9)[2:4]), "leaked 1 buffer"),
    ("drops what it kept", lambda _: stash.clear(), "freed 5 buffers that it did not allocate"),
    ("empties an input", lambda a: a.resize(0, refcheck=False), "memory of its input 'a'"),
]
FINE = [
    ("a temporary", lambda _: np.zeros(1000).sum()),
    ("keeps a view of an input", lambda a: stash.append(a[1:])),
    ("keeps a scalar", lambda _: stash.append(np.float32(3))),
    ("keeps what is not NumPy's", lambda _: stash.append(np.frombuffer(b"abcdefgh"))),
    ("exchanges one", lambda _: stash.__setitem__(0, np.zeros(3))),
]


@pytest.fixture
def replaced(checked):
    """Return a function that replaces the kernel of Add, and five arrays in the stash."""
    memory_tracing.live_arrays()  # from here on, so that these five are counted
    stash[:] = [np.zeros(3) for _ in range(5)]
    handles = []

    def replace(function):
        entry = kernel_entry(ADD, function, override=True)
        handles.append(checked.engine.registry.add(Owner("faulty"), kernels=[("cpu", entry)]))

    yield replace
    for handle in handles:
        handle.remove()
    stash.clear()


@pytest.mark.parametrize(("act", "fault"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_faults_are_seen(replaced, act, fault):
    replaced(adding(act))
    x, y = creation.asarray([1.0, 2.0]), creation.asarray([3.0, 4.0])
    with pytest.raises(LeakError, match=rf"kernel Add\(.*\) of faulty on backend 'cpu' .*{fault}"):
        dispatch_binary(ADD, x, y)


@pytest.mark.parametrize("act", [act for _, act in FINE], ids=[what for what, _ in FINE])
def test_kernel_without_a_leak(replaced, act):
    replaced(adding(act))
    x, y = creation.asarray([1.0, 2.0]), creation.asarray([3.0, 4.0])
    for _ in range(3):
        assert dispatch_binary(ADD, x, y).tolist() == [4, 6]


# Counting -----------------------------------------------------------------------------------


BASE = np.arange(10.0)
WORDS = np.array(["a", "b" * 100], TEXT)
OWN = [
    ("a few elements, from NumPy's store of small pieces", lambda: np.zeros(3), 1),
    ("many elements", lambda: np.zeros(100_000), 1),
    ("no elements", lambda: np.zeros((3, 0)), 1),
    ("rank 0", lambda: np.array(3), 1),
    ("strings", lambda: np.array(["a", "b" * 100], TEXT), 1),
    ("no strings", lambda: np.array([], TEXT), 1),
    ("complex", lambda: np.zeros(3, complex), 1),
    ("a copy", BASE.copy, 1),
    ("a view", lambda: BASE[2:], 0),
    ("a view of strings", lambda: WORDS[1:], 0),
    ("another shape", lambda: BASE.reshape(2, 5), 0),
    ("a scalar", lambda: np.float64(3), 0),
    ("an element", lambda: BASE[0], 0),
    ("another's memory", lambda: np.frombuffer(b"abcdefgh"), 0),
    ("a thousand", lambda: [np.zeros(2) for _ in range(1000)], 1000),
]


@pytest.mark.parametrize(("make", "number"), [o[1:] for o in OWN], ids=[o[0] for o in OWN])
def test_counts_are_exact(make, number):
    gc.collect()
    before = memory_tracing.live_arrays()
    made = make()
    assert memory_tracing.live_arrays() - before == number
    del made
    assert memory_tracing.live_arrays() == before
    assert memory_tracing.live_arrays() == before  # counting makes none


@pytest.mark.parametrize(
    ("array", "owns"),
    [
        (BASE, True),
        (BASE[2:].reshape(2, 4), True),
        (np.zeros(0), True),
        (WORDS[1:], True),
        (np.broadcast_to(BASE, (3, 10)), True),
        (np.frombuffer(b"abcdefgh"), False),
        (np.frombuffer(b"abcdefgh")[:1], False),
        (np.frombuffer(bytearray(8), np.int16).reshape(2, 2), False),
    ],
)
def test_owner_of_memory(array, owns):
    assert CpuBackend().counts(array) is owns
    assert not tracemalloc.is_tracing()


def test_backend_counts_buffers():
    assert isinstance(CpuBackend(), CountsBuffers)


PROGRAM = """
import tracemalloc
import tensorplug as tp
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.observers.leaks import LeakCheck

with tp.use_backend("cpu"):
    x = tp.asarray([1.0])
    tp.memory(), tp.vjp(tp.exp, x), tp.tidy(tp.exp, x)
    assert not tracemalloc.is_tracing(), "it is traced without need"
    with use_context(current_context().replace(observers=(LeakCheck(),))):
        assert not tracemalloc.is_tracing(), "it is traced before the first count"
        tp.exp(x)
        assert tracemalloc.is_tracing()
    tp.find_backend("cpu").stop_counting()
    assert not tracemalloc.is_tracing(), "it is traced to the end"
    with tp.debug(leaks=True):
        tp.exp(x)
        assert tracemalloc.is_tracing()
    assert not tracemalloc.is_tracing(), "debug leaves it traced"
    tracemalloc.start()
    tp.debug(tp.exp, x, leaks=True)
    assert tracemalloc.is_tracing(), "it was the program that wanted it"
"""


def test_nothing_is_traced_before_the_first_count():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("texts", "nbytes"),
    [
        ([], 0),
        (["a", "", "x" * 15], 0),
        (["x" * 16], 16),
        ([["é" * 7, "é" * 8], ["", "a" * 99]], 115),
    ],
)
def test_text_outside_of_an_array(texts, nbytes):
    array = np.array(texts, TEXT)
    assert memory_tracing.text_bytes(array) == nbytes
    view = array[..., ::-1]
    assert CpuBackend().allocation(view) == (id(array), array.nbytes + nbytes)

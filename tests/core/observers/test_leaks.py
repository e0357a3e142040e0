"""The leak check finds buffers that a kernel leaves behind, and those that it frees wrongly."""

from __future__ import annotations

import gc
import itertools
import re
import threading
import weakref

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.counting import CountingBackend
from tests.core.support.engines import MemoryBackend, spec_of, together

import tensorplug as tp
from tensorplug.contract.backend import CountsBuffers
from tensorplug.dispatch.context import Context, current_context, use_context
from tensorplug.errors import KernelOutputError, LeakError, UncheckedWarning
from tensorplug.observers.leaks import LeakCheck

SPEC = spec_of("Suspect", ("a", "b"))
LISTED = spec_of("Listed", ("xs[]",), infer=lambda xs: xs[0])
SEVERAL = spec_of("Several", outputs=("p", "q", "r"), infer=lambda x: (x, x, x))


@pytest.fixture
def leaks():
    """Yield an engine on a counting backend, every call under the check, and a list."""
    engine = engines.make(
        {"memory": [], "plain": []},
        fallback="allow",
        rules=False,
        kinds={"memory": CountingBackend},
    )
    with use_context(Context(engine, observers=(LeakCheck(),))):
        yield engine


@pytest.fixture
def stash():
    return []


def two(values=(1.0, 2.0)):
    return tp.asarray(values)


def kernel_of(act, stash):
    """Return a kernel that adds; ``act(backend, stash, a, b)`` may return another output."""

    def kernel(a, b, *, backend):
        other = act(backend, stash, a, b)
        return backend.make(a.array + b.array) if other is None else other

    return kernel


def leak(number):
    def act(backend, stash, _a, _b):
        stash.extend(backend.make([1.0]) for _ in range(number))

    return act


def drop(number):
    def act(_backend, stash, _a, _b):
        del stash[:number]

    return act


def free(*names):
    def act(backend, _stash, a, b):
        for name in names:
            backend.free({"a": a, "b": b}[name])

    return act


def at_call(number, act):
    """Return what acts at one call, counted from 0, and is clean at the others."""
    calls = itertools.count()

    def acting(*args):
        return act(*args) if next(calls) == number else None

    return acting


def both(*acts):
    def act(*args):
        for item in acts:
            item(*args)

    return act


CLEAN = [
    ("a new buffer", lambda *_: None),
    ("an input", lambda _backend, _stash, a, _b: a),
    ("a view of an input", lambda backend, _stash, a, _b: backend.view(a, a.array[:])),
    ("a temporary given up", lambda backend, _stash, *_: (backend.make([1.0]), None)[1]),
    (
        "a temporary in a cycle broken by hand",
        lambda backend, _stash, *_: [backend.make([1.0])].clear(),
    ),
    ("a private buffer exchanged", both(drop(1), leak(1))),
]


@pytest.mark.usefixtures("leaks")
@pytest.mark.parametrize(("what", "act"), CLEAN, ids=[what for what, _ in CLEAN])
def test_clean_kernels_pass(what, act, stash):
    x, y = two(), two((3.0, 4.0))
    stash.append(current_context().engine.devices.active.backend.make([1.0]))
    tp.register_kernel(SPEC, "memory", kernel_of(act, stash))
    for _ in range(3):
        result = tp.run_kernel(SPEC, [x, y])
    assert result.tolist() == ([1, 2] if "input" in what else [4, 6])


LEAKY = [
    ("one", leak(1), "leaked 1 buffer, neither"),
    ("three", leak(3), "leaked 3 buffers, neither"),
    ("frees its own of an earlier call", drop(1), "freed 1 buffer that it did not allocate"),
    ("frees two", drop(2), "freed 2 buffers that it did not allocate"),
    ("returns what it kept", lambda _backend, stash, *_: stash[0], "or returned as many"),
    ("frees an input", free("b"), "freed memory of its input 'b'.*belongs to the caller"),
    ("frees both inputs", free("a", "b"), "freed memory of its input 'a', 'b'"),
    (
        "a leak masked by a free",
        both(leak(1), free("a")),
        "freed memory of its input 'a', [^;]*; it leaked 1 buffer, neither",
    ),
    (
        "a free masked by a leak of two",
        both(leak(2), free("b")),
        "freed memory of its input 'b', [^;]*; it leaked 2 buffers",
    ),
]
START = "kernel Suspect(a=float32[2], b=float32[2]) of the running program on backend 'memory' "


@pytest.mark.usefixtures("leaks")
@pytest.mark.parametrize(("act", "fault"), [row[1:] for row in LEAKY], ids=[e[0] for e in LEAKY])
@pytest.mark.parametrize("calls_before", [0, 1])
def test_faults_are_named(act, fault, stash, calls_before):
    """At a plan's first call, and at one that finds its plan."""
    x, y = two(), two((3.0, 4.0))
    tp.register_kernel(SPEC, "memory", kernel_of(at_call(calls_before, act), stash))
    backend = current_context().engine.devices.active.backend
    stash.extend(backend.make(np.float32([1, 2])) for _ in range(3))
    for _ in range(calls_before):
        assert tp.run_kernel(SPEC, [x, y]).tolist() == [4, 6]
    with pytest.raises(LeakError, match=re.escape(START) + ".*" + fault) as caught:
        tp.run_kernel(SPEC, [x, y])
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.usefixtures("leaks")
def test_an_input_given_twice_is_one_buffer(stash):
    tp.register_kernel(SPEC, "memory", kernel_of(free("a"), stash))
    x = two()
    with pytest.raises(
        LeakError, match=r"freed memory of its input 'a'.*belongs to the caller's[^;]*$"
    ):
        tp.run_kernel(SPEC, [x, x])


@pytest.mark.usefixtures("leaks")
def test_shrinking_an_input_is_seen(stash):
    def shrink(_backend, _stash, a, _b):
        a.memory.nbytes = 4

    tp.register_kernel(SPEC, "memory", kernel_of(shrink, stash))
    with pytest.raises(LeakError, match="freed memory of its input 'a'"):
        tp.run_kernel(SPEC, [two(), two()])


@pytest.mark.usefixtures("leaks")
@pytest.mark.parametrize("shared", [False, True])
def test_multiple_outputs(shared, stash):
    def kernel(x, *, backend):
        first = backend.make(x.array)
        if shared:
            return [first, backend.view(first, first.array), x]
        stash.extend([] if len(stash) else [backend.make(1.0)])
        return [first, backend.make(x.array), backend.make(x.array)]

    tp.register_kernel(SEVERAL, "memory", kernel)
    if shared:
        assert [tensor.tolist() for tensor in tp.run_kernel(SEVERAL, [two()])] == [[1, 2]] * 3
        return
    with pytest.raises(LeakError, match="leaked 1 buffer"):
        tp.run_kernel(SEVERAL, [two()])
    assert len(tp.run_kernel(SEVERAL, [two()])) == 3


@pytest.mark.usefixtures("leaks")
def test_variadic_and_empty(stash):
    def kernel(xs, *, backend):
        stash.append(1)
        if len(stash) == 2:
            backend.free(xs[1])
        return backend.make(xs[0].array)

    tp.register_kernel(LISTED, "memory", kernel)
    empty = two(())  # no memory under it, nor under what the kernel returns
    assert tp.run_kernel(LISTED, [[empty, two(), empty]]).tolist() == []
    with pytest.raises(LeakError, match=r"freed memory of its input 'xs', [^;]*$"):
        tp.run_kernel(LISTED, [[two(), two()]])


@pytest.mark.usefixtures("leaks")
def test_tensors_made_in_preparation_are_kept():
    def prepare(a, b, *, backend):
        kept = backend.make(np.float32([100, 200]))
        return lambda a, b: backend.make(a.array + b.array + kept.array)

    tp.register_kernel(SPEC, "memory", prepare, prepares=True)
    for _ in range(2):
        assert tp.run_kernel(SPEC, [two(), two()]).tolist() == [102, 204]


@pytest.mark.usefixtures("leaks")
def test_a_kernel_that_raises_says_what_it_said(stash):
    def act(backend, stash, *_):
        stash.append(backend.make(1.0))
        raise ZeroDivisionError("stuck")

    tp.register_kernel(SPEC, "memory", kernel_of(act, stash))
    with pytest.raises(ZeroDivisionError, match="stuck"):
        tp.run_kernel(SPEC, [two(), two()])
    assert gc.isenabled()
    tp.register_kernel(SPEC, "memory", kernel_of(lambda *_: None, stash), override=True)
    assert tp.run_kernel(SPEC, [two(), two()]).tolist() == [2, 4]


@pytest.mark.usefixtures("leaks")
@pytest.mark.parametrize("turn", [0, 1])
def test_a_non_buffer_is_named(turn, stash):
    results = iter([None] * turn + [np.zeros(2, np.float32)])
    tp.register_kernel(SPEC, "memory", kernel_of(lambda *_: next(results), stash))
    for _ in range(turn):
        tp.run_kernel(SPEC, [two(), two()])
    with pytest.raises(KernelOutputError, match="out is not a buffer of backend 'memory'"):
        tp.run_kernel(SPEC, [two(), two()])


@pytest.mark.usefixtures("leaks")
@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_during_the_timing(enabled, stash):
    """Cycles that hold buffers of earlier calls would look like negative leaks."""

    def act(_backend, _stash, *_):
        for _ in range(50_000):  # more than any generation's threshold
            stash.append([])
        assert alive() is not None

    tp.register_kernel(SPEC, "memory", kernel_of(at_call(1, act), stash))
    x = two()
    tp.run_kernel(SPEC, [x, x])
    cycle = [two()]
    cycle.append(cycle)
    alive = weakref.ref(cycle[0])
    was = gc.isenabled()
    try:
        gc.collect()  # so that the next collection is far
        (gc.enable if enabled else gc.disable)()
        del cycle
        tp.run_kernel(SPEC, [x, x])
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


@pytest.mark.usefixtures("leaks")
def test_a_decomposition_is_checked_kernel_by_kernel(stash):
    tp.register_kernel("Exp", "memory", lambda x, *, backend: backend.make(np.exp(x.array)))
    tp.register_kernel(SPEC, "memory", kernel_of(leak(1), stash))
    outer = spec_of("Outer")
    tp.register_decomposition(outer, lambda x: tp.run_kernel(SPEC, [tp.exp(x), x]))
    with pytest.raises(LeakError, match=r"kernel Suspect.* leaked 1 buffer"):
        tp.run_kernel(outer, [two()])
    tp.register_kernel(SPEC, "memory", kernel_of(lambda *_: None, stash), override=True)
    assert tp.run_kernel(outer, [two((0.0, 0.0))]).tolist() == [1, 1]


def test_a_backend_that_cannot_count_says_so_once(leaks):
    tp.register_kernel(SPEC, "plain", lambda a, b: a + b)
    with tp.use_backend("plain"):
        x = two()
        message = "backend 'plain' does not count its buffers .*not checked for leaks"
        with pytest.warns(UncheckedWarning, match=message):
            first = tp.run_kernel(SPEC, [x, x])
        second = tp.run_kernel(SPEC, [x, x])  # a warning would be an error
        assert first.tolist() == second.tolist() == [2, 4]
    assert not isinstance(MemoryBackend("plain"), CountsBuffers)
    assert isinstance(CountingBackend("memory"), CountsBuffers)


def test_a_fallback_is_checked_where_it_runs(leaks, stash):
    tp.register_kernel(SPEC, "memory", kernel_of(leak(1), stash))
    with tp.use_backend("plain"), pytest.raises(LeakError, match="on backend 'memory' leaked 1"):
        tp.run_kernel(SPEC, [two(), two()])


def test_checked_kernels_of_several_threads_do_not_mix(leaks, stash):
    """Each waits inside for another one, which must not come."""
    inside = threading.Barrier(2)
    context = current_context()

    def act(backend, _stash, *_):
        temporary = backend.make([1.0])
        try:
            inside.wait(0.05)
        except threading.BrokenBarrierError:
            return
        finally:
            del temporary
        stash.append("two at once")

    tp.register_kernel(SPEC, "memory", kernel_of(act, stash))
    arguments = [(two(), two()) for _ in range(4)]

    def work(number):
        with use_context(context):
            results.append(tp.run_kernel(SPEC, arguments[number]))

    results = []
    together(4, work)
    assert stash == []
    assert [result.tolist() for result in results] == [[2, 4]] * 4


@pytest.mark.usefixtures("leaks")
def test_no_state_grows(stash):
    """The check keeps no state: it judges the thousandth call as it does the first."""
    tp.register_kernel(SPEC, "memory", kernel_of(at_call(999, leak(1)), stash))
    x = two()
    for _ in range(999):
        tp.run_kernel(SPEC, [x, x])
    with pytest.raises(LeakError, match="leaked 1 buffer"):
        tp.run_kernel(SPEC, [x, x])
    assert tp.run_kernel(SPEC, [x, x]).tolist() == [2, 4]


def test_counting_stops_when_the_check_is_finished(leaks, stash):
    (check,) = current_context().observers
    check.finish()  # nothing was counted yet
    backend = leaks.devices.active.backend
    assert backend.stopped == 0
    tp.register_kernel(SPEC, "memory", kernel_of(at_call(1, leak(1)), stash))
    tp.run_kernel(SPEC, [two(), two()])
    check.finish()
    check.finish()
    assert backend.stopped == 1
    with pytest.raises(LeakError, match="leaked 1 buffer"):  # it may go on
        tp.run_kernel(SPEC, [two(), two()])
    leaks.devices.close("memory")
    check.finish()
    assert backend.stopped == 1


def test_debug_finishes_its_check(leaks, stash):
    tp.register_kernel(SPEC, "memory", kernel_of(at_call(2, leak(1)), stash))
    backend = leaks.devices.active.backend
    with tp.debug(leaks=True):
        tp.run_kernel(SPEC, [two(), two()])
        assert backend.stopped == 0
    assert backend.stopped == 1
    tp.debug(tp.run_kernel, SPEC, [two(), two()])
    assert backend.stopped == 1
    with pytest.raises(LeakError, match="leaked 1 buffer"):
        tp.debug(tp.run_kernel, SPEC, [two(), two()], leaks=True)
    assert backend.stopped == 2

"""An allocation that fails, wherever it is: nothing is left behind, and all goes on."""

from __future__ import annotations

import functools
import gc
from collections import Counter

import numpy as np
import pytest
from tests.core.support import engines, training
from tests.core.support.counting import CountingBackend, counted
from tests.core.support.engines import spec_of

import tensorplug as tp
from tensorplug.dispatch.context import Context, current_context, use_context
from tensorplug.errors import BackendMemoryError

HALF = spec_of("Half")


@pytest.fixture
def bounded():
    """Yield an engine whose backends can run out of room at any allocation."""
    tables = {name: [counted(training.more_kernels())] for name in ("memory", "other")}
    engine = engines.make(tables, kinds=dict.fromkeys(tables, CountingBackend))
    with use_context(Context(engine)):
        tp.register_decomposition(HALF, lambda x: tp.exp(tp.negative(x)) * tp.exp(x) * x * 0.5)
        yield engine


def step_of(step):
    """Return a computation, called like the step: the gradients and the update of one step."""

    @functools.wraps(step)
    def compute():
        return step(training.parameters(), 1)

    return compute


def second_order():
    f = training.own_tanh
    return tp.grad(lambda x: tp.sum(tp.grad(lambda x: tp.sum(f(x) * x))(x)))(tp.asarray([0.5, 1]))


def on_both_devices():
    with tp.use_backend("other"):
        x = tp.asarray([1.0, 2.0])
    y = tp.add(x, tp.asarray([3.0, 4.0]))
    with tp.use_backend("other"):
        return y * 2.0


def in_a_decomposition():
    x = tp.asarray([1.0, 2.0])
    return tp.grad(lambda x: tp.sum(tp.run_kernel(HALF, [x]) * x))(x)


def in_nested_scopes():
    def f(x):
        with tp.tidy():
            return tp.keep(tp.tidy(lambda: tp.sum(tp.multiply(tp.exp(x * 2.5), [1.0, 3.0]))))

    with tp.tidy():
        return tp.keep(tp.tidy(tp.grad(f), tp.asarray([1.0, 2.0])))


def with_promotion():
    return tp.add(tp.asarray([1, 2], dtype="int16"), tp.asarray([1.5, 2.5]))


def multiple_outputs():
    x = tp.asarray([1.0, 3.0, 2.0])
    return tp.run_kernel("TopK", [tp.multiply(x, x)], {"k": 2})


COMPUTATIONS = [
    step_of(training.tidied_as_a_block),
    step_of(training.with_a_custom_gradient),
    step_of(training.with_a_checkpoint),
    step_of(training.with_pulls),
    step_of(training.with_variables),
    second_order,
    on_both_devices,
    in_a_decomposition,
    in_nested_scopes,
    with_promotion,
    multiple_outputs,
]


def values(result):
    actual = []
    tp.tree_map(lambda item: actual.append(item.numpy()), result)
    return actual


def figures():
    """Return what is held; numbers that the engine keeps are not counted."""
    constants = sum(len(device.constants) for device in current_context().engine.devices.listed())
    result = Counter({"live": sum(len(backend.live) for backend in backends()) - constants})
    for name, held in tp.memory().items():
        for figure in ("tensors", "buffers", "bytes", "taped"):
            result[name, figure] = getattr(held, figure)
    return result


def backends():
    return current_context().engine.devices.source.backends.values()


def forget():
    """Forget plans and constants, so that making them can fail too."""
    for device in current_context().engine.devices.listed():
        device.forget_plans()
        device.constants.clear()


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("compute", COMPUTATIONS, ids=lambda compute: compute.__name__)
@pytest.mark.parametrize("anew", [False, True], ids=["known plans", "new plans"])
def test_each_allocation_fails_once(compute, anew):
    expected = values(compute())
    context = current_context()
    for backend in list(backends()):
        gc.collect()
        gc.disable()
        try:
            failures = sweep(backend, compute, expected, anew=anew)
        finally:
            gc.enable()
        assert failures > 0
        assert current_context() is context


def sweep(backend, compute, expected, *, anew):
    """Let each allocation on ``backend`` fail in turn; return how many there were."""
    before = figures()
    for failing in range(1, 2000):
        if anew:
            forget()
        backend.made, backend.fails_at = 0, failing
        try:
            result = compute()
        except BackendMemoryError as error:
            check_message(error, backend.name)
        else:
            backend.fails_at = -1
            check_values(result, expected)
            return failing - 1
        backend.fails_at = -1
        after = figures()
        assert after == before, f"allocation {failing}: {after - before}, {before - after}"
        if failing % 10 == 1:  # the same computation works where there is room
            check_values(compute(), expected)
    raise AssertionError("it never ends")


def check_message(error, name):
    assert str(error).startswith(f"{name} has no room for ")
    notes = error.__notes__
    assert notes[0].startswith(("in kernel ", "while ")), notes
    assert f"backend {name!r}" in notes[0]


def check_values(result, expected):
    for actual, wanted in zip(values(result), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


# By hand, one by one --------------------------------------------------------------------------


def fail_at(turn):
    backend = current_context().engine.devices.active.backend
    backend.made, backend.fails_at = 0, turn


KERNEL = (
    "in kernel Multiply(a=float32[2], b=float32[2]) of memory-distribution 2.0 on backend 'memory'"
)
RULE = "in the gradient of 'Multiply' with respect to 'a'"
COPIED = "to backend 'memory'"

PLACES = [
    ("a kernel", 1, lambda x: tp.multiply(x, x), [KERNEL]),
    ("a rule", 2, lambda x: tp.vjp(lambda x: tp.multiply(x, x), x)[1](x), [KERNEL, RULE]),
    ("an upload", 1, lambda _: tp.asarray([1.0]), [f"while copying asarray: obj {COPIED}"]),
    ("a list", 1, lambda x: tp.add(x, [1.0, 2.0]), [f"while copying Add: input 'b' {COPIED}"]),
    ("a number", 1, lambda x: x * 7.25, [f"while copying Multiply: input 'b' {COPIED}"]),
]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    ("turn", "call", "notes"), [place[1:] for place in PLACES], ids=[place[0] for place in PLACES]
)
def test_the_notes_name_the_failed_call(turn, call, notes):
    x = tp.asarray([1.0, 2.0])
    before = figures()
    fail_at(turn)
    with pytest.raises(BackendMemoryError, match="memory has no room for") as caught:
        call(x)
    assert caught.value.__notes__ == notes
    del caught
    gc.collect()
    assert figures() == before
    call(x)


@pytest.mark.parametrize(
    ("call", "notes", "result"),
    [
        (lambda there: there.to("memory"), [], [1, 2]),
        (tp.negative, [f"while copying Neg: input 'x' (float32[2]) {COPIED}"], [-1, -2]),
    ],
    ids=["asked for", "needed"],
)
def test_a_transfer_that_fails(bounded, call, notes, result):
    with tp.use_backend("other"):
        there = tp.asarray([1.0, 2.0])
    tp.asarray([1.0, 1.0]).dispose()
    before = figures()
    fail_at(1)
    with pytest.raises(BackendMemoryError, match="memory has no room for 8 bytes") as caught:
        call(there)
    assert getattr(caught.value, "__notes__", []) == notes
    del caught
    gc.collect()
    assert figures() == before
    assert there.tolist() == [1, 2]
    assert call(there).tolist() == result


@pytest.mark.usefixtures("bounded")
def test_a_scope_that_fails_inside_keeps_what_was_given_to_keep():
    kept = []

    def work():
        x = tp.asarray([1.0])
        kept.append(tp.keep(tp.add(x, x)))
        fail_at(1)
        tp.add(x, x)

    with tp.tidy():
        outer = tp.asarray([5.0])
        with pytest.raises(BackendMemoryError):
            tp.tidy(work)
        assert outer.tolist() == [5]
        again = tp.add(outer, kept[0])
        assert again.tolist() == [7]
    assert (outer.is_disposed, again.is_disposed) == (True, True)
    assert kept[0].tolist() == [2]

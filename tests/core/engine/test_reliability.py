"""Failures stay isolated: threads, memory, lost devices, interruptions."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.core.support.engines import expect, spec_of, together, using

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.device import PLAN_LIMIT
from tensorplug.errors import BackendMemoryError, DeviceLostError


def loss(x, y):
    return tp.sum(tp.exp(tp.multiply(x, y)) + x)


def check_gradient(values, y):
    """Take a gradient, and compare it with the derivative worked out by hand."""
    x = tp.asarray(np.asarray(values, np.float32))
    value, gradient = tp.value_and_grad(loss)(x, y)
    array = np.asarray(values, float)
    np.testing.assert_allclose(value.item(), np.sum(np.exp(array * y) + array), 1e-5, 1e-6)
    assert (gradient.shape, gradient.dtype) == (x.shape, x.dtype)
    np.testing.assert_allclose(gradient.numpy(), y * np.exp(array * y) + 1, 1e-5, 1e-6)


def check_healthy(engine):
    """Check that nothing is left on and that ops, gradients and scopes work."""
    context = current_context()
    assert (context.recording, context.scope) == (None, None)
    assert context.engine is engine
    check_gradient([0.5, -1.0], 0.5)
    before = tp.memory()[tp.get_backend()].tensors
    assert tp.tidy(lambda: tp.add(tp.asarray([1.0]), 1.0) * 2.0).tolist() == [4]
    assert tp.memory()[tp.get_backend()].tensors == before


def test_ten_threads_on_one_engine(engine):
    def work(number):
        random = np.random.default_rng(number)
        with using(engine):
            for turn in range(60):
                values = random.uniform(-1, 1, size=turn % 7 + 1)
                with tp.tidy():
                    check_gradient(values, float(number) / 10 + 0.1)
                x = tp.asarray(values)
                expect(tp.add(x, number), "float64", x.shape, values + number)
                with tp.use_backend("other"):
                    expect(tp.add(x, x), "float64", x.shape, values * 2)

    together(10, work)
    assert tp.memory()["other"].transfers > 0
    check_healthy(engine)


def test_a_plugin_registers_while_other_threads_run(engine):
    """Every result is that of the old kernel or of the new one; never a mix, never stale."""
    spec = spec_of("Scale")
    tp.register_kernel(spec, "memory", lambda x: x * 1)
    x = tp.asarray([1.0, 1.0])
    factors = set(range(1, 40))
    stop = threading.Event()
    seen: set[float] = set()

    def work(number):
        with using(engine):
            if number:
                while not stop.is_set():
                    one, two = tp.run_kernel(spec, [x]).tolist()
                    assert one == two
                    seen.add(one)
                return
            try:
                for factor in sorted(factors):
                    tp.register_kernel(spec, "memory", scaled(factor), override=True)
                    expect(tp.run_kernel(spec, [x]), "float32", (2,), [factor, factor])
            finally:
                stop.set()

    together(5, work)
    assert seen <= factors
    check_healthy(engine)


def scaled(factor):
    def kernel(x):
        return x * np.float32(factor)

    return kernel


def test_ten_thousand_shapes_stay_bounded(engine):
    device = engine.devices.active
    for size in range(10_000):
        x = tp.asarray(np.ones((size % 100, size // 100), np.float32))
        assert tp.identity(x).shape == x.shape
        assert len(device.plans) <= PLAN_LIMIT
    assert len(device.plans) > PLAN_LIMIT // 2
    for size in (0, 5000, 9999):
        x = np.full((size % 100, size // 100), 3.0, np.float32)
        expect(tp.identity(x), "float32", x.shape, x)
    check_healthy(engine)


FAILURES = [BackendMemoryError, DeviceLostError, ZeroDivisionError, KeyboardInterrupt, SystemExit]


class Fuse:
    """A kernel that fails when its turn comes."""

    def __init__(self, error):
        self.error = error
        self.left = -1

    def kernel(self, a, b):
        self.left -= 1
        if self.left == 0:
            raise self.error("the fuse blew")
        return np.asarray(np.multiply(a, b))


@pytest.fixture(params=FAILURES, ids=lambda error: error.__name__)
def fuse(request, engine):
    fuse = Fuse(request.param)
    with tp.register_kernel("Multiply", "memory", fuse.kernel, override=True):
        check_healthy(engine)
        yield fuse
        check_healthy(engine)


NOTE = "in kernel Multiply(a=float32[2], b=float32[2]) of the running program on backend 'memory'"


@pytest.mark.slow
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_a_kernel_that_fails_in_the_middle_of_a_gradient(engine, fuse, turn):
    """The first multiplication is in the forward pass, the two after it in the backward pass."""
    made = []

    def f(x, y):
        made.append(tp.exp(x))
        return tp.sum(tp.multiply(x, y))

    x, y = tp.asarray([1.0, 2.0]), tp.asarray([3.0, 4.0])
    before = tp.memory()["memory"].tensors
    gradient = tp.grad(f, (0, 1))
    fuse.left = turn
    with pytest.raises(fuse.error, match="the fuse blew") as caught, tp.tidy():
        gradient(x, y)
    backward = {2: "a", 3: "b"}
    rule = (
        [f"in the gradient of 'Multiply' with respect to {backward[turn]!r}"] if turn > 1 else []
    )
    assert caught.value.__notes__ == [NOTE, *rule]
    assert made[0].is_disposed  # the scope was closed
    del made[:], caught
    assert tp.memory()["memory"].tensors == before
    for expected, actual in zip(([3, 4], [1, 2]), gradient(x, y), strict=True):
        expect(actual, "float32", (2,), expected)
    assert engine.devices.active.name == "memory"


def test_a_kernel_that_fails_inside_every_kind_of_context(engine, fuse):
    x = tp.asarray([1.0, 2.0])

    def f(x):
        with tp.use_backend("memory"), tp.tidy():
            return tp.tidy(lambda: tp.sum(tp.multiply(x, x)))

    fuse.left = 1
    with pytest.raises(fuse.error):
        tp.grad(lambda x: tp.sum(tp.grad(f)(x)))(x)
    assert engine.devices.active.name == "memory"


def test_a_device_without_room(engine):
    x = tp.asarray(np.ones(4, np.float32))
    backend = engine.devices.source.backends["memory"]
    backend.room = 16
    big = np.ones(5, np.float32)
    for call in (
        lambda: tp.asarray(big),
        lambda: tp.add(tp.asarray(1.0), big),
        lambda: tp.grad(lambda x: tp.sum(x * big))(x),
        lambda: tp.tidy(lambda: tp.concat([x, big])),
    ):
        with pytest.raises(BackendMemoryError, match="memory has no room for 20 bytes") as caught:
            call()
        (note,) = caught.value.__notes__
        assert note.startswith("while ")
        assert note.endswith("to backend 'memory'")
    with tp.use_backend("other"):
        there = tp.asarray(big)
    with pytest.raises(BackendMemoryError) as caught:
        tp.negative(there)
    note = "while copying Neg: input 'x' (float32[5]) to backend 'memory'"
    assert caught.value.__notes__ == [note]
    expect(tp.add(x, 1.0), "float32", (4,), [2, 2, 2, 2])
    backend.room = 1e9
    expect(tp.negative(there), "float32", (5,), -big)
    check_healthy(engine)


def test_a_lost_device(engine):
    x = tp.asarray([1.0, 2.0])
    with tp.use_backend("other"):
        there = tp.asarray([5.0, 6.0])
    engine.devices.source.backends["memory"].lost = True
    for use in (
        x.numpy,
        x.tolist,
        tp.synchronize,
        lambda: tp.asarray([9.0]),
        lambda: x.to("other"),
        lambda: tp.grad(lambda x: tp.sum(x * 7.5))(x),
    ):
        with pytest.raises(DeviceLostError, match="memory is gone"):
            use()
    assert repr(x) == "<Tensor float32[2] on memory, unreadable: memory is gone>"
    with tp.use_backend("other"):  # the others are not concerned
        expect(tp.add(there, 1.0), "float32", (2,), [6, 7])
    engine.devices.close("memory")
    tp.set_backend("memory")  # opened anew
    expect(tp.add(there, 1.0), "float32", (2,), [6, 7])
    check_healthy(engine)


def test_a_backend_whose_close_fails_is_closed_all_the_same(engine):
    x = tp.asarray([1.0])
    backend = engine.devices.source.backends["memory"]

    def close():
        raise ZeroDivisionError("stuck")

    backend.close = close
    with pytest.raises(ZeroDivisionError, match="stuck"):
        engine.devices.close("memory")
    assert engine.devices.listed() == []
    assert "closed" in repr(x)
    check_healthy(engine)

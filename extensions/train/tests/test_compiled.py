"""compile: optimizers of variables step inside compiled functions."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import CompileError, GradientError

from .test_variables import MAKE

X = np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 3.0]], np.float32)


def _plain(f):
    return f


def _train(wrap, optimizer, steps=5, name="w", dtype="float32"):
    """Return the variable's values after each step, and how often the function ran."""
    w = tp.Variable(tp.asarray([0.5, -0.25], dtype=dtype), name=name)
    traces = []

    @wrap
    def step(x):
        traces.append(1)
        return optimizer.minimize(lambda: tp.mean((tp.tanh(x @ w) - 0.5) ** 2), [w])

    values = []
    for turn in range(steps):
        loss = step(tp.asarray(X + turn, dtype=dtype))
        values.append((float(loss), *w.tolist()))
    return values, len(traces)


@pytest.mark.parametrize("formula", MAKE, ids=lambda formula: formula.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_inside_are_steps(formula, dtype):
    eager, compiled = MAKE[formula](), MAKE[formula]()
    expected, _ = _train(_plain, eager, name="eager", dtype=dtype)
    found, traces = _train(tp.compile, compiled, name="compiled", dtype=dtype)
    assert traces == 1
    # The numbers of a step are computed in double precision in both.
    np.testing.assert_allclose(found, expected, rtol={"float32": 1e-5, "float64": 1e-14}[dtype])
    assert compiled.iterations == eager.iterations == 5
    ours, theirs = compiled.weights(), eager.weights()
    assert ours.keys() == theirs.keys()
    for slot in ours.keys() - {"iterations"}:
        held = ours[slot]["compiled"]
        assert held.type == theirs[slot]["eager"].type
        np.testing.assert_allclose(held.numpy(), theirs[slot]["eager"].numpy(), rtol=1e-5)


def test_a_learning_rate_is_read_at_each_call():
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.SGD(0.5)
    step = tp.compile(lambda g: optimizer.apply_gradients({"w": g}))
    for rate, expected in ((0.5, 0.5), (0.25, 0.25), (2, -1.75)):
        optimizer.learning_rate = rate
        step(tp.asarray([1.0]))
        assert w.item() == expected
    assert len(step._known) == 1


def test_eager_and_compiled_steps_share_the_state():
    values = []
    for wraps in ([_plain] * 6, [tp.compile, _plain] * 3, [_plain, tp.compile] * 3):
        w = tp.Variable([1.0, -2.0], name=None)
        optimizer = tp.train.Adam(0.1)

        def step(g, w=w, optimizer=optimizer):
            optimizer.apply_gradients([(w, g)])

        compiled = tp.compile(step)
        for turn, wrap in enumerate(wraps):
            (step if wrap is _plain else compiled)(tp.asarray([0.5, turn - 2.0]))
        assert optimizer.iterations == 6
        values.append(w.numpy())
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-6)


def test_two_steps_in_one_function():
    values = []
    for compiled in (False, True):
        w = tp.Variable([1.0, -2.0])
        optimizer = tp.train.Adam(tp.train.exponential_decay(0.1, 1, 0.5))

        def twice(g, w=w, optimizer=optimizer):
            optimizer.apply_gradients([(w, g)])
            optimizer.apply_gradients([(w, g * 3)])
            return optimizer.iterations * 1.0

        step = tp.compile(twice) if compiled else twice
        counts = [step(tp.asarray([0.5, -1.0])) for _ in range(3)]
        assert counts == [2.0, 4.0, 6.0]
        values.append(w.numpy())
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)


def test_weights_that_are_restored_are_those_of_the_program():
    w = tp.Variable([1.0, -2.0], name="w")
    optimizer = tp.train.Adam(0.1)
    step = tp.compile(lambda g: optimizer.apply_gradients({"w": g}))
    gradients = [tp.asarray([0.5, turn - 2.0]) for turn in range(5)]
    for g in gradients[:2]:
        step(g)
    saved, there = optimizer.weights(), w.read()
    ends = []
    for _ in range(2):
        for g in gradients[2:]:
            step(g)
        ends.append(w.numpy())
        w.assign(there)
        optimizer.set_weights(saved)
        assert optimizer.iterations == 2
    np.testing.assert_array_equal(ends[0], ends[1])


def test_changes_that_a_program_cannot_follow_are_errors():
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.Momentum(0.1)
    step = tp.compile(lambda g: optimizer.apply_gradients({"w": g}))
    g = tp.asarray([1.0])
    step(g)
    optimizer.momentum = 0.5
    with pytest.raises(CompileError, match="options of Momentum have changed"):
        step(g)
    optimizer.momentum = 0.9
    step(g)
    optimizer.learning_rate = lambda step: 0.1 / (step + 1)
    with pytest.raises(CompileError, match="options of Momentum have changed"):
        step(g)
    optimizer.learning_rate = 0.1
    before = w.item()
    optimizer.set_weights({"iterations": 0, "velocity": {}})
    with pytest.raises(CompileError, match="lost the state of a variable in set_weights"):
        step(g)
    assert w.item() == before


def test_the_rate_cannot_be_a_condition():
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.SGD(0.1)

    @tp.compile
    def step(g):
        if optimizer.learning_rate > 0:
            optimizer.apply_gradients({"w": g})

    with pytest.raises(CompileError, match="uses the learning rate or the number of steps"):
        step(tp.asarray([1.0]))
    assert w.item() == 1.0


def test_an_error_in_tracing_takes_no_step():
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.Adam(0.1)

    @tp.compile
    def step(g):
        optimizer.apply_gradients({"w": g})
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        step(tp.asarray([1.0]))
    assert (w.item(), optimizer.iterations) == (1.0, 0)
    optimizer.apply_gradients({"w": [1.0]})
    np.testing.assert_allclose(w.numpy(), [0.9], rtol=1e-6)


def test_a_step_is_not_taken_twice_by_a_second_derivative():
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.SGD(0.1)

    @tp.compile
    def f(x):
        optimizer.apply_gradients({"w": [1.0]})
        return tp.sum(x**3)

    x = tp.asarray([2.0])
    assert tp.grad(f)(x).tolist() == [12.0]
    assert optimizer.iterations == 1
    with pytest.raises(GradientError, match="calls the function again"):
        tp.grad(lambda x: tp.sum(tp.grad(f)(x)))(x)
    assert w.shape == (1,)


def test_memory_stays_flat():
    w = tp.Variable(np.ones(3, np.float32), name="w")
    optimizer = tp.train.Adam(0.01)
    step = tp.compile(lambda: optimizer.minimize(lambda: tp.sum(w * w)))
    for _ in range(2):
        step()
    before = tp.memory()
    for _ in range(5):
        step()
    after = tp.memory()
    assert (after.tensors, after.buffers) == (before.tensors, before.buffers)


def test_variables_that_are_disposed_of_do_not_take_the_state_with_them():
    optimizer = tp.train.Momentum(0.1)
    for _ in range(2):
        w = tp.Variable([1.0], name="w")
        optimizer.apply_gradients({"w": [1.0]})
        tp.dispose_variables()
        assert w.is_disposed
    np.testing.assert_allclose(optimizer.weights()["velocity"]["w"].numpy(), [1.9], rtol=1e-6)

"""Optimizers of variables: which variables move, what is refused, and what programs share."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    CompileError,
    DTypeError,
    GradientError,
    NotConnectedError,
    ShapeError,
)

from .expecting import expect

train = tp.train


def test_minimizing_as_in_tfjs():
    """The reference's scenario 28: sgd(0.1) on v**2 from 1 costs 1 and leads to 0.8."""
    v = tp.Variable(1.0, name="v")
    before = tp.memory().tensors
    cost = train.sgd(0.1).minimize(lambda: v * v)
    assert cost.item() == 1
    assert v.numpy() == np.float32(0.8)
    del cost
    assert tp.memory().tensors == before


def test_only_the_listed_variables_move():
    a, b = tp.Variable(1.0, name="a"), tp.Variable(2.0, name="b")
    value, aux = train.sgd(0.5).minimize(lambda: (a * b, "more"), [a], has_aux=True)
    assert (value.item(), aux, a.item(), b.item()) == (2, "more", 0, 2)
    frozen = tp.Variable(3.0, name="frozen", trainable=False)
    train.sgd(0.5).minimize(lambda: a + b * frozen)
    train.sgd(0.5).minimize(lambda: a * 0 + b * 0 + frozen, [b, frozen])
    assert (a.item(), b.item(), frozen.item()) == (-0.5, 0.5, 3)
    train.sgd(1.0).apply_gradients({"a": None})
    assert a.item() == -0.5


def test_variables_that_come_later_begin_anew_and_others_keep_their_state():
    a, b = tp.Variable([1.0], name="a"), tp.Variable([1.0, 1.0], name="b")
    optimizer = train.momentum(1.0, 0.5)
    assert optimizer.state["velocity"] == {}
    for grads in ({"a": [1.0]}, {"b": [1.0, 2.0]}, {"b": [0.0, 0.0], "a": [0.0]}):
        optimizer.apply_gradients(grads)
    assert (a.tolist(), b.tolist()) == ([-0.5], [-0.5, -2.0])
    state = optimizer.state
    expect(state["step"], "int32", (), 3)
    expect(state["velocity"]["a"], "float32", (1,), [0.5])
    expect(state["velocity"]["b"], "float32", (2,), [0.5, 1.0])


@pytest.mark.parametrize(
    ("grads", "error", "message"),
    [
        ({"x": 1.0}, ArgumentError, "no variable 'x'"),
        ({"a": [1.0, 2.0]}, ShapeError, "gradient of 'a' is float32[2], the variable float32[]"),
        ({"a": 1}, DTypeError, "gradient of 'a' is int32[], the variable float32[]"),
        ([("a", 1.0), ("a", 2.0)], ArgumentError, "'a' has two gradients"),
    ],
)
def test_a_step_that_cannot_be_taken_changes_nothing(grads, error, message):
    first, a = tp.Variable(5.0, name="first"), tp.Variable(1.0, name="a")
    optimizer = train.momentum(1.0)
    pairs = list(grads.items()) if isinstance(grads, dict) else grads
    with pytest.raises(error) as caught:
        optimizer.apply_gradients([("first", 1.0), *pairs])
    assert message in str(caught.value)
    assert (first.item(), a.item()) == (5, 1)
    assert (int(optimizer.state["step"]), optimizer.state["velocity"]) == (0, {})


@pytest.mark.parametrize(
    ("optimizer", "state", "message"),
    [
        ("sgd", {"step": 1, "velocity": {}}, r"state needs \['step'\], got \['step', 'velo"),
        (
            "sgd",
            {"step": np.ones(1, np.int32)},
            r"state\['step'\] must be int32\[\], got int32\[1\]",
        ),
        ("sgd", {"step": 1.5}, r"state\['step'\] must be int32\[\], got float32\[\]"),
        (
            "adam",
            {"step": 1, "means": {"w": 1.0}, "squares": {}},
            r"the variables differ: .*\['means'\]\": \['w'\], .*\['squares'\]\": \[\]",
        ),
        ("adam", {"step": 1, "means": 1.0, "squares": {}}, r"state\['means'\] needs"),
        (
            "scaled",
            {"loss_scale": {"scale": 4.0}, "optimizer": {"step": 1}},
            r"state\['loss_scale'\] needs \['finite_steps', 'scale'\], got \['scale'\]",
        ),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(optimizer, state, message):
    make = {"sgd": train.sgd, "adam": train.adam, "scaled": lambda: train.LossScaled(train.sgd())}
    made, w = make[optimizer](), tp.Variable(1.0, name="w")
    made.minimize(lambda: w * w)
    before = made.state
    with pytest.raises(ArgumentError, match=message):
        made.state = tp.tree_map(tp.asarray, state)
    tp.tree_map(lambda x, y: expect(x, str(y.dtype), y.shape, y.numpy()), made.state, before)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    ("f", "has_aux", "error", "message"),
    [
        (lambda w: w * 2, False, ShapeError, "must return a scalar, a tensor of shape []"),
        (lambda _: 1.0, False, ArgumentError, "must return a tensor, got float"),
        (tp.sum, True, ArgumentError, "has_aux"),
        (lambda _: tp.asarray(1.0), False, NotConnectedError, "no differentiable path"),
    ],
)
def test_its_errors_are_those_of_variable_grads(f, has_aux, error, message, scaled):
    w = tp.Variable([3.0], name="w")
    optimizer = train.sgd(0.5)
    optimizer = train.LossScaled(optimizer) if scaled else optimizer
    with pytest.raises(error) as caught:
        optimizer.minimize(lambda: f(w), has_aux=has_aux)
    assert message in str(caught.value)
    assert w.item() == 3


def test_steps_in_scopes_are_steps():
    paths = []
    for scoped in (False, True):
        w = tp.Variable(np.ones(3, np.float32))
        optimizer = train.adam(0.1)

        def step(w=w, optimizer=optimizer):
            optimizer.minimize(lambda: tp.sum(w**2), [w])

        for _ in range(3):
            tp.tidy(step) if scoped else step()
        paths.append(w.tolist())
    assert paths[0] == paths[1] != [1, 1, 1]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_memory_stays_flat(scaled, compiled):
    w = tp.Variable(np.ones(3, np.float32), name="w")
    optimizer = train.momentum(0.01)
    optimizer = train.LossScaled(optimizer) if scaled else optimizer

    def step():
        optimizer.minimize(lambda: tp.sum(w * w))

    take = tp.compile(step) if compiled else step
    for _ in range(2):
        take()
    before = tp.memory()
    for _ in range(5):
        take()
    after = tp.memory()
    assert (after.tensors, after.buffers) == (before.tensors, before.buffers)


def test_the_state_outlives_the_variables():
    optimizer = train.momentum(0.1)
    for _ in range(2):
        w = tp.Variable([1.0], name="w")
        optimizer.apply_gradients({"w": [1.0]})
        tp.dispose_variables()
        assert w.is_disposed
    np.testing.assert_allclose(optimizer.state["velocity"]["w"].numpy(), [1.9], rtol=1e-6)


# Compiled functions -------------------------------------------------------------------------


def test_a_rate_in_a_variable_is_read_at_each_call():
    w, rate = tp.Variable([1.0], name="w"), tp.Variable(0.5, trainable=False)
    optimizer = train.sgd(rate)
    step = tp.compile(lambda g: optimizer.apply_gradients({"w": g}))
    for number, expected in ((0.5, 0.5), (0.25, 0.25), (2.0, -1.75)):
        rate.assign(number)
        step(tp.asarray([1.0]))
        assert w.item() == expected
    assert len(step._known) == 1


def test_eager_and_compiled_steps_share_the_state():
    values = []
    for order in ("eeeeee", "cecece", "ececec"):
        w = tp.Variable([1.0, -2.0], name=None)
        optimizer = train.adam(train.exponential_decay(0.1, 1, 0.5))

        def step(g, w=w, optimizer=optimizer):
            optimizer.apply_gradients([(w, g)])
            optimizer.apply_gradients([(w, g * 3)])

        each = {"e": step, "c": tp.compile(step)}
        for turn, which in enumerate(order):
            each[which](tp.asarray([0.5, turn - 2.0]))
        assert int(optimizer.state["step"]) == 12
        values.append(w.numpy())
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-6)


def test_a_program_cannot_go_on_with_another_state():
    w = tp.Variable([1.0], name="w")
    optimizer = train.momentum(0.1)
    step = tp.compile(lambda g: optimizer.apply_gradients({"w": g}))
    step(tp.asarray([1.0]))
    optimizer.state = optimizer.init({})
    before = w.item()
    with pytest.raises(CompileError, match=r"momentum\(0\.1\) got another state"):
        step(tp.asarray([1.0]))
    assert w.item() == before


def test_an_error_in_tracing_takes_no_step():
    w = tp.Variable([1.0], name="w")
    optimizer = train.adam(0.1)

    @tp.compile
    def step(g):
        optimizer.apply_gradients({"w": g})
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        step(tp.asarray([1.0]))
    assert (w.item(), int(optimizer.state["step"])) == (1.0, 0)
    optimizer.apply_gradients({"w": [1.0]})
    np.testing.assert_allclose(w.numpy(), [0.9], rtol=1e-6)


def test_a_step_is_not_taken_twice_by_a_second_derivative():
    w = tp.Variable([1.0], name="w")
    optimizer = train.sgd(0.1)

    @tp.compile
    def f(x):
        optimizer.apply_gradients({"w": [1.0]})
        return tp.sum(x**3)

    x = tp.asarray([2.0])
    assert tp.grad(f)(x).tolist() == [12.0]
    assert int(optimizer.state["step"]) == 1
    with pytest.raises(GradientError, match="calls the function again"):
        tp.grad(lambda x: tp.sum(tp.grad(f)(x)))(x)
    assert w.shape == (1,)


# Loss scaling -------------------------------------------------------------------------------

INF, NAN = math.inf, math.nan
START = np.array([1.0, -2.0, 0.5])
GRADIENTS = np.array([[0.5, 1, -2], [INF, 1, 1], [1, 0.25, 0.5], [0.5, NAN, 0.5], [3, -0.5, 1]])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_steps_that_are_not_finite_change_only_the_factor(compiled):
    """Against Adam in NumPy, which is given the finite gradients alone."""
    w = tp.Variable(START, name="w", dtype="float32")
    scaling = train.LossScale(8.0, interval=2)
    optimizer = train.LossScaled(train.adam(0.25), scaling)

    def step(g):
        return optimizer.minimize(lambda: tp.sum(w * g), [w])

    take, history, values, factors = tp.compile(step) if compiled else step, [], [START], []
    for g in GRADIENTS:
        before = w.numpy().astype(np.float64)
        loss = take(tp.asarray(g, dtype="float32"))
        assert (str(loss.dtype), loss.shape) == ("float32", ())
        np.testing.assert_allclose(loss.numpy(), np.sum(before * g), rtol=1e-6)
        if np.isfinite(g).all():
            history.append(g)
            ages = np.arange(len(history))[::-1, None]
            means = [
                np.average(power, axis=0, weights=np.broadcast_to(share**ages, power.shape))
                for power, share in ((np.array(history), 0.9), (np.square(history), 0.999))
            ]
            values.append(values[-1] - 0.25 * means[0] / (np.sqrt(means[1]) + 1e-7))
        assert w.type == tp.TensorType(tp.float32, (3,))
        np.testing.assert_allclose(w.numpy(), values[-1], rtol=2e-5)
        factors.append(optimizer.state["loss_scale"]["scale"].item())
    assert factors == [8, 4, 4, 2, 2]
    assert int(optimizer.state["optimizer"]["step"]) == 3


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_scaled_gradient_that_overflows_in_halves_shrinks_the_factor(compiled):
    w = tp.Variable(START, name="w", dtype="float16")
    optimizer = train.LossScaled(train.sgd(0.25), train.LossScale(2.0**15))

    def step(g):
        return optimizer.minimize(lambda: tp.sum(w * g), [w])

    take = tp.compile(step) if compiled else step
    g = np.array([3.0, 1.0, 0.5], np.float16)
    for turn in range(2):  # 3 * 2**15 is more than float16 has
        take(tp.asarray(g))
        expect(w.read(), "float16", (3,), START.astype(np.float16) - np.float16(0.25) * g * turn)
        assert optimizer.state["loss_scale"]["scale"].item() == 2.0**14


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("outside", [False, True], ids=["in the loss", "around the step"])
def test_gradients_that_vanish_in_halves_do_not(dtype, outside, compiled):
    """The cotangent of the product is 1e-6, and that of w 1e-9: 0 in float16, but not scaled."""
    w = tp.Variable([[1.0]], name="w")
    optimizer = train.LossScaled(train.sgd(1e6), train.LossScale(2.0**15))

    def loss():
        with tp.autocast(dtype):
            return tp.sum(w @ tp.full((1, 1), 1e-3)) * 1e-6

    def step():
        with tp.autocast(dtype, enabled=outside):
            return optimizer.minimize(loss)

    (tp.compile(step) if compiled else step)()
    assert w.type == tp.TensorType(tp.float32, (1, 1))
    np.testing.assert_allclose(w.numpy(), [[1 - 1e6 * 1e-9]], rtol=1e-5)


@pytest.mark.parametrize("bad", ["a", "b"])
def test_one_variable_that_overflows_stops_all(bad):
    a, b = tp.Variable([1.0], name="a"), tp.Variable([2.0], name="b")
    optimizer = train.LossScaled(train.momentum(0.5), train.LossScale(8.0))
    optimizer.apply_gradients({name: [INF if name == bad else 8.0] for name in ("a", "b")})
    state = optimizer.state
    assert (a.item(), b.item(), state["loss_scale"]["scale"].item()) == (1, 2, 4)
    velocity = state["optimizer"]["velocity"]
    assert {name: value.tolist() for name, value in velocity.items()} == {"a": [0], "b": [0]}
    optimizer.apply_gradients({"a": [4.0], "b": [8.0]})
    assert (a.item(), b.item(), int(optimizer.state["optimizer"]["step"])) == (0.5, 1, 1)

"""Optimizers: against their formulas in NumPy, and in a training loop."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError, ShapeError

EPS = 1e-7
GRADIENTS = np.random.default_rng(0).normal(size=(6, 3)) * [1.0, 0.01, 0.0]


def sgd(w, g, s, t):
    return w - 0.3 * g


def momentum(w, g, s, t, *, nesterov=False):
    s["v"] = 0.9 * s.get("v", 0) + g
    return w - 0.3 * (g + 0.9 * s["v"] if nesterov else s["v"])


def nesterov(w, g, s, t):
    return momentum(w, g, s, t, nesterov=True)


def adagrad(w, g, s, t):
    s["s"] = s.get("s", 0.1) + g**2
    return w - 0.3 * g / np.sqrt(s["s"] + EPS)


def adadelta(w, g, s, t):
    s["s"] = 0.95 * s.get("s", 0) + 0.05 * g**2
    step = np.sqrt((s.get("u", 0) + EPS) / (s["s"] + EPS)) * g
    s["u"] = 0.95 * s.get("u", 0) + 0.05 * step**2
    return w - 0.3 * step


def adam(w, g, s, t):
    s["g"] = [*s.get("g", []), g]
    ages = np.arange(t)[::-1, None]
    mean = np.sum(0.9**ages * s["g"], 0) / np.sum(0.9**ages)
    square = np.sum(0.999**ages * np.square(s["g"]), 0) / np.sum(0.999**ages)
    return w - 0.3 * mean / (np.sqrt(square) + EPS)


def adamax(w, g, s, t):
    s["g"] = [*s.get("g", []), g]
    ages = np.arange(t)[::-1, None]
    mean = np.sum(0.9**ages * s["g"], 0) / np.sum(0.9**ages)
    largest = np.max(0.999**ages * np.abs(s["g"]), 0)
    return w - 0.3 / (1 + 0.1 * (t - 1)) * mean / (largest + EPS)


def rmsprop(w, g, s, t, *, centered=False):
    s["s"] = 0.9 * s.get("s", 0) + 0.1 * g**2
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    spread = s["s"] - s["m"] ** 2 if centered else s["s"]
    s["v"] = 0.5 * s.get("v", 0) + 0.3 * g / np.sqrt(spread + EPS)
    return w - s["v"]


def centered(w, g, s, t):
    return rmsprop(w, g, s, t, centered=True)


MAKE = {
    sgd: lambda: tp.train.SGD(0.3),
    momentum: lambda: tp.train.Momentum(0.3, 0.9),
    nesterov: lambda: tp.train.Momentum(0.3, 0.9, nesterov=True),
    adagrad: lambda: tp.train.Adagrad(0.3),
    adadelta: lambda: tp.train.Adadelta(0.3),
    adam: lambda: tp.train.Adam(0.3),
    adamax: lambda: tp.train.Adamax(0.3, decay=0.1),
    rmsprop: lambda: tp.train.RMSProp(0.3, momentum=0.5),
    centered: lambda: tp.train.RMSProp(0.3, momentum=0.5, centered=True),
}


@pytest.mark.parametrize("formula", MAKE, ids=lambda formula: formula.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps(formula, dtype):
    w = tp.Variable(tp.asarray([1.0, -2.0, 0.5], dtype=dtype), name="w")
    optimizer = MAKE[formula]()
    expected, state = np.array([1.0, -2.0, 0.5]), {}
    for t, g in enumerate(GRADIENTS, 1):
        optimizer.apply_gradients({"w": tp.asarray(g, dtype=dtype)})
        expected = formula(expected, g, state, t)
        assert (str(w.dtype), w.shape) == (dtype, (3,))
        # The spread is a small difference of two means.
        rtol = {"float64": 1e-10, "float32": 2e-3 if formula is centered else 2e-5}[dtype]
        np.testing.assert_allclose(w.numpy(), expected, rtol=rtol)
    assert optimizer.iterations == len(GRADIENTS)


@pytest.mark.parametrize("formula", MAKE, ids=lambda formula: formula.__name__)
def test_weights_carry_over_to_another_one(formula):
    w = tp.Variable(tp.asarray([1.0, -2.0, 0.5]), name="w")
    first = MAKE[formula]()
    for g in GRADIENTS[:3]:
        first.apply_gradients({"w": tp.asarray(g, dtype="float32")})
    there, kept = w.numpy().copy(), first.weights()
    for g in GRADIENTS[3:]:
        first.apply_gradients({"w": tp.asarray(g, dtype="float32")})
    expected = w.numpy().copy()
    w.assign(there)
    second = MAKE[formula]()
    second.set_weights(kept)
    for g in GRADIENTS[3:]:
        second.apply_gradients([(w, tp.asarray(g, dtype="float32"))])
    np.testing.assert_array_equal(w.numpy(), expected)


def test_minimizing_as_in_tfjs():
    """The reference's scenario 28: sgd(0.1) on v**2 from 1 costs 1 and leads to 0.8."""
    v = tp.Variable(1.0, name="v")
    before = tp.memory().tensors
    cost = tp.train.SGD(0.1).minimize(lambda: v * v)
    assert cost.item() == 1
    assert v.numpy() == np.float32(0.8)
    del cost
    assert tp.memory().tensors == before


def test_only_the_listed_variables_move():
    a, b = tp.Variable(1.0, name="a"), tp.Variable(2.0, name="b")
    value, aux = tp.train.SGD(0.5).minimize(lambda: (a * b, "more"), [a], has_aux=True)
    assert (value.item(), aux, a.item(), b.item()) == (2, "more", 0, 2)
    frozen = tp.Variable(3.0, name="frozen", trainable=False)
    tp.train.SGD(0.5).minimize(lambda: a + b * frozen)
    assert (a.item(), b.item(), frozen.item()) == (-0.5, 0.5, 3)


def test_gradients_between_computing_and_applying():
    w = tp.Variable([3.0], name="w")
    optimizer = tp.train.SGD(1.0)
    value, grads = optimizer.compute_gradients(lambda: tp.sum(w * w))
    assert value.item() == 9
    optimizer.apply_gradients({name: g * 0.25 for name, g in grads.items()})
    assert w.numpy() == 1.5
    optimizer.learning_rate = 0.5
    optimizer.apply_gradients({"w": [1.0]})
    assert w.numpy() == 1.0


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
    optimizer = tp.train.Momentum(1.0)
    pairs = list(grads.items()) if isinstance(grads, dict) else grads
    with pytest.raises(error) as caught:
        optimizer.apply_gradients([("first", 1.0), *pairs])
    assert message in str(caught.value)
    assert (first.item(), a.item(), optimizer.iterations) == (5, 1, 0)
    assert optimizer.weights() == {"iterations": 0, "velocity": {}}


def test_weights_of_another_kind():
    with pytest.raises(ArgumentError, match=r"SGD needs \['iterations'\], got \['iterations', 'v"):
        tp.train.SGD().set_weights(tp.train.Momentum().weights())
    with pytest.raises(ArgumentError, match=r"'squares' has \[\], others \['w'\]"):
        tp.train.Adam().set_weights(
            {"iterations": 1, "means": {"w": tp.asarray(1.0)}, "squares": {}}
        )


def test_a_constant_gradient_has_no_spread_to_divide_by():
    gradient = np.linspace(1, 1000, 97, dtype=np.float32)
    w = tp.Variable(np.zeros(97, np.float32), name="w")
    optimizer = tp.train.RMSProp(0.1, centered=True)
    for _ in range(300):  # in float32 the square of a mean exceeds the mean of the squares
        optimizer.apply_gradients({"w": gradient})
    assert np.isfinite(w.numpy()).all()


def test_a_loss_that_depends_on_nothing():
    w = tp.Variable(1.0, name="w")
    assert w.trainable
    with pytest.raises(NotConnectedError):
        tp.train.SGD().minimize(lambda: tp.asarray(1.0))


def test_a_none_is_passed_over():
    w = tp.Variable(1.0, name="w")
    tp.train.SGD(1.0).apply_gradients({"w": None})
    assert w.item() == 1


def test_its_text():
    assert repr(tp.train.SGD(0.5)) == "SGD(learning_rate=0.5, iterations=0)"


@pytest.mark.parametrize("formula", MAKE, ids=lambda formula: formula.__name__)
def test_steps_in_scopes_are_steps(formula):
    paths = []
    for scoped in (False, True):
        w = tp.Variable(np.ones(3, np.float32))
        optimizer = MAKE[formula]()

        def step(w=w, optimizer=optimizer):
            optimizer.minimize(lambda: tp.sum(w**2), [w])

        for _ in range(3):
            tp.tidy(step) if scoped else step()
        paths.append(w.tolist())
    assert paths[0] == paths[1] != [1, 1, 1]


@pytest.mark.parametrize("loss_scale", [None, tp.train.LossScale()], ids=["plain", "scaled"])
def test_memory_stays_flat(loss_scale):
    w = tp.Variable(np.ones(3, np.float32), name="w")
    optimizer = tp.train.Adam(0.01, loss_scale=loss_scale)
    optimizer.minimize(lambda: tp.sum(w * w))
    before = tp.memory()
    for _ in range(5):
        optimizer.minimize(lambda: tp.sum(w * w))
    after = tp.memory()
    assert (after.tensors, after.buffers) == (before.tensors, before.buffers)

"""tp.train: optimizers as pure functions, schedules and clipping, against formulas in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, CompileError, DTypeError, ShapeError
from tensorplug.plugin import tree

from . import test_variables as formulas

train = tp.train

MAKE = {
    formulas.sgd: train.sgd,
    formulas.momentum: lambda rate: train.momentum(rate, 0.9),
    formulas.nesterov: lambda rate: train.momentum(rate, 0.9, nesterov=True),
    formulas.adagrad: train.adagrad,
    formulas.adadelta: train.adadelta,
    formulas.adam: train.adam,
    formulas.adamax: lambda rate: train.adamax(rate, decay=0.1),
    formulas.rmsprop: lambda rate: train.rmsprop(rate, momentum=0.5),
    formulas.centered: lambda rate: train.rmsprop(rate, momentum=0.5, centered=True),
}
RATES = {
    "number": lambda: 0.3,
    "tensor": lambda: tp.asarray(0.3, dtype=tp.float64),
    "schedule": lambda: lambda step: 0.3 + 0.0 * tp.astype(step, tp.float64),
}
for_each = pytest.mark.parametrize("formula", MAKE, ids=lambda formula: formula.__name__)


def _close(actual, expected, formula, dtype):
    # The spread of the centered RMSProp is a small difference of two means.
    rtol = {"float64": 1e-10, "float32": 2e-3 if formula is formulas.centered else 3e-5}[dtype]
    np.testing.assert_allclose(actual.numpy(), expected, rtol=rtol)


@for_each
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("compiled", [False, True])
def test_steps(formula, dtype, rate, compiled):
    optimizer = MAKE[formula](RATES[rate]())
    start = np.array([1.0, -2.0, 0.5])
    params = {
        "w": tp.asarray(start, dtype=dtype),
        "rest": [tp.asarray(start[:1] * 0, dtype=dtype)],
    }
    wrap = tp.compile if compiled else lambda f: f
    update, step = wrap(optimizer.update), wrap(optimizer.step)
    state = again = optimizer.init(params)
    moved, expected, kept = params, start, {}
    for t, g in enumerate(formulas.GRADIENTS, 1):
        gradients = {"w": tp.asarray(g, dtype=dtype), "rest": [tp.asarray(g[2:], dtype=dtype)]}
        updates, state = update(gradients, state, params)
        params = train.apply_updates(params, updates)
        moved, again = step(gradients, again, moved)
        expected = formula(expected, g, kept, t)
        for result in (params, moved):
            assert tree.paths(result) == ["['w']", "['rest'][0]"]
            assert (str(result["w"].dtype), result["w"].shape) == (dtype, (3,))
            _close(result["w"], expected, formula, dtype)
    assert state["step"].type == tp.TensorType(tp.int32, ())
    assert int(state["step"]) == int(again["step"]) == len(formulas.GRADIENTS)


@for_each
def test_complex_parameters_move_as_their_parts(formula):
    optimizer = MAKE[formula](0.3)
    real, imaginary = np.array([1.0, -2.0], np.float32), np.array([0.5, 3.0], np.float32)
    whole = tp.asarray((real + 1j * imaginary).astype(np.complex64))
    parts = [tp.asarray(real), tp.asarray(imaginary)]
    states = [optimizer.init(whole), optimizer.init(parts)]
    for g in formulas.GRADIENTS.astype(np.float32):
        dual = tp.asarray((g[:2] + 1j * g[1:]).astype(np.complex64))
        updates, states[0] = optimizer.update(dual, states[0])
        whole = train.apply_updates(whole, updates)
        pair = [tp.asarray(g[:2]), tp.asarray(g[1:])]
        parts, states[1] = optimizer.step(pair, states[1], parts)
    np.testing.assert_allclose(whole.numpy().real, parts[0].numpy(), rtol=1e-5)
    np.testing.assert_allclose(whole.numpy().imag, parts[1].numpy(), rtol=1e-5)


REFUSALS = {
    "an integer parameter": (
        lambda: train.sgd().init({"n": tp.asarray([1, 2])}),
        DTypeError,
        r"sgd: params\['n'\] is int32\[2\], but must be of floating or complex",
    ),
    "a list as a parameter": (
        lambda: train.adam().init([3.0]),
        ArgumentError,
        r"adam: params\[0\] must be a tensor, got 3\.0",
    ),
    "the state of another": (
        lambda: train.adam().update(tp.asarray(1.0), train.sgd().init(tp.asarray(1.0))),
        ArgumentError,
        r"adam: the state must have \['step', 'means', 'squares'\], got \['step'\]",
    ),
    "another structure": (
        lambda: train.sgd().step({"a": tp.asarray(1.0)}, {"step": 0}, {"b": tp.asarray(1.0)}),
        ArgumentError,
        r"sgd: gradients is dict of \['a'\], but dict of \['b'\] is needed",
    ),
    "another shape": (
        lambda: train.sgd().step([tp.zeros((2,))], {"step": 0}, [tp.zeros((3,))]),
        ShapeError,
        r"sgd: gradients\[0\] is float32\[2\], which does not fit float32\[3\]",
    ),
    "another dtype of the state": (
        lambda: train.momentum().update(
            tp.zeros((2,)), {"step": 0, "velocity": tp.zeros((2,), dtype=tp.float64)}
        ),
        DTypeError,
        r"momentum: state\['velocity'\] is float64\[2\], which does not fit float32\[2\]",
    ),
    "text as a rate": (
        lambda: train.sgd("fast"),
        ArgumentError,
        "sgd: learning_rate must be a number or a tensor of rank 0 or a function .*, got 'fast'",
    ),
    "rates in a list": (
        lambda: train.SGD([0.1]),
        ArgumentError,
        r"learning_rate must be a number .* function of the step, got \[0\.1\]",
    ),
    "a schedule without a number": (
        lambda: train.sgd(lambda _: None).update(tp.zeros(2), {"step": 0}),
        ArgumentError,
        "the schedule must return a number or a tensor of rank 0, got None",
    ),
    "a schedule of a vector": (
        lambda: train.sgd(lambda _: tp.zeros(2)).update(tp.zeros(2), {"step": 0}),
        ArgumentError,
        r"the schedule must return a number or a tensor of rank 0, got float32\[2\]",
    ),
    "boundaries that fall": (
        lambda: train.piecewise_constant([2, 1], [1, 2, 3]),
        ArgumentError,
        r"piecewise_constant: boundaries must increase, got \[2, 1\]",
    ),
    "too few values": (
        lambda: train.piecewise_constant([2], [1]),
        ArgumentError,
        "one more value than boundaries, got 1 values and 1 boundaries",
    ),
    "no steps": (
        lambda: train.cosine_decay(0.1, 0),
        ArgumentError,
        "cosine_decay: decay_steps must be positive and finite, got 0",
    ),
    "a negative decay": (
        lambda: train.exponential_decay(0.1, 10, -1.0),
        ArgumentError,
        r"exponential_decay: decay_rate must be positive and finite, got -1\.0",
    ),
    "a warm-up to text": (
        lambda: train.warmup("high", 3),
        ArgumentError,
        "constant: value must be a number, got 'high'",
    ),
    "a norm of 0": (
        lambda: train.clip_by_global_norm([tp.zeros(2)], 0),
        ArgumentError,
        "clip_by_global_norm: max_norm must be a positive number, got 0",
    ),
    "integers to clip": (
        lambda: train.clip_by_norm({"n": tp.asarray([1])}, 1.0),
        DTypeError,
        r"clip_by_norm: gradients\['n'\] is int32\[1\]",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_the_place(name):
    call, error, message = REFUSALS[name]
    with pytest.raises(error, match=message):
        call()


# Schedules ------------------------------------------------------------------------------

SCHEDULES = {
    "constant": (lambda: train.constant(0.3), lambda _: 0.3),
    "exponential": (
        lambda: train.exponential_decay(0.5, 7, 0.8),
        lambda t: 0.5 * 0.8 ** (t / 7),
    ),
    "staircase": (
        lambda: train.exponential_decay(0.5, 7, 0.8, staircase=True),
        lambda t: 0.5 * 0.8 ** (t // 7),
    ),
    "cosine": (
        lambda: train.cosine_decay(0.5, 20, 0.1),
        lambda t: 0.3 + 0.2 * math.cos(math.pi * t / 20) if t < 20 else 0.1,
    ),
    "polynomial": (
        lambda: train.polynomial_decay(0.5, 20, 0.1, 2.0),
        lambda t: 0.1 + 0.4 * (1 - min(t, 20) / 20) ** 2,
    ),
    "piecewise": (
        lambda: train.piecewise_constant([3, 8, 20], [0.1, 0.7, 0.2, 0.05]),
        lambda t: 0.1 if t < 3 else 0.7 if t < 8 else 0.2 if t < 20 else 0.05,
    ),
    "warm-up": (lambda: train.warmup(0.5, 4), lambda t: min(t, 4) / 8),
    "warm-up of a cosine": (
        lambda: train.warmup(train.cosine_decay(0.5, 20), 4, 0.1),
        lambda t: (
            0.1 + 0.1 * t if t < 4 else 0.25 + 0.25 * math.cos(math.pi * min(t - 4, 20) / 20)
        ),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    make, formula = SCHEDULES[name]
    schedule = make()
    for each in (schedule, tp.compile(schedule)):
        for t in (0, 1, 2, 3, 4, 7, 8, 14, 20, 24, 30, 1000):
            rate = each(tp.asarray(t, dtype=tp.int32))
            assert rate.type == tp.TensorType(tp.float32, ())
            np.testing.assert_allclose(float(rate), formula(t), rtol=2e-6, atol=1e-7)
            if each is schedule:
                assert float(each(t)) == float(rate)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_schedule_as_a_learning_rate(name, compiled):
    make, formula = SCHEDULES[name]
    w = tp.Variable([0.0], name="w")
    optimizer = train.SGD(make())
    step = lambda: optimizer.apply_gradients({"w": tp.asarray([-1.0])})  # noqa: E731
    step = tp.compile(step) if compiled else step
    total = 0.0
    for t in range(12):
        step()
        total += formula(t)
        np.testing.assert_allclose(w.numpy(), [total], rtol=1e-5, atol=1e-7)


def test_any_function_is_a_schedule():
    w = tp.Variable([0.0], name="w")
    for schedule, expected in (
        (lambda step: 0.5 * 0.5**step, 0.5 + 0.25),
        (lambda step: 2.0 if step < 1 else 1.0, 3.0),  # reads the number
        (lambda step: 2, 4.0),  # noqa: ARG005
    ):
        w.assign([0.0])
        optimizer = train.SGD(schedule)
        for _ in range(2):
            optimizer.apply_gradients({"w": tp.asarray([-1.0])})
        assert w.item() == expected
    optimizer = train.SGD(lambda step: 2.0 if step < 1 else 1.0)
    with pytest.raises(CompileError, match=r"Use where"):
        tp.compile(lambda g: optimizer.apply_gradients({"w": g}))(tp.asarray([1.0]))


# Clipping -------------------------------------------------------------------------------

TREE = {"a": [[3.0, -4.0]], "b": (12.0, {"c": [0.0]})}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("limit", [1.0, 6.5, 13.0, 20.0, 1])
def test_clipping(dtype, limit):
    gradients = tp.tree_map(lambda x: tp.asarray(x).astype(dtype), _arrays(TREE))
    flat = np.array([3.0, -4.0, 12.0, 0.0])
    norm = train.global_norm(gradients)
    assert norm.type == tp.TensorType(tp.float64 if dtype == "float64" else tp.float32, ())
    assert float(norm) == 13.0
    for clip in (train.clip_by_global_norm, tp.compile(train.clip_by_global_norm)):
        clipped, before = clip(gradients, limit)
        assert float(before) == 13.0
        leaves = tree.flatten(clipped)[0]
        assert tree.paths(clipped) == tree.paths(gradients)
        assert {str(leaf.dtype) for leaf in leaves} == {dtype}
        found = np.concatenate([leaf.numpy().ravel() for leaf in leaves])
        rtol = 2e-3 if dtype == "float16" else 1e-6
        np.testing.assert_allclose(found, flat * min(1.0, limit / 13.0), rtol=rtol)
    own = train.clip_by_norm(gradients, limit)
    for leaf, size in zip(tree.flatten(own)[0], (5.0, 12.0, 0.0), strict=True):
        assert str(leaf.dtype) == dtype
        found = np.linalg.norm(leaf.numpy().astype(np.complex128))
        np.testing.assert_allclose(
            found, min(size, limit), rtol=2e-3 if dtype == "float16" else 1e-6
        )


def _arrays(given):
    return {
        "a": np.array(given["a"]),
        "b": (np.array(given["b"][0]), {"c": np.array(given["b"][1]["c"])}),
    }


def test_a_tree_without_leaves_has_no_norm():
    clipped, norm = train.clip_by_global_norm({}, 1.0)
    assert (clipped, float(norm)) == ({}, 0.0)


def test_wide_norms_of_float16():
    big = tp.full((4,), 30000.0, dtype=tp.float16)  # the square is infinite in float16
    clipped, norm = train.clip_by_global_norm(big, 2.0)
    assert float(norm) == 60000.0
    np.testing.assert_allclose(clipped.numpy(), np.ones(4), rtol=1e-3)


# Whole loops ----------------------------------------------------------------------------


def _loss(params, x, y):
    return tp.mean(tp.square(tp.tanh(x @ params["w"]) + params["b"] - y))


def test_a_compiled_loop_with_everything():
    rng = np.random.default_rng(0)
    x, y = (
        tp.asarray(rng.normal(size=(8, 3)), dtype="float32"),
        tp.asarray(rng.random(8), dtype="float32"),
    )
    schedule = train.warmup(train.cosine_decay(0.3, 40), 5)
    optimizer = train.adam(schedule)
    traces = []

    def step(params, state, x, y):
        traces.append(1)
        value, gradients = tp.value_and_grad(_loss)(params, x, y)
        gradients, norm = train.clip_by_global_norm(gradients, 0.5)
        updates, state = optimizer.update(gradients, state, params)
        return value, norm, train.apply_updates(params, updates), state

    start = {"w": tp.asarray(rng.normal(size=3), dtype="float32"), "b": tp.asarray(0.0)}
    results = []
    for each in (step, tp.compile(step)):
        params, state = start, optimizer.init(start)
        traces.clear()
        for _ in range(40):
            value, norm, params, state = each(params, state, x, y)
        results.append((params["w"].numpy(), float(value), float(norm)))
    assert traces == [1]
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4)
    assert results[1][1] < 0.05

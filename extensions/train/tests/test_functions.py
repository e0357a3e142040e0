"""tp.train: refusals, schedules and clipping, against formulas in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, CompileError, DTypeError, ShapeError
from tensorplug.plugin import tree

train = tp.train

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
    "a cycle that only rises": (
        lambda: train.one_cycle(0.1, 10, rising=1.0),
        ArgumentError,
        r"one_cycle: rising must be below 1, got 1\.0",
    ),
    "a rate of text in a cycle": (
        lambda: train.one_cycle("high", 10),
        ArgumentError,
        "one_cycle: peak must be a number, got 'high'",
    ),
    "a mask of numbers": (
        lambda: train.sgd(weight_decay=0.5, mask=[1]).step(
            [tp.zeros(2)], {"step": 0}, [tp.zeros(2)]
        ),
        ArgumentError,
        r"sgd: mask\[0\] must be a bool, got 1",
    ),
    "a mask of another structure": (
        lambda: train.sgd(weight_decay=0.5, mask=lambda _: [True, False]).step(
            [tp.zeros(2)], {"step": 0}, [tp.zeros(2)]
        ),
        ArgumentError,
        r"sgd: mask is list of \[0, 1\], but list of \[0\] is needed",
    ),
    "a negative decay of weights": (
        lambda: train.adam(weight_decay=-1.0),
        ArgumentError,
        r"adam: weight_decay must be .*, got -1\.0",
    ),
    "no parameters to decay": (
        lambda: train.adamw().update(tp.ones(2), train.adamw().init(tp.ones(2))),
        ArgumentError,
        "adamw: update needs params for weight_decay",
    ),
    "no parameters to measure": (
        lambda: train.lamb().update(tp.ones(2), train.lamb().init(tp.ones(2))),
        ArgumentError,
        "lamb: update needs params",
    ),
    "complex parameters": (
        lambda: train.adafactor().init(tp.ones(2, dtype=tp.complex64)),
        DTypeError,
        r"adafactor: parameters must be real, got complex64\[2\]",
    ),
    "a search without a loss": (
        lambda: train.lbfgs().step(tp.ones(2), train.lbfgs().init(tp.ones(2)), tp.ones(2)),
        ArgumentError,
        "lbfgs: step and update need value_fn=",
    ),
    "variables of a search": (
        lambda: train.lbfgs().apply_gradients([(tp.Variable(1.0), 1.0)]),
        ArgumentError,
        "so there is no minimize",
    ),
    "a state of other sizes": (
        lambda: train.lbfgs().step(
            tp.ones(2), train.lbfgs(3).init(tp.ones(2)), tp.ones(2), value_fn=tp.sum
        ),
        ArgumentError,
        r"moves of shape \[10, 2\], got .*'moves': 'float32\[3,2\]'",
    ),
    "no memory": (
        lambda: train.lbfgs(0),
        ArgumentError,
        "lbfgs: memory must be a positive integer, got 0",
    ),
    "conditions that exclude each other": (
        lambda: train.lbfgs(sufficient=0.9, curvature=0.5),
        ArgumentError,
        r"0 < sufficient < curvature < 1 must hold, got 0\.9 and 0\.5",
    ),
    "a chain without an optimizer": (
        lambda: train.chain(train.clip_by_norm),
        ArgumentError,
        "chain: the last part must be an optimizer, got",
    ),
    "a chain of numbers": (
        lambda: train.chain(1.0, train.sgd()),
        ArgumentError,
        r"chain: all parts but the last must be functions of gradients, got 1\.0",
    ),
    "batches of no steps": (
        lambda: train.accumulate(train.sgd(), 0),
        ArgumentError,
        "accumulate: every must be a positive integer, got 0",
    ),
    "what is no optimizer": (
        lambda: train.accumulate(0.1, 2),
        ArgumentError,
        r"accumulate: optimizer must be an optimizer, got 0\.1",
    ),
    "a mean that keeps all": (
        lambda: train.ema(1.0),
        ArgumentError,
        r"ema: decay must be a number from 0 to below 1, got 1\.0",
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


def _cosine(begin, end, share):
    return end + (begin - end) * (1 + math.cos(math.pi * min(share, 1))) / 2


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
        lambda t: _cosine(0.5, 0.1, t / 20),
    ),
    "polynomial": (
        lambda: train.polynomial_decay(0.5, 20, 0.1, 2.0),
        lambda t: 0.1 + 0.4 * (1 - min(t, 20) / 20) ** 2,
    ),
    "piecewise": (
        lambda: train.piecewise_constant([3, 8, 20], [0.1, 0.7, 0.2, 0.05]),
        lambda t: 0.1 if t < 3 else 0.7 if t < 8 else 0.2 if t < 20 else 0.05,
    ),
    "one cycle": (
        lambda: train.one_cycle(0.5, 20, rising=0.4),
        lambda t: _cosine(0.02, 0.5, t / 8) if t < 8 else _cosine(0.5, 2e-6, (t - 8) / 12),
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


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_as_a_learning_rate(name, compiled):
    make, formula = SCHEDULES[name]
    optimizer, w, total = train.sgd(make()), tp.asarray([0.0]), 0.0
    state, step = optimizer.init(w), tp.compile(optimizer.step) if compiled else optimizer.step
    for t in range(12):
        w, state = step(tp.asarray([-1.0]), state, w)
        total += formula(t)
        np.testing.assert_allclose(w.numpy(), [total], rtol=1e-5, atol=1e-7)


RATES = {
    "a number": lambda: 0.3,
    "a wide tensor": lambda: tp.asarray(0.3, dtype=tp.float64),
    "a schedule of wide numbers": lambda: lambda step: 0.3 + 0.0 * tp.astype(step, tp.float64),
    "a schedule that reads the step": lambda: lambda step: 0.3 if step < 9 else 1.0,
    "a schedule of numbers": lambda: lambda _: 0.3,
}


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("make", [train.sgd, train.adam, train.adafactor])
def test_rates_are_numbers_tensors_and_schedules(name, make):
    start = tp.asarray([1.0, -2.0])
    found = [
        optimizer.step(start, optimizer.init(start), start)[0]
        for optimizer in (make(RATES[name]()), make(0.3))
    ]
    assert found[0].type == start.type
    np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=1e-6)


def test_a_program_cannot_read_the_step():
    optimizer, w = train.sgd(lambda step: 2.0 if step < 1 else 1.0), tp.asarray(1.0)
    with pytest.raises(CompileError, match=r"Use where"):
        tp.compile(optimizer.step)(w, optimizer.init(w), w)


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

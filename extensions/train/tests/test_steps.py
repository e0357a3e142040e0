"""Every step on every backend against its definition, in float64, from all gradients so far.

``step`` runs a program of the formulas, and ``update`` their ops one by one.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tensorplug as tp

from .formulas import RULES, expected, gradients

SHAPES = {"matrix": (5, 3), "one": (), "none": (0, 2)}
TOLERANCE = {"float32": 3e-6, "float64": 1e-12}


def tree(arrays):
    made = {name: tp.asarray(array) for name, array in arrays.items()}
    return {"matrix": [made["matrix"]], "others": (made["one"], made["none"])}


def arrays_of(params):
    (matrix,), (one, none) = params["matrix"], params["others"]
    return {"matrix": matrix, "one": one, "none": none}


def agree(tensor, wide, dtype):
    assert (tensor.shape, tensor.dtype.name) == (wide.shape, dtype)
    np.testing.assert_allclose(tensor.numpy(), wide, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def follow(rule, dtype):
    """Compare every step of a tree of parameters."""
    start = {key: np.full(shape, 0.75, dtype) for key, shape in SHAPES.items()}
    steps = {key: gradients(shape, dtype) for key, shape in SHAPES.items()}
    wanted = {
        key: expected(rule, start[key], [gradient.astype(np.float64) for gradient in steps[key]])
        for key in SHAPES
    }
    params = others = tree(start)
    state = other_state = rule.optimizer.init(params)
    for step in range(len(steps["one"])):
        now = tree({key: gradient[step] for key, gradient in steps.items()})
        updates, other_state = rule.optimizer.update(now, other_state, others)
        others = tp.train.apply_updates(others, updates)
        params, state = rule.optimizer.step(now, state, params)
        for key, parameter in arrays_of(params).items():
            agree(parameter, wanted[key][step], dtype)
            agree(arrays_of(others)[key], wanted[key][step], dtype)
    assert (int(state["step"]), state["step"].dtype) == (12, tp.int32)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", RULES)
def test_every_step(name):
    follow(RULES[name], "float32")


@pytest.mark.parametrize("name", RULES)
def test_every_step_in_float64(name):
    follow(RULES[name], "float64")


@pytest.mark.parametrize("name", ["sgd", "momentum", "adamw", "rmsprop, all"])
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_complex_parameter_steps_like_its_two_parts(active, name, backend):
    active(backend)
    rule = RULES[name]
    start = np.full((4,), 0.75 - 0.5j, np.complex64)
    params = tp.asarray(start)
    state = rule.optimizer.init(params)
    steps = gradients((4,), "complex64")
    for gradient in steps:
        params, state = rule.optimizer.step(tp.asarray(gradient), state, params)
    assert (params.dtype, params.shape) == (tp.complex64, (4,))
    for part in ("real", "imag"):
        alone = [getattr(gradient, part).astype(np.float64) for gradient in steps]
        wanted = expected(rule, getattr(start, part), alone)[-1]
        np.testing.assert_allclose(getattr(params.numpy(), part), wanted, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_optimizer_outlives_the_first(copied):
    optimizer, w = tp.train.adam(0.5, epsilon=0.0), tp.asarray(1.0)
    optimizer.step(w, optimizer.init(w), w)
    optimizer = copied(optimizer)
    stepped, _ = optimizer.step(w, optimizer.init(w), w)
    assert stepped.numpy() == pytest.approx(0.5)


def test_a_schedule_that_reads_its_step_serves_outside_of_programs():
    optimizer, w = tp.train.sgd(lambda taken: 0.5 if int(taken) else 0.25), tp.asarray(1.0)
    state = optimizer.init(w)
    for wanted in (0.75, 0.25):
        w, state = optimizer.step(tp.ones(()), state, w)
        assert w.numpy() == np.float32(wanted)

"""Every rule on every backend against its definition, in float64, from all gradients so far."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

from .rules import RULES, expected, gradients

SHAPES = {"matrix": (5, 3), "one": (), "none": (0, 2)}
TOLERANCE = {"float16": 4e-3, "float32": 3e-6, "float64": 1e-12}


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
    params = tree(start)
    state = rule.optimizer.init(params)
    for step in range(len(steps["one"])):
        now = tree({key: gradient[step] for key, gradient in steps.items()})
        params, state = rule.optimizer.update(params, state, now)
        for key, parameter in arrays_of(params).items():
            agree(parameter, wanted[key][step], dtype)
    assert (int(state["step"]), state["step"].dtype) == (12, tp.int32)


@pytest.mark.parametrize("name", RULES)
def test_every_step(place, name):
    rule = RULES[name]
    assert tp.explain(rule.optimizer.kernel, backend=tp.get_backend()).how == place
    follow(rule, "float32")


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("how", ["native", "decomposed"])
def test_every_step_in_float64(name, how):
    rule = RULES[name]
    if how == "decomposed":
        tp.unregister_kernel(rule.optimizer.kernel, "cpu")
    assert tp.explain(rule.optimizer.kernel, backend="cpu").how == how
    follow(rule, "float64")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", ["sgd", "adamw", "rmsprop, all"])
def test_one_compiled_program_for_all_steps(name):
    rule = RULES[name]
    traced = []

    @tp.compile
    def step(params, state, gradients):
        traced.append(1)
        return rule.optimizer.update(params, state, gradients)

    params = eager = tp.asarray(np.full((5, 3), 0.75, np.float32))
    state = eager_state = rule.optimizer.init(params)
    for gradient in gradients((5, 3), "float32"):
        params, state = step(params, state, tp.asarray(gradient))
        eager, eager_state = rule.optimizer.update(eager, eager_state, tp.asarray(gradient))
        agree(params, eager.numpy().astype(np.float64), "float32")
    assert traced == [1]
    assert int(state["step"]) == 12


@pytest.mark.parametrize("name", RULES)
def test_float16_steps_in_float32_and_is_rounded_once(name):
    rule = RULES[name]
    start = np.full((5, 3), 0.75, np.float16)
    params = tp.asarray(start)
    state = rule.optimizer.init(params)
    assert {value.dtype for key, value in state.items() if key != "step"} <= {tp.float32}
    steps = gradients((5, 3), "float16")
    wanted = expected(rule, start, [gradient.astype(np.float64) for gradient in steps])
    for gradient in steps:
        params, state = rule.optimizer.update(params, state, tp.asarray(gradient))
    agree(params, wanted[-1], "float16")


@pytest.mark.parametrize("name", ["sgd", "nesterov", "adamw", "rmsprop, all"])
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_complex_parameter_steps_like_its_two_parts(active, name, backend):
    active(backend)
    rule = RULES[name]
    start = np.full((4,), 0.75 - 0.5j, np.complex64)
    params = tp.asarray(start)
    state = rule.optimizer.init(params)
    steps = gradients((4,), "complex64")
    for gradient in steps:
        params, state = rule.optimizer.update(params, state, tp.asarray(gradient))
    assert (params.dtype, params.shape) == (tp.complex64, (4,))
    for part in ("real", "imag"):
        alone = [getattr(gradient, part).astype(np.float64) for gradient in steps]
        wanted = expected(rule, getattr(start, part), alone)[-1]
        np.testing.assert_allclose(getattr(params.numpy(), part), wanted, rtol=3e-6, atol=3e-6)

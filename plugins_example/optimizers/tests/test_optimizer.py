"""Trees, schedules, saving, gradients through a step; and what is refused, by name."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import pytest

import tensorplug as tp
import tensorplug_optimizers as optimizers
from tensorplug.plugin import ArgumentError, DTypeError, ShapeError

ONE = np.array([1.0, -2.0], np.float32)


def half(*values):
    return tp.asarray(values, dtype=tp.float16)


class Layer(NamedTuple):
    weights: object
    bias: object


def params_of(**leaves):
    return {"w": tp.asarray(ONE), "b": [tp.asarray(0.5)], **leaves}


def step_of(optimizer, params, gradients=None, state=None):
    gradients = tp.tree_map(tp.ones_like, params) if gradients is None else gradients
    return optimizer.update(params, state or optimizer.init(params), gradients)


# Trees and states -------------------------------------------------------------------------------


def test_the_state_is_a_tree_like_the_parameters():
    params = [Layer(tp.zeros((2, 3)), {"b": tp.zeros((3,))}), None]
    state = optimizers.adam().init(params)
    assert list(state) == ["step", "mean", "square"]
    assert (state["step"].tolist(), state["step"].dtype) == (0, tp.int32)
    assert isinstance(state["mean"][0], Layer)
    assert state["square"][0].bias["b"].shape == (3,)
    after, state = step_of(optimizers.adam(), params)
    assert isinstance(after[0], Layer)
    assert after[1] is None
    assert state["step"].tolist() == 1


def test_nothing_is_changed_in_place():
    optimizer, params = optimizers.adamw(0.1), params_of()
    state = optimizer.init(params)
    first, _ = step_of(optimizer, params, state=state)
    again, _ = step_of(optimizer, params, state=state)
    assert params["w"].tolist() == ONE.tolist()
    assert state["mean"]["w"].tolist() == [0, 0]
    assert first["w"].tolist() == again["w"].tolist() != ONE.tolist()


def test_variables_are_read():
    variable = tp.Variable(ONE)
    after, _ = optimizers.sgd(0.5).update([variable], {"step": tp.asarray(0)}, [tp.ones((2,))])
    assert after[0].tolist() == [0.5, -2.5]


def test_saved_state_continues_exactly(tmp_path):
    optimizer, params = optimizers.rmsprop(momentum=0.9), {"w": tp.asarray(ONE)}
    params, state = step_of(optimizer, params)
    tp.save({"params": params, "state": state}, tmp_path / "state.safetensors")
    loaded = tp.load(tmp_path / "state.safetensors")
    there, _ = step_of(optimizer, params, state=state)
    here, _ = step_of(optimizer, loaded["params"], state=loaded["state"])
    assert here["w"].tolist() == there["w"].tolist()


def test_copied_and_without_leaves():
    state = copy.deepcopy(optimizers.adam().init(params_of()))
    assert step_of(optimizers.adam(), params_of(), state=state)[1]["step"].tolist() == 1
    assert step_of(optimizers.adam(), {})[0] == {}


# Learning rates ---------------------------------------------------------------------------------

RATES = {
    "a number": 0.5,
    "a tensor": lambda: tp.asarray(0.5),
    "a function that gives numbers": lambda step: [0.5, 0.25][int(step)],
    "a function that gives tensors": lambda step: 0.5 / (1 + step.astype(tp.float32)),
}


@pytest.mark.parametrize("name", RATES)
def test_learning_rates(name):
    rate = RATES[name]() if name == "a tensor" else RATES[name]
    optimizer, params = optimizers.sgd(rate), [tp.asarray(ONE), tp.asarray(ONE.astype(np.float64))]
    params, state = step_of(optimizer, params)
    params, state = step_of(optimizer, params, state=state)
    total = 0.75 if "function" in name else 1.0
    assert [param.tolist() for param in params] == [(ONE - total).tolist()] * 2
    assert [param.dtype for param in params] == [tp.float32, tp.float64]


def test_a_schedule_of_tensors_is_compiled_once():
    seen = []

    def halved(step):
        seen.append(1)
        return 0.5 ** (step + 1).astype(tp.float32)

    optimizer, params = optimizers.sgd(halved), [tp.asarray(ONE)]
    update, state = tp.compile(optimizer.update), optimizer.init(params)
    for _ in range(3):
        params, state = update(params, state, [tp.ones((2,))])
    assert params[0].tolist() == (ONE - 0.875).tolist()
    assert seen == [1]


def test_a_schedule_that_asks_for_data_is_refused_in_a_program():
    optimizer, params = optimizers.sgd(lambda step: 0.1 if step < 5 else 0.01), [tp.asarray(ONE)]
    with pytest.raises(tp.errors.CompileError, match="reads the data"):
        tp.compile(optimizer.update)(params, optimizer.init(params), params)


# Gradients through a step -----------------------------------------------------------------------


@pytest.mark.parametrize("make", [optimizers.momentum, optimizers.adamw, optimizers.adamax])
def test_one_can_learn_the_learning_rate(make):
    target = tp.asarray(np.array([3.0, 1.0]))

    def after_three_steps(rate):
        optimizer, params = make(rate), tp.asarray(np.array([1.0, -2.0]))
        state = optimizer.init(params)
        for _ in range(3):
            gradients = tp.grad(lambda p: tp.sum(tp.square(p - target)))(params)
            params, state = optimizer.update(params, state, gradients)
        return tp.sum(tp.square(params - target))

    rate, h = np.array(0.05), 1e-6
    slope = float(tp.grad(after_three_steps)(tp.asarray(rate)))
    ends = [float(after_three_steps(tp.asarray(rate + offset))) for offset in (h, -h)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


# What is refused --------------------------------------------------------------------------------


def adam_state(**changes):
    return {**optimizers.adam().init(params_of()), **changes}


BAD = {
    "gradients lack a leaf": (
        lambda: {"params": params_of(), "gradients": {"w": tp.zeros((2,))}},
        ArgumentError,
        r"adam: gradients is dict of \['w'\], but params is dict of \['w', 'b'\]",
    ),
    "a gradient of another shape": (
        lambda: {
            "params": params_of(),
            "gradients": {"w": tp.zeros((3,)), "b": [tp.asarray(0.0)]},
        },
        ShapeError,
        r"adam: gradients\['w'\] is float32\[3\], but params\['w'\] asks for float32\[2\]",
    ),
    "a gradient of another dtype": (
        lambda: {
            "params": params_of(),
            "gradients": {"w": tp.zeros((2,)), "b": [tp.asarray(np.zeros(()))]},
        },
        DTypeError,
        r"adam: gradients\['b'\]\[0\] is float64\[\], but params\['b'\]\[0\] asks for float32\[\]",
    ),
    "a gradient that is a number": (
        lambda: {"params": params_of(), "gradients": {"w": tp.zeros((2,)), "b": [0.0]}},
        ArgumentError,
        r"adam: gradients\['b'\]\[0\] must be a tensor, got 0.0",
    ),
    "a parameter that is a number": (
        lambda: {"params": params_of(n=1.0)},
        ArgumentError,
        r"adam: params\['n'\] must be a tensor, got 1.0",
    ),
    "a parameter of integers": (
        lambda: {"params": params_of(n=tp.asarray([1, 2]))},
        DTypeError,
        r"adam: params\['n'\] is int\d+\[2\], but only floating and complex numbers can move",
    ),
    "another optimizer's state": (
        lambda: {"params": params_of(), "state": optimizers.rmsprop().init(params_of())},
        ArgumentError,
        r"adam: the state must hold \['step', 'mean', 'square'\], got \['square', 'step'\]",
    ),
    "no state": (
        lambda: {"params": params_of(), "state": (1, 2)},
        ArgumentError,
        r"adam: the state must hold .*, got \(1, 2\)",
    ),
    "another model's state": (
        lambda: {
            "params": params_of(),
            "state": adam_state(mean={"w": tp.zeros((9,)), "b": [tp.asarray(0.0)]}),
        },
        ShapeError,
        r"adam: state\['mean'\]\['w'\] is float32\[9\], but params\['w'\] asks for float32\[2\]",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_messages_name_the_leaf(name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        step_of(optimizers.adam(), **make())


NUMBERS = {
    "learning_rate": [-1.0, float("inf"), float("nan"), "1", True, None],
    "weight_decay": [-1.0, float("inf"), "1", True],
    "beta1": [1.0, -0.1, 2],
    "beta2": [1.0],
    "epsilon": [-1e-9, None],
    "momentum": [-1.0],
    "decay": [1.0],
    "initial_square": [-1.0, "1"],
}
MAKERS = {"momentum": optimizers.momentum, "decay": optimizers.rmsprop}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in NUMBERS.items() for value in values]
)
def test_numbers_out_of_range_are_refused(name, value):
    make = MAKERS.get(name, optimizers.adagrad if name == "initial_square" else optimizers.adam)
    with pytest.raises(ArgumentError, match=f"^{make.__name__}: {name} must be a number"):
        make(**{name: value})


def test_invalid_schedule_is_refused():
    with pytest.raises(ArgumentError, match=r"sgd: the schedule must return .*, got float32\[2\]"):
        step_of(optimizers.sgd(lambda _: tp.zeros((2,))), params_of())


# Clipping ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2.5, 100.0])
def test_clipped_gradients_keep_their_direction(most):
    gradients = {"a": tp.asarray([3.0, 0.0]), "b": tp.asarray([[4j]]), "c": half(0.0)}
    clipped, norm = optimizers.clip_by_global_norm(gradients, most)
    share = min(1.0, most / 5)
    assert norm.tolist() == 5
    assert clipped["a"].numpy() == pytest.approx([3 * share, 0])
    assert clipped["b"].numpy() == pytest.approx(np.array([[4j * share]]))
    assert [gradient.dtype for gradient in clipped.values()] == [
        gradient.dtype for gradient in gradients.values()
    ]


def test_float16_does_not_overflow_in_a_norm():
    assert optimizers.global_norm([half(300.0, 400.0)]).tolist() == 500
    assert optimizers.global_norm({}).tolist() == 0


@pytest.mark.parametrize("most", [0, -1.0, float("nan")])
def test_a_norm_is_positive(most):
    with pytest.raises(ArgumentError, match="max_norm must be positive"):
        optimizers.clip_by_global_norm([tp.zeros((1,))], most)

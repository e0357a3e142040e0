"""Trees of parameters, states that are saved, gradients through a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import tensorplug as tp

ONE = np.array([1.0, -2.0], np.float32)


class Layer(NamedTuple):
    weights: object
    bias: object


def step_of(optimizer, params, state=None):
    gradients = tp.tree_map(tp.ones_like, params)
    return optimizer.step(gradients, state or optimizer.init(params), params)


def test_the_state_is_a_tree_like_the_parameters():
    params = [Layer(tp.zeros((2, 3)), {"b": tp.zeros((3,))}), None]
    state = tp.train.adam().init(params)
    assert list(state) == ["step", "means", "squares"]
    assert (state["step"].tolist(), state["step"].dtype) == (0, tp.int32)
    assert isinstance(state["means"][0], Layer)
    after, state = step_of(tp.train.adam(), params)
    assert isinstance(after[0], Layer)
    assert (after[1], state["step"].tolist()) == (None, 1)


def test_nothing_is_changed_in_place():
    optimizer, params = tp.train.adamw(0.1), {"w": tp.asarray(ONE)}
    state = optimizer.init(params)
    first, _ = step_of(optimizer, params, state)
    again, _ = step_of(optimizer, params, state)
    assert params["w"].tolist() == ONE.tolist()
    assert state["means"]["w"].tolist() == [0, 0]
    assert first["w"].tolist() == again["w"].tolist() != ONE.tolist()


@pytest.mark.parametrize("name", ["momentum", "adamw", "adamax"])
def test_a_learning_rate_can_be_learnt(name):
    target = tp.asarray(np.array([3.0, 1.0]))

    def after_three_steps(rate):
        optimizer, params = getattr(tp.train, name)(rate), tp.asarray(np.array([1.0, -2.0]))
        state = optimizer.init(params)
        for _ in range(3):
            gradients = tp.grad(lambda p: tp.sum(tp.square(p - target)))(params)
            params, state = optimizer.step(gradients, state, params)
        return tp.sum(tp.square(params - target))

    rate, h = np.array(0.05), 1e-6
    slope = float(tp.grad(after_three_steps)(tp.asarray(rate)))
    ends = [float(after_three_steps(tp.asarray(rate + offset))) for offset in (h, -h)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)

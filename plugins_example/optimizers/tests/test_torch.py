"""Every rule beside PyTorch's, with its own defaults for what is not said."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_optimizers import clip_by_global_norm

from .rules import RULES, gradients

torch = pytest.importorskip("torch")

CLOSE = {"float32": 2e-6, "float64": 1e-13, "complex64": 2e-6}  # of numbers about 1, in 12 steps


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", CLOSE)
def test_parameters_are_pytorchs(name, dtype):
    rule = RULES[name]
    start = [np.full(shape, 0.75, dtype) for shape in ((5, 3), (), (40,))]
    steps = [gradients(parameter.shape, dtype) for parameter in start]
    theirs = [torch.tensor(parameter) for parameter in start]
    made = getattr(torch.optim, rule.torch)
    decay = {"weight_decay": rule.weight_decay} if rule.torch != "AdamW" else {}
    other = made(theirs, lr=rule.rate, **decay, **(rule.options or {}))
    params = [tp.asarray(parameter) for parameter in start]
    state = rule.optimizer.init(params)
    for step in range(len(steps[0])):
        for leaf, gradient in zip(theirs, steps, strict=True):
            leaf.grad = torch.tensor(gradient[step])
        other.step()
        now = [tp.asarray(gradient[step]) for gradient in steps]
        params, state = rule.optimizer.update(params, state, now)
    for ours, leaf in zip(params, theirs, strict=True):
        assert (ours.dtype.name, ours.shape) == (dtype, tuple(leaf.shape))
        np.testing.assert_allclose(
            ours.numpy(), leaf.numpy(), rtol=CLOSE[dtype], atol=CLOSE[dtype]
        )


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "adamax", "adagrad", "rmsprop"])
def test_defaults_are_pytorchs(name):
    import tensorplug_optimizers

    made = getattr(torch.optim, RULES[name].torch)([torch.zeros(1)]).defaults
    ours = vars(getattr(tensorplug_optimizers, name)())
    same = {"epsilon": "eps", "decay": "alpha", "weight_decay": "weight_decay"}
    assert ours["_learning_rate"] == made["lr"]
    for mine, theirs in same.items():
        if mine in ours["_attributes"]:
            assert ours["_attributes"][mine] == made[theirs], mine
    if "beta1" in ours["_attributes"]:
        assert (ours["_attributes"]["beta1"], ours["_attributes"]["beta2"]) == made["betas"]


@pytest.mark.parametrize("most", [0.5, 1e3])
def test_clipped_gradients_are_pytorchs(most):
    grads = [gradients(shape, "float32")[0] for shape in ((5, 3), (7,))]
    leaves = [torch.zeros(gradient.shape) for gradient in grads]
    for leaf, gradient in zip(leaves, grads, strict=True):
        leaf.grad = torch.tensor(gradient)
    norm = torch.nn.utils.clip_grad_norm_(leaves, most)
    clipped, ours = clip_by_global_norm([tp.asarray(gradient) for gradient in grads], most)
    np.testing.assert_allclose(ours.numpy(), norm.numpy(), rtol=1e-6)
    for gradient, leaf in zip(clipped, leaves, strict=True):
        np.testing.assert_allclose(gradient.numpy(), leaf.grad.numpy(), rtol=1e-6)

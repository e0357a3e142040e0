"""The rules whose formulas are PyTorch's, beside them."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

from .formulas import RULES, gradients

torch = pytest.importorskip("torch")

CLOSE = {"float32": 2e-6, "float64": 1e-13, "complex64": 2e-6}  # of numbers about 1, in 12 steps


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.torch])
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
        params, state = rule.optimizer.step(now, state, params)
    for ours, leaf in zip(params, theirs, strict=True):
        assert (ours.dtype.name, ours.shape) == (dtype, tuple(leaf.shape))
        np.testing.assert_allclose(
            ours.numpy(), leaf.numpy(), rtol=CLOSE[dtype], atol=CLOSE[dtype]
        )


@pytest.mark.parametrize("most", [0.5, 1e3])
def test_clipped_gradients_are_pytorchs(most):
    grads = [gradients(shape, "float32")[0] for shape in ((5, 3), (7,))]
    leaves = [torch.zeros(gradient.shape) for gradient in grads]
    for leaf, gradient in zip(leaves, grads, strict=True):
        leaf.grad = torch.tensor(gradient)
    norm = torch.nn.utils.clip_grad_norm_(leaves, most)
    clipped, ours = tp.train.clip_by_global_norm(
        [tp.asarray(gradient) for gradient in grads], most
    )
    np.testing.assert_allclose(ours.numpy(), norm.numpy(), rtol=1e-6)
    for gradient, leaf in zip(clipped, leaves, strict=True):
        np.testing.assert_allclose(gradient.numpy(), leaf.grad.numpy(), rtol=1e-6)

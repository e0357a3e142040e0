"""Values, gradients and products with Hessians compared with PyTorch's, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch")


def _draws(shapes: Any) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [np.asarray(random.normal(size=tuple(shape))) for shape in shapes]


def _equal(actual: Any, expected: Any) -> None:
    assert (actual.dtype, actual.shape) == (tp.float64, tuple(expected.shape))
    wanted = expected.detach().numpy()
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=1e-10, atol=1e-12 * scale)


def agree(ours: Any, theirs: Any, args: tuple[np.ndarray, ...]) -> None:
    """Compare the value, and its gradients for a random incoming one."""
    leaves = [torch.tensor(argument, requires_grad=True) for argument in args]
    expected = theirs(*leaves)
    (dy,) = _draws([expected.shape])
    expected.backward(torch.from_numpy(dy))
    value, vjp = tp.vjp(ours, *map(tp.asarray, args))
    _equal(value, expected)
    for gradient, leaf in zip(vjp(tp.asarray(dy)), leaves, strict=True):
        _equal(gradient, leaf.grad)


def agree_in_second_order(ours: Any, theirs: Any, args: tuple[np.ndarray, ...]) -> None:
    """Compare the gradients of <v, gradients>: the Hessian times random v."""
    leaves = [torch.tensor(argument, requires_grad=True) for argument in args]
    expected = theirs(*leaves)
    dy, *vs = _draws([expected.shape, *(argument.shape for argument in args)])
    first = torch.autograd.grad((expected * torch.from_numpy(dy)).sum(), leaves, create_graph=True)
    along = sum((g * torch.from_numpy(v)).sum() for g, v in zip(first, vs, strict=True))
    connected = along + sum((leaf * 0).sum() for leaf in leaves)  # also where first is constant
    second = torch.autograd.grad(connected, leaves)
    positions = tuple(range(len(args)))

    def slope(*leaves: Any) -> Any:
        weighted = tp.grad(lambda *inner: tp.sum(ours(*inner) * dy), positions)(*leaves)
        return tp.add_n([tp.sum(g * v) for g, v in zip(weighted, vs, strict=True)])

    found = tp.grad(slope, positions, unconnected="zeros")(*map(tp.asarray, args))
    for gradient, wanted in zip(found, second, strict=True):
        _equal(gradient, wanted)

"""Layers beside PyTorch's, whose weights they take."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch")
layers = tp.train.layers


def ours(tensor, *axes):
    array = tensor.detach().numpy()
    return tp.asarray(np.ascontiguousarray(array.transpose(axes) if axes else array))


def linear(theirs):
    return layers.Linear(ours(theirs.weight, 1, 0), ours(theirs.bias))


def conv(theirs):
    options = (theirs.stride, theirs.padding, theirs.dilation, theirs.groups)
    return layers.Conv(ours(theirs.weight, 2, 3, 1, 0), ours(theirs.bias), *options)


def transposed(theirs):
    options = (theirs.stride, theirs.padding, theirs.dilation, theirs.groups)
    return layers.ConvTranspose(ours(theirs.weight, 2, 3, 1, 0), ours(theirs.bias), *options)


def attention(theirs):
    weights = np.split(theirs.in_proj_weight.detach().numpy(), 3)
    biases = np.split(theirs.in_proj_bias.detach().numpy(), 3)
    made = [
        layers.Linear(tp.asarray(weight.T.copy()), tp.asarray(bias))
        for weight, bias in zip(weights, biases, strict=True)
    ]
    return layers.MultiHeadAttention(*made, linear(theirs.out_proj), theirs.num_heads)


def recurrent(theirs):
    def weights(name):  # of both directions of each layer
        ends = ("", "_reverse")
        pairs = [[getattr(theirs, f"{name}_l{at}{end}") for end in ends] for at in range(2)]
        return tuple(tp.stack([ours(w.t()) for w in pair]) for pair in pairs)

    kernels, biases = (weights("weight_ih"), weights("weight_hh")), ("bias_ih", "bias_hh")
    first, second = (weights(name) for name in biases)
    if isinstance(theirs, torch.nn.GRU):
        return layers.GRU(*kernels, first, second)
    return layers.LSTM(*kernels, tuple(a + b for a, b in zip(first, second, strict=True)))


def normed(kind, *options):
    return lambda theirs: kind(ours(theirs.weight), ours(theirs.bias), *options)


nn, stacked = torch.nn, {"num_layers": 2, "bidirectional": True, "batch_first": True}
CASES = {
    "linear": (lambda: nn.Linear(5, 3), linear, (4, 5)),
    "conv": (lambda: nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), 2, 2), conv, (2, 7, 6, 4)),
    "transposed": (
        lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, groups=2, dilation=(1, 2)),
        transposed,
        (2, 5, 4, 4),
    ),
    "layer norm": (lambda: nn.LayerNorm(6), normed(layers.LayerNorm), (3, 6)),
    "group norm": (lambda: nn.GroupNorm(3, 6), normed(layers.GroupNorm, 3), (2, 4, 5, 6)),
    "attention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), attention, (2, 5, 8)),
    "lstm": (lambda: nn.LSTM(3, 4, **stacked), recurrent, (2, 5, 3)),
    "gru": (lambda: nn.GRU(3, 4, **stacked), recurrent, (2, 5, 3)),
}


def channels_first(x):
    return torch.moveaxis(torch.tensor(x), -1, 1)


@pytest.mark.parametrize("name", CASES)
def test_results_are_pytorchs(name):
    make, convert, shape = CASES[name]
    torch.manual_seed(0)
    theirs, x = make().double(), np.random.default_rng(0).normal(size=shape)
    images = len(shape) == 4
    given = channels_first(x) if images else torch.tensor(x)
    wanted = theirs(*[given] * (3 if name == "attention" else 1))
    wanted = wanted[0] if isinstance(wanted, tuple) else wanted
    wanted = torch.moveaxis(wanted, 1, -1) if images else wanted
    y = convert(theirs)(x)
    assert y.shape == tuple(wanted.shape)
    np.testing.assert_allclose(y.numpy(), wanted.detach().numpy(), rtol=1e-10, atol=1e-12)


def test_running_statistics_are_pytorchs():
    theirs, rng = nn.BatchNorm2d(3, momentum=0.2).double(), np.random.default_rng(0)
    norm = layers.BatchNorm(ours(theirs.weight), ours(theirs.bias), 0.8)
    state = norm.initial_state()
    for size in (4, 2, 3):
        x = rng.normal(size=(size, 5, 5, 3)) + size
        wanted = torch.moveaxis(theirs(channels_first(x)), 1, -1).detach().numpy()
        y, state = layers.apply(norm, x, state, training=True)
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-10, atol=1e-12)
    for name in ("mean", "var"):
        mine = state[{"var": "variance"}.get(name, name)]
        np.testing.assert_allclose(mine.numpy(), getattr(theirs, f"running_{name}"), rtol=1e-12)

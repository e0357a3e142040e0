"""The layers in NumPy: loops over places and steps, in the layouts of tensorplug."""

from __future__ import annotations

import math

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normalized(x, axes, layer):
    distance = x - x.mean(axes, keepdims=True)
    y = distance / np.sqrt((distance**2).mean(axes, keepdims=True) + layer.epsilon)
    return y * layer.scale + (0 if layer.offset is None else layer.offset)


def each(sizes, axes):
    return sizes if isinstance(sizes, tuple) else (sizes,) * axes


def pads(padding, sizes, reaches, strides):
    if padding == "valid":
        return [(0, 0)] * len(sizes)
    if padding == "same":
        found = []
        for size, reach, stride in zip(sizes, reaches, strides, strict=True):
            missing = max(0, (math.ceil(size / stride) - 1) * stride + reach - size)
            found.append((missing // 2, missing - missing // 2))
        return found
    return [(pad, pad) if isinstance(pad, int) else pad for pad in each(padding, len(sizes))]


def window(layer, axes):
    strides, dilations = each(layer.stride, axes), each(layer.dilation, axes)
    taps = layer.weight.shape[:axes]
    reaches = [(tap - 1) * step + 1 for tap, step in zip(taps, dilations, strict=True)]

    def under(place):
        return tuple(
            slice(at * stride, at * stride + reach, step)
            for at, stride, reach, step in zip(place, strides, reaches, dilations, strict=True)
        )

    return strides, reaches, under


def convolution(layer, x):
    axes = x.ndim - 2
    strides, reaches, under = window(layer, axes)
    around = pads(layer.padding, x.shape[1:-1], reaches, strides)
    x = np.pad(x, [(0, 0), *around, (0, 0)])
    places = [
        (size - reach) // stride + 1
        for size, reach, stride in zip(x.shape[1:-1], reaches, strides, strict=True)
    ]
    inputs, outputs = layer.weight.shape[-2:]
    own = outputs // layer.groups
    y = np.zeros((len(x), *places, outputs))
    for place in np.ndindex(*places):
        patch = x[(slice(None), *under(place))]
        for group in range(layer.groups):
            seen = patch[..., group * inputs : (group + 1) * inputs]
            filters = layer.weight[..., group * own : (group + 1) * own]
            summed = (range(1, axes + 2), range(axes + 1))
            y[(slice(None), *place, slice(group * own, (group + 1) * own))] = np.tensordot(
                seen, filters, summed
            )
    return y if layer.bias is None else y + layer.bias


def transposed_convolution(layer, x):
    axes = x.ndim - 2
    strides, reaches, under = window(layer, axes)
    full = [
        (size - 1) * stride + reach
        for size, stride, reach in zip(x.shape[1:-1], strides, reaches, strict=True)
    ]
    parts = np.split(layer.weight, layer.groups, -1)
    y = np.zeros((len(x), *full, layer.weight.shape[-2] * layer.groups))
    for place in np.ndindex(*x.shape[1:-1]):
        seen = np.split(x[(slice(None), *place)], layer.groups, -1)
        spread = [np.tensordot(*pair, (-1, -1)) for pair in zip(seen, parts, strict=True)]
        y[(slice(None), *under(place))] += np.concatenate(spread, -1)
    sizes = [size * stride for size, stride in zip(x.shape[1:-1], strides, strict=True)]
    around = pads(layer.padding, sizes, reaches, strides)
    ends = [before + size for (before, _), size in zip(around, sizes, strict=True)]
    if layer.padding != "same":
        ends = [size - after for size, (_, after) in zip(full, around, strict=True)]
    wanted = [slice(before, end) for (before, _), end in zip(around, ends, strict=True)]
    # "same" may want places that no window reaches.
    y = np.pad(y, [(0, 0), *[(0, max(strides))] * axes, (0, 0)])
    return y[(slice(None), *wanted)] + (0 if layer.bias is None else layer.bias)


def group_norm(layer, x):
    parts = np.split(x, layer.groups, axis=-1)
    axes = tuple(range(1, x.ndim))
    y = [
        (part - part.mean(axes, keepdims=True))
        / np.sqrt(part.var(axes, keepdims=True) + layer.epsilon)
        for part in parts
    ]
    return np.concatenate(y, -1) * layer.scale + layer.offset


def rms_norm(layer, x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + layer.epsilon) * layer.scale


def linear(layer, x):
    return x @ layer.weight + (0 if layer.bias is None else layer.bias)


def attention(layer, x):
    q, k, v = (linear(each, x) for each in (layer.query, layer.key, layer.value))
    size = q.shape[-1] // layer.heads
    shared = layer.heads // (k.shape[-1] // size)
    results = []
    for head in range(layer.heads):
        at = slice(head * size, (head + 1) * size)
        of_keys = slice(head // shared * size, (head // shared + 1) * size)
        queries, keys = rotated(layer, q[..., at]), rotated(layer, k[..., of_keys])
        scores = queries @ np.swapaxes(keys, -1, -2) / np.sqrt(size)
        if layer.causal:
            scores = np.where(np.tri(x.shape[-2], dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        results.append(weights / weights.sum(-1, keepdims=True) @ v[..., of_keys])
    return linear(layer.output, np.concatenate(results, -1))


def rotated(layer, x):
    if layer.rotary is None:
        return x
    half = x.shape[-1] // 2  # as complex numbers
    pairs = x[..., :half] + 1j * x[..., half:]
    angles = np.arange(x.shape[-2])[:, None] / layer.rotary ** (np.arange(half) / half)
    turned = pairs * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], -1)


def lstm_step(x, weights, state):
    (kernel, recurrent, bias), (h, c) = weights, state
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, weights, state):
    (kernel, recurrent, bias, recurrent_bias), (h,) = weights, state
    xr, xz, xn = np.split(x @ kernel + bias, 3, axis=-1)
    ar, az, an = np.split(h @ recurrent + recurrent_bias, 3, axis=-1)
    z = sigmoid(xz + az)
    return ((1 - z) * np.tanh(xn + sigmoid(xr + ar) * an) + z * h,)


def recurrent(step, states, layer, x):
    names = ("kernels", "recurrent_kernels", "biases", "recurrent_biases")
    for weights in zip(
        *(getattr(layer, name) for name in names if hasattr(layer, name)), strict=True
    ):
        both = weights[0].ndim == 3
        results = []
        for direction in range(1 + both):
            own = [each[direction] if both else each for each in weights]
            units = own[1].shape[0]
            state, outputs = (np.zeros((len(x), units)),) * states, []
            for t in range(x.shape[1])[:: -1 if direction else 1]:
                state = step(x[:, t], own, state)
                outputs.append(state[0])
            results.append(np.stack(outputs[:: -1 if direction else 1], 1))
        x = np.concatenate(results, -1)
    return x

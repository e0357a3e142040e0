"""Composite functions: values and gradients compared with PyTorch's, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.torch_comparison import agree, agree_in_second_order, torch

import tensorplug as tp

RNG = np.random.default_rng(7)
MATRIX = RNG.normal(size=(4, 3))
OTHER = RNG.normal(size=(3, 5))
POSITIVE = RNG.uniform(0.5, 2.0, size=(4, 3))
BATCH = RNG.normal(size=(2, 1, 3, 4))
BATCH_B = RNG.normal(size=(5, 4, 2))
IMAGE = RNG.normal(size=(2, 7, 6, 3))
FILTER = RNG.normal(size=(3, 2, 3, 4))
INDICES = np.array([2, 0, 2, 3])
LABELS = np.eye(3)[[0, 2, 1, 1]]


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def _nchw(x: Any) -> Any:
    return x.permute(0, 3, 1, 2)


def _nhwc(x: Any) -> Any:
    return x.permute(0, 2, 3, 1)


def _torch_conv(x: Any, f: Any, **options: Any) -> Any:
    weight = f.permute(3, 2, 0, 1)
    return _nhwc(torch.nn.functional.conv2d(_nchw(x), weight, **options))


def _torch_pool(x: Any, *args: Any, **options: Any) -> Any:
    return _nhwc(torch.nn.functional.max_pool2d(_nchw(x), *args, **options))


# Name; ours; PyTorch's; the arguments, all differentiated.
FUNCTIONS: list[tuple[str, Any, Any, tuple[np.ndarray, ...]]] = [
    ("gelu", lambda x: 0.5 * x * (1 + tp.erf(x / 2**0.5)), torch.nn.functional.gelu, (MATRIX,)),
    ("silu", lambda x: x * tp.nn.sigmoid(x), torch.nn.functional.silu, (MATRIX,)),
    (
        "logsumexp",
        lambda x: tp.log(tp.sum(tp.exp(x), axis=1)),
        lambda x: torch.logsumexp(x, 1),
        (MATRIX,),
    ),
    (
        "softmax of softmax",
        lambda x: tp.nn.softmax(tp.nn.softmax(x), axis=0),
        lambda x: torch.softmax(torch.softmax(x, -1), 0),
        (MATRIX,),
    ),
    (
        "cross entropy",
        lambda x: tp.losses.softmax_cross_entropy(LABELS, x),
        lambda x: torch.nn.functional.cross_entropy(x, torch.from_numpy(LABELS)),
        (MATRIX,),
    ),
    (
        "layer norm",
        lambda x: (
            (x - tp.mean(x, axis=1, keepdims=True))
            / tp.sqrt(
                tp.mean(tp.square(x - tp.mean(x, axis=1, keepdims=True)), axis=1, keepdims=True)
                + 1e-5
            )
        ),
        lambda x: torch.nn.functional.layer_norm(x, (3,)),
        (MATRIX,),
    ),
    (
        "perceptron",
        lambda x, w: tp.nn.relu(x @ w),
        lambda x, w: torch.relu(x @ w),
        (MATRIX, OTHER),
    ),
    (
        "tanh layer",
        lambda x, w, b: tp.tanh(x @ w + b),
        lambda x, w, b: torch.tanh(x @ w + b),
        (MATRIX, OTHER, OTHER[0]),
    ),
    ("batched product", tp.matmul, torch.matmul, (BATCH, BATCH_B)),
    (
        "vector products",
        lambda a, m, b: a @ m @ b,
        lambda a, m, b: a @ m @ b,
        (MATRIX[:, 0], MATRIX, OTHER[:, 0]),
    ),
    ("power", lambda a, b: a**b, lambda a, b: a**b, (POSITIVE, MATRIX[0])),
    (
        "distance",
        lambda a, b: tp.sqrt(tp.sum(tp.squared_difference(a[:, None], b[None]), axis=-1)),
        lambda a, b: torch.linalg.vector_norm(a[:, None] - b[None], dim=-1),
        (MATRIX, POSITIVE),
    ),
    (
        "clamped",
        lambda x: tp.minimum(tp.maximum(x, -0.5), 0.7),
        lambda x: torch.clamp(x, -0.5, 0.7),
        (MATRIX,),
    ),
    ("product of rows", lambda x: tp.prod(x, axis=0), lambda x: torch.prod(x, 0), (MATRIX,)),
    (
        "range of values",
        lambda x: tp.max(x, axis=1) - tp.min(x, axis=1),
        lambda x: torch.amax(x, 1) - torch.amin(x, 1),
        (MATRIX,),
    ),
    (
        "embedding",
        lambda x: tp.gather(x, INDICES) * tp.gather(x, INDICES[::-1].copy()),
        lambda x: x[torch.from_numpy(INDICES)] * x[torch.from_numpy(INDICES[::-1].copy())],
        (MATRIX,),
    ),
    ("top values", lambda x: tp.topk(x, 2)[0] ** 2, lambda x: torch.topk(x, 2)[0] ** 2, (MATRIX,)),
    (
        "slices and joins",
        lambda x: tp.concat([x[::2, 1:], x[-1:, :2] * 3, x[1:2, ::-2]], axis=0),
        lambda x: torch.cat([x[::2, 1:], x[-1:, :2] * 3, x[1:2].flip(1)[:, ::2]]),
        (MATRIX,),
    ),
    (
        "padded and moved",
        lambda x: tp.permute_dims(tp.pad(x, ((1, 0), (0, 2)), 2.5)) ** 2,
        lambda x: torch.nn.functional.pad(x, (0, 2, 1, 0), value=2.5).T ** 2,
        (MATRIX,),
    ),
    (
        "where",
        lambda x, y: tp.where(x > y, tp.sin(x) * y, tp.cos(y)),
        lambda x, y: torch.where(x > y, torch.sin(x) * y, torch.cos(y)),
        (MATRIX, POSITIVE),
    ),
    (
        "remainder and atan",
        lambda a, b: tp.atan(a % b) / b,
        lambda a, b: torch.atan(torch.remainder(a, b)) / b,
        (MATRIX, POSITIVE),
    ),
    (
        "convolution",
        lambda x, f: tp.nn.conv2d(x, f, (2, 1), ((0, 0), (1, 1), (2, 2), (0, 0)), dilations=2),
        lambda x, f: _torch_conv(x, f, stride=(2, 1), padding=(1, 2), dilation=2),
        (IMAGE, FILTER),
    ),
    (
        "convolution, same",
        lambda x, f: tp.nn.conv2d(x, f, 1, "same"),
        lambda x, f: _torch_conv(torch.nn.functional.pad(x, (0, 0, 0, 1, 1, 1)), f),
        (IMAGE, FILTER),
    ),
    (
        "pooling",
        lambda x: tp.nn.max_pool(x, (3, 2), 2, 1),
        lambda x: _torch_pool(x, (3, 2), 2, 1),
        (IMAGE,),
    ),
    (
        "pooling, ceil",
        lambda x: tp.nn.max_pool(x, 2, 2, 0, dim_rounding_mode="ceil"),
        lambda x: _torch_pool(x, 2, 2, ceil_mode=True),
        (IMAGE,),
    ),
    (
        "small network",
        lambda x, f, w: tp.nn.log_softmax(
            tp.reshape(tp.nn.max_pool(tp.nn.relu(tp.nn.conv2d(x, f)), 2, 2), (2, -1)) @ w
        ),
        lambda x, f, w: torch.log_softmax(
            _torch_pool(torch.relu(_torch_conv(x, f)), 2, 2).reshape(2, -1) @ w, -1
        ),
        (IMAGE, FILTER, RNG.normal(size=(16, 3))),
    ),
]


@pytest.mark.parametrize("row", FUNCTIONS, ids=[row[0] for row in FUNCTIONS])
def test_values_and_gradients(row: Any) -> None:
    agree(*row[1:])


@pytest.mark.parametrize("row", FUNCTIONS, ids=[row[0] for row in FUNCTIONS])
def test_hessian_vector_products(row: Any) -> None:
    agree_in_second_order(*row[1:])

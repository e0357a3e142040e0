"""Models, losses and layers: values and gradients compared with PyTorch's, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.torch_comparison import agree, agree_in_second_order, torch

import tensorplug as tp

pytestmark = pytest.mark.usefixtures("on_the_cpu")
F = torch.nn.functional

RNG = np.random.default_rng(11)


def draw(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 2.0, size=shape)


def nchw(x: Any) -> Any:
    return x.permute(0, 3, 1, 2)


def nhwc(x: Any) -> Any:
    return x.permute(0, 2, 3, 1)


X, Y, POSITIVE = draw(4, 3), draw(4, 3), positive(4, 3)
SEQUENCE = draw(2, 5, 4)  # batch, time, features
IMAGE = draw(2, 6, 7, 2)
VOLUME = draw(1, 4, 5, 4, 2)
TARGETS = np.array([0, 2, 1, 1])
ONE_HOT = np.eye(3)[TARGETS]
BINARY = np.array([[0.0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 0]])
MASK = np.tril(np.ones((5, 5), bool))

binary, one_hot = torch.from_numpy(BINARY), torch.from_numpy(ONE_HOT)

# Models and attention -----------------------------------------------------------------------


def attention(x: Any, q: Any, k: Any, v: Any) -> Any:
    scores = (x @ q) @ tp.matrix_transpose(x @ k) / 2.0
    return tp.nn.softmax(tp.where(MASK, scores, -1e9)) @ (x @ v)


def torch_attention(x: Any, q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(x @ q, x @ k, x @ v, is_causal=True)


def rnn(x: Any, w: Any, u: Any, b: Any) -> Any:
    h = tp.zeros((2, 3), dtype=tp.float64)
    for step in tp.unstack(x, axis=1):
        h = tp.tanh(step @ w + h @ u + b)
    return h


def torch_rnn(x: Any, w: Any, u: Any, b: Any) -> Any:
    h = torch.zeros(2, 3, dtype=torch.float64)
    for step in x.unbind(1):
        h = torch.tanh(step @ w + h @ u + b)
    return h


def lstm(x: Any, w: Any, u: Any, b: Any) -> Any:
    h = c = tp.zeros((2, 3), dtype=tp.float64)
    for at in range(x.shape[1]):
        i, f, g, o = tp.split(x[:, at] @ w + h @ u + b, 4, axis=1)
        c = tp.nn.sigmoid(f) * c + tp.nn.sigmoid(i) * tp.tanh(g)
        h = tp.nn.sigmoid(o) * tp.tanh(c)
    return tp.concat([h, c], axis=1)


def torch_lstm(x: Any, w: Any, u: Any, b: Any) -> Any:
    h = c = torch.zeros(2, 3, dtype=torch.float64)
    for at in range(x.shape[1]):
        h, c = torch.lstm_cell(x[:, at], (h, c), w.T, u.T, b, torch.zeros_like(b))
    return torch.cat([h, c], 1)


@tp.custom_grad
def doubled_back(x: Any) -> Any:
    return tp.exp(x), lambda dy: dy * tp.exp(x) * 2.0


class DoubledBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * ctx.saved_tensors[0].exp() * 2


def batch_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = tp.nn.moments(x, (0, 1, 2))
    return tp.nn.batch_norm(x, mean, variance, offset, scale, 1e-5)


MODELS = [  # what; ours; PyTorch's; the arguments, all differentiated
    ("attention, causal", attention, torch_attention, (SEQUENCE, *(draw(4, 4) for _ in "qkv"))),
    ("recurrent loop", rnn, torch_rnn, (SEQUENCE, draw(4, 3), draw(3, 3), draw(3))),
    ("LSTM", lstm, torch_lstm, (SEQUENCE, draw(4, 12), draw(3, 12), draw(12))),
    (
        "batch normalization",
        batch_norm,
        lambda x, s, o: nhwc(F.batch_norm(nchw(x), None, None, s, o, training=True)),
        (IMAGE, positive(2), draw(2)),
    ),
    (
        "group normalization",
        lambda x: (
            tp.reshape(
                (g := tp.reshape(x, (4, 3, 2)), tp.mean(g, axis=2, keepdims=True))[0]
                - tp.mean(g, axis=2, keepdims=True),
                (4, 6),
            )
            / tp.repeat(tp.sqrt(tp.var(g, axis=2) + 1e-5), 2, axis=1)
        ),
        lambda x: F.group_norm(x, 3),
        (draw(4, 6),),
    ),
    (
        "RMS normalization",
        lambda x, w: x * tp.rsqrt(tp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * w,
        lambda x, w: F.rms_norm(x, (3,), w, 1e-6),
        (X, positive(3)),
    ),
    (
        "gated unit",
        lambda x, w, v: tp.nn.silu(x @ w) * (x @ v),
        lambda x, w, v: F.silu(x @ w) * (x @ v),
        (X, draw(3, 5), draw(3, 5)),
    ),
    ("custom gradient", lambda x: doubled_back(x) * x, lambda x: DoubledBack.apply(x) * x, (X,)),
    (
        "detached",
        lambda x: x * tp.stop_gradient(tp.exp(x)),
        lambda x: x * x.exp().detach(),
        (X,),
    ),
    (
        "one step of descent",
        lambda w: tp.sum(tp.square(Y @ (w - 0.1 * tp.grad(lambda w: tp.sum((Y @ w) ** 4))(w)))),
        lambda w: (
            (
                torch.from_numpy(Y)
                @ (
                    w
                    - 0.1
                    * torch.autograd.grad(
                        ((torch.from_numpy(Y) @ w) ** 4).sum(), w, create_graph=True
                    )[0]
                )
            )
            .square()
            .sum()
        ),
        (draw(3, 2) * 0.3,),
    ),
]

LOSSES = [
    (
        "cross entropy, smoothed",
        lambda x: tp.losses.softmax_cross_entropy(ONE_HOT, x, label_smoothing=0.1),
        lambda x: F.cross_entropy(x, one_hot, label_smoothing=0.1),
        (X,),
    ),
    (
        "labels of a cross entropy",
        tp.losses.softmax_cross_entropy,
        lambda p, x: F.cross_entropy(x, p),
        (POSITIVE, X),
    ),
    (
        "binary cross entropy",
        lambda x: tp.losses.sigmoid_cross_entropy(BINARY, x),
        lambda x: F.binary_cross_entropy_with_logits(x, binary),
        (X,),
    ),
    (
        "Huber",
        lambda y, x: tp.losses.huber_loss(y, x, delta=0.7),
        lambda y, x: F.huber_loss(x, y, delta=0.7),
        (Y, X),
    ),
    (
        "mean squared error, weighted",
        lambda y, x: tp.losses.mean_squared_error(y, x, POSITIVE, reduction="sum"),
        lambda y, x: F.mse_loss(x, y, reduction="none").mul(torch.from_numpy(POSITIVE)).sum(),
        (Y, X),
    ),
    ("mean absolute error", tp.losses.absolute_difference, F.l1_loss, (Y, X)),
    (
        "divergence of distributions",
        lambda x, y: tp.sum(tp.exp(y) * (y - tp.nn.log_softmax(x))),
        lambda x, y: F.kl_div(torch.log_softmax(x, -1), y, reduction="sum", log_target=True),
        (X, Y),
    ),
    (
        "hinge",
        lambda x: tp.losses.hinge_loss(BINARY, x),
        lambda x: torch.relu(1 - (2 * binary - 1) * x).mean(),
        (X,),
    ),
    (
        "cosine similarity",
        lambda x, y: (
            tp.linalg.vecdot(x, y)
            / (tp.linalg.vector_norm(x, axis=-1) * tp.linalg.vector_norm(y, axis=-1))
        ),
        F.cosine_similarity,
        (X, Y),
    ),
    (
        "triplets",
        lambda a, p, n: tp.mean(
            tp.nn.relu(
                tp.linalg.vector_norm(a - p + 1e-6, axis=1)
                - tp.linalg.vector_norm(a - n + 1e-6, axis=1)
                + 1.0
            )
        ),
        F.triplet_margin_loss,
        (X, Y, POSITIVE),
    ),
]

LAYERS = [
    (
        "convolution of a sequence",
        lambda x, f: tp.nn.conv1d(x, f, 2, 1),
        lambda x, f: F.conv1d(x.mT, f.permute(2, 1, 0), stride=2, padding=1).mT,
        (SEQUENCE, draw(3, 4, 2)),
    ),
    (
        "convolution of a volume",
        lambda x, f: tp.nn.conv3d(x, f, (1, 2, 1), "valid", dilations=(2, 1, 1)),
        lambda x, f: F.conv3d(
            x.permute(0, 4, 1, 2, 3),
            f.permute(4, 3, 0, 1, 2),
            stride=(1, 2, 1),
            dilation=(2, 1, 1),
        ).permute(0, 2, 3, 4, 1),
        (VOLUME, draw(2, 2, 3, 2, 3)),
    ),
    (
        "depthwise convolution",
        lambda x, f: tp.nn.depthwise_conv2d(x, f, 1, 1),
        lambda x, f: nhwc(
            F.conv2d(nchw(x), f.permute(2, 3, 0, 1).reshape(6, 1, 3, 3), padding=1, groups=2)
        ),
        (IMAGE, draw(3, 3, 2, 3)),
    ),
    (
        "separable convolution",
        lambda x, d, p: tp.nn.separable_conv2d(x, d, p, 1, "valid"),
        lambda x, d, p: nhwc(
            F.conv2d(F.conv2d(nchw(x), d.permute(2, 3, 0, 1), groups=2), p.permute(3, 2, 0, 1))
        ),
        (IMAGE, draw(3, 2, 2, 1), draw(1, 1, 2, 4)),
    ),
    (
        "transposed convolution",
        lambda x, f: tp.nn.conv2d_transpose(x, f, (2, 13, 15, 3), 2, "valid"),
        lambda x, f: nhwc(F.conv_transpose2d(nchw(x), f.permute(3, 2, 0, 1), stride=2)),
        (IMAGE, draw(3, 3, 3, 2)),
    ),
    (
        "average pooling",
        lambda x: tp.nn.avg_pool(x, (3, 2), 2, 1),
        lambda x: nhwc(F.avg_pool2d(nchw(x), (3, 2), 2, 1, count_include_pad=False)),
        (IMAGE,),
    ),
    (
        "pooling of a volume",
        lambda x: tp.nn.max_pool3d(x, 2, 2, "valid"),
        lambda x: F.max_pool3d(x.permute(0, 4, 1, 2, 3), 2, 2).permute(0, 2, 3, 4, 1),
        (VOLUME,),
    ),
    (
        "response normalization",
        lambda x: tp.nn.local_response_normalization(x, 1, 2.0, 1e-1 / 3, 0.75),
        lambda x: nhwc(F.local_response_norm(nchw(x), 3, 1e-1, 0.75, 2.0)),
        (draw(1, 2, 3, 5),),
    ),
    (
        "interpolation, corners aligned",
        lambda x: tp.image.resize_bilinear(x, (9, 4), align_corners=True),
        lambda x: nhwc(F.interpolate(nchw(x), (9, 4), mode="bilinear", align_corners=True)),
        (IMAGE,),
    ),
    (
        "interpolation, half pixels",
        lambda x: tp.image.resize_bilinear(x, (3, 10), half_pixel_centers=True),
        lambda x: nhwc(F.interpolate(nchw(x), (3, 10), mode="bilinear")),
        (IMAGE,),
    ),
    ("slopes of a PReLU", tp.nn.prelu, lambda x, a: torch.where(x > 0, x, a * x), (X, draw(3))),
    ("ELU and SELU", lambda x: tp.nn.elu(x) * tp.nn.selu(x), lambda x: F.elu(x) * F.selu(x), (X,)),
    (
        "mirrored borders",
        lambda x: tp.mirror_pad(x, ((0, 0), (2, 1), (1, 3), (0, 0)), "reflect") ** 2,
        lambda x: nhwc(F.pad(nchw(x), (1, 3, 2, 1), mode="reflect")) ** 2,
        (IMAGE,),
    ),
]

ALL = [*MODELS, *LOSSES, *LAYERS]


@pytest.mark.parametrize("row", ALL, ids=[row[0] for row in ALL])
def test_values_and_gradients(row: Any) -> None:
    agree(*row[1:])


@pytest.mark.parametrize("row", ALL, ids=[row[0] for row in ALL])
def test_hessian_vector_products(row: Any) -> None:
    agree_in_second_order(*row[1:])

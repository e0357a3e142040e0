"""Operators that fuse others, work on channels that are last, or repeat those of ``ai.onnx``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.operators import (
    constants,
    convolution,
    elementwise,
    indexing,
    linear_algebra,
    pooling,
    rearranging,
)
from tensorplug_onnx.operators.microsoft.domain import microsoft_rule, nhwc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from tensorplug_onnx.values import Host

Ints = tuple[int, ...]

# Each activation, and the names of its parameters in their order.
_ACTIVATIONS: Final[dict[str, tuple[Callable[..., Any], tuple[str, ...]]]] = {
    "Relu": (tp.nn.relu, ()),
    "Tanh": (tp.tanh, ()),
    "Sigmoid": (tp.nn.sigmoid, ()),
    "Softplus": (tp.nn.softplus, ()),
    "Softsign": (elementwise.softsign, ()),
    "HardSwish": (elementwise.hard_swish, ()),
    "LeakyRelu": (elementwise.leaky_relu, ("alpha",)),
    "ThresholdedRelu": (elementwise.thresholded_relu, ("alpha",)),
    "Elu": (elementwise.elu, ("alpha",)),
    "HardSigmoid": (elementwise.hard_sigmoid, ("alpha", "beta")),
    "Clip": (tp.clip, ("min", "max")),
}


def activated(x: Any, name: str | None, given: Sequence[float | None]) -> Any:
    """Return an activation of x; x if it has no name.

    Args:
        x: floats.
        name: of an operator.
        given: its parameters in their order; None for the operator's own.

    """
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise ValueError(f"there is no activation {name!r}")
    function, parameters = _ACTIVATIONS[name]
    named = zip(parameters, given, strict=False)
    return function(x, **{key: value for key, value in named if value is not None})


def _transposed(x: Any, *, batches: int, matrix: int) -> Any:
    """Return a matrix, its first axis put before the last one, its last two exchanged."""
    if batches and x.ndim > 2:
        x = tp.moveaxis(x, 0, -2)
    return tp.matrix_transpose(x) if matrix and x.ndim > 1 else x


@microsoft_rule("FusedMatMul", "TransposeMatMul")
def matmul(
    a: Any,
    b: Any,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
    transBatchA: int = 0,  # noqa: N803
    transBatchB: int = 0,  # noqa: N803
) -> Any:
    left = _transposed(a, batches=transBatchA, matrix=transA)
    y = tp.matmul(left, _transposed(b, batches=transBatchB, matrix=transB))
    return y if alpha == 1 else y * alpha


@microsoft_rule("FusedMatMulActivation")
def activated_matmul(
    a: Any,
    b: Any,
    *,
    activation: str,
    activation_alpha: float | None = None,
    activation_axis: int | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
    transBatchA: int = 0,  # noqa: N803
    transBatchB: int = 0,  # noqa: N803
) -> Any:
    y = matmul(
        a,
        b,
        alpha=alpha,
        transA=transA,
        transB=transB,
        transBatchA=transBatchA,
        transBatchB=transBatchB,
    )
    if activation == "Softmax":
        return tp.nn.softmax(y, axis=-1 if activation_axis is None else activation_axis)
    return activated(y, activation, (activation_alpha, activation_beta, activation_gamma))


@microsoft_rule("FusedGemm")
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    activation: str | None = None,
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
) -> Any:
    y = linear_algebra.gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return activated(y, activation, (activation_alpha, activation_beta, activation_gamma))


@microsoft_rule("GemmFastGelu")
def gelu_of_product(x: Any, w: Any, bias: Any = None) -> Any:
    y = tp.matmul(x, w)
    return tp.nn.gelu(y if bias is None else y + bias, approximate=True)


@microsoft_rule("FusedConv")
def fused_convolution(
    x: Any,
    w: Any,
    b: Any = None,
    z: Any = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """Z is added before the activation."""
    y = convolution.convolution(
        x,
        w,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return activated(y if z is None else y + z, activation, activation_params)


microsoft_rule("NhwcConv")(nhwc(convolution.convolution, 0))
microsoft_rule("NhwcFusedConv")(nhwc(fused_convolution, 0, 3))
microsoft_rule("NhwcMaxPool")(nhwc(pooling.largest, 0))


@microsoft_rule("GroupNorm")
def group_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Any:
    """Activation 1 is SiLU."""
    images = tp.moveaxis(x, -1, 1) if channels_last else x
    y = tp.nn.group_norm(images, groups, channel_axis=1, epsilon=epsilon)
    shape = (-1, *(1,) * (x.ndim - 2))
    y = tp.astype(y * tp.reshape(gamma, shape) + tp.reshape(beta, shape), x.dtype)
    if activation:
        y = tp.nn.silu(y)
    return tp.moveaxis(y, 1, -1) if channels_last else y


@microsoft_rule("SkipGroupNorm")
def skip_group_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    skip: Any,
    bias: Any = None,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> tuple[Any, Any]:
    channel = x.ndim - 1 if channels_last else 1

    def of_channels(one: Any) -> Any:
        shape = [1] * x.ndim
        shape[channel] = -1
        if one.ndim == 2:
            shape[0] = x.shape[0]
        return one if one.ndim == x.ndim else tp.reshape(one, tuple(shape))

    total = x + of_channels(skip)
    if bias is not None:
        total = total + of_channels(bias)
    y = group_norm(
        total,
        gamma,
        beta,
        activation=activation,
        channels_last=channels_last,
        epsilon=epsilon,
        groups=groups,
    )
    return y, total


@microsoft_rule("MatMulInteger16")
def product_of_wide_integers(a: Any, b: Any) -> Any:
    return tp.matmul(tp.astype(a, tp.int32), tp.astype(b, tp.int32))


@microsoft_rule("TorchEmbedding")
def embedding(
    weight: Any,
    indices: Any,
    padding_idx: Any = None,  # noqa: ARG001  # of gradients, as the next one
    scale_grad_by_freq: Any = None,  # noqa: ARG001
) -> Any:
    return tp.take(weight, indices, axis=0)


@microsoft_rule("Inverse")
def inverse(x: Any) -> Any:
    return tp.linalg.inv(x)


@microsoft_rule("CDist")
def distances(a: Any, b: Any, *, metric: str = "sqeuclidean") -> Any:
    if metric not in ("sqeuclidean", "euclidean"):
        raise ValueError(f"metric is {metric!r}, must be 'euclidean' or 'sqeuclidean'")
    difference = a[:, None, :] - b[None, :, :]
    squares = tp.sum(difference * difference, axis=-1)
    return tp.sqrt(squares) if metric == "euclidean" else squares


@microsoft_rule("IsAllFinite")
def all_finite(*inputs: Any, isinf_only: int = 0, isnan_only: int = 0) -> Any:
    """With a flag, only the values that it names count."""
    if isinf_only and isnan_only:
        raise ValueError("isinf_only and isnan_only exclude each other")
    found: Any = tp.ones((), dtype=tp.bool)
    for x in inputs:
        wrong = tp.isinf(x) if isinf_only else tp.isnan(x) if isnan_only else ~tp.isfinite(x)
        found = tp.logical_and(found, ~tp.any(wrong))
    return found


@microsoft_rule("ExpandDims", host=[1])
def expand_dims(x: Any, axis: Host, *, xp: ModuleType) -> Any:
    return xp.expand_dims(x, axis=int(axis.reshape(())))


@microsoft_rule("Trilu", raw=True)
def triangle(x: Any, k: Any | None = None, *, upper: int = 1) -> Any:
    return rearranging.triangle(x, k, upper=upper)


@microsoft_rule("GatherND")
def gather_nd(x: Any, indices: Any, *, xp: ModuleType) -> Any:
    return indexing.gather_nd(x, indices, xp=xp)


@microsoft_rule("Pad", host=[1, 2])
def pad(
    x: Any, pads: Host, value: Host | None = None, *, xp: ModuleType, mode: str = "constant"
) -> Any:
    return rearranging.pad(x, pads.reshape(-1), value, xp=xp, mode=mode)


@microsoft_rule("Range", host=None)
def range_(start: Host, limit: Host, delta: Host | None = None) -> Any:
    return constants.range_of(start, limit, np.ones((), start.dtype) if delta is None else delta)

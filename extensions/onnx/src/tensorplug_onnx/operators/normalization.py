"""Normalization, and dropout. Channels are on axis 1."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from tensorplug_onnx.graph import Node


def _by_channel(values: Any, x: Any) -> Any:
    """Return one number by channel in a shape that broadcasts to x; others as they are."""
    if values.ndim != 1:
        return values
    if x.ndim < 2 or values.shape[0] != x.shape[1]:
        raise ValueError(f"{values.shape[0]} numbers for the channels of {list(x.shape)}")
    return tp.reshape(values, (-1, *(1,) * (x.ndim - 2)))


@rule("BatchNormalization", since=14)
def batch_normalization(
    x: Any,
    scale: Any,
    b: Any,
    mean: Any,
    var: Any,
    *,
    node: Node,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    if not training_mode:
        if len(node.outputs) > 1:
            raise ValueError("running mean and variance are only there in training mode")
        return _standardized(x, mean, var, scale, b, epsilon)
    current = tp.nn.moments(tp.astype(x, mean.dtype), axis=(0, *range(2, x.ndim)))
    y = _standardized(x, current.mean, current.variance, scale, b, epsilon)
    running = (
        old * momentum + new * (1 - momentum)
        for old, new in ((mean, current.mean), (var, current.variance))
    )
    return y, *running


def _standardized(x: Any, mean: Any, var: Any, scale: Any, b: Any, epsilon: float) -> Any:
    shift, square, offset, factor = (_by_channel(values, x) for values in (mean, var, b, scale))
    return tp.astype(tp.nn.batch_norm(x, shift, square, offset, factor, epsilon), x.dtype)


@rule("BatchNormalization", since=7)
def batch_normalization_7(
    x: Any,
    scale: Any,
    b: Any,
    mean: Any,
    var: Any,
    *,
    node: Node,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
) -> Any:
    """It trains if statistics are outputs; with ``spatial`` 0 they belong to elements."""
    if not spatial and x.ndim > 2:
        flat = tp.reshape(x, (x.shape[0], -1))
        rest = (tp.reshape(value, (-1,)) for value in (scale, b, mean, var))
        found = batch_normalization_7(flat, *rest, node=node, epsilon=epsilon, momentum=momentum)
        y, *statistics = found if isinstance(found, tuple) else (found,)
        shaped = (tp.reshape(value, x.shape[1:]) for value in statistics)
        return tp.reshape(y, x.shape), *shaped
    found = batch_normalization(
        x,
        scale,
        b,
        mean,
        var,
        node=node,
        epsilon=epsilon,
        momentum=momentum,
        training_mode=int(len(node.outputs) > 1),
    )
    return (*found, *found[1:]) if isinstance(found, tuple) else found


@rule("BatchNormalization", since=1)
def batch_normalization_1(
    x: Any,
    scale: Any,
    b: Any,
    mean: Any,
    var: Any,
    *,
    node: Node,
    consumed_inputs: tuple[int, ...] = (),  # noqa: ARG001  # which memory may be reused
    epsilon: float = 1e-5,
    is_test: int = 0,
    momentum: float = 0.9,
    spatial: int = 1,
) -> Any:
    """It trains unless it says that it does not."""
    if is_test:
        node = replace(node, outputs=node.outputs[:1])
    elif len(node.outputs) < 5:
        raise ValueError("in training, mean and variance must be outputs")
    options = {"epsilon": epsilon, "momentum": momentum, "spatial": spatial}
    return batch_normalization_7(x, scale, b, mean, var, node=node, **options)


@rule("InstanceNormalization")
def instance_normalization(x: Any, scale: Any, b: Any, *, epsilon: float = 1e-5) -> Any:
    return tp.nn.instance_norm(x, b, scale, channel_axis=1, epsilon=epsilon)


@rule("GroupNormalization", since=21)
def group_normalization(
    x: Any, scale: Any, b: Any, *, epsilon: float = 1e-5, num_groups: int, stash_type: int = 1
) -> Any:
    y = tp.nn.group_norm(_stashed(x, stash_type), num_groups, channel_axis=1, epsilon=epsilon)
    return tp.astype(y, x.dtype) * _by_channel(scale, x) + _by_channel(b, x)


@rule("GroupNormalization", since=18)
def group_normalization_18(
    x: Any, scale: Any, b: Any, *, epsilon: float = 1e-5, num_groups: int
) -> Any:
    """Scale and bias belong to groups."""
    repeated = (tp.repeat(values, x.shape[1] // num_groups) for values in (scale, b))
    return group_normalization(x, *repeated, epsilon=epsilon, num_groups=num_groups)


def _stashed(x: Any, stash_type: int) -> Any:
    """Return x in the dtype in which statistics are computed: 1 stands for at least float32."""
    narrow = stash_type == 1 and tp.finfo(x.dtype).bits < 32
    return tp.astype(x, tp.float32) if narrow else x


@rule("LayerNormalization")
def layer_normalization(
    x: Any,
    scale: Any,
    b: Any = None,
    *,
    node: Node,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    axes = _from(axis, x)
    wide = _stashed(x, stash_type)
    if len(node.outputs) == 1 and wide is x:
        return tp.nn.layer_norm(x, b, scale, axes, epsilon=epsilon)
    mean, variance = tp.nn.moments(wide, axis=axes, keepdims=True)
    inverse = tp.rsqrt(variance + epsilon)
    y = tp.astype((wide - mean) * inverse, x.dtype) * scale
    return (y if b is None else y + b), mean, inverse


@rule("RMSNormalization")
def rms_normalization(
    x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    wide = _stashed(x, stash_type)
    if wide is x:
        return tp.nn.rms_norm(x, scale, _from(axis, x), epsilon=epsilon)
    return tp.astype(tp.nn.rms_norm(wide, None, _from(axis, x), epsilon=epsilon), x.dtype) * scale


def _from(axis: int, x: Any) -> tuple[int, ...]:
    """Return the axes from one on."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} is out of range for rank {x.ndim}")
    return tuple(range(axis % x.ndim, x.ndim))


@rule("LRN")
def local_response_normalization(
    x: Any, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int
) -> Any:
    """Of an even number of channels, one more lies behind than before."""
    if size < 1:
        raise ValueError(f"size is {size}")
    channels = x.shape[1]
    before = min((size - 1) // 2, channels)
    after = min(size // 2, channels)
    pairs = [(0, 0), (before, after), *((0, 0),) * (x.ndim - 2)]
    squares = tp.pad(tp.square(x), pairs)
    sums = squares[:, :channels]
    for first in range(1, before + after + 1):
        sums = sums + squares[:, first : first + channels]
    return x * tp.pow(bias + alpha / size * sums, -beta)


@rule("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    """Zeros stay zeros."""
    if p not in (1, 2):
        raise ValueError(f"p must be 1 or 2, is {p}")
    absolute = tp.abs(x)
    if p == 1:
        norm = tp.sum(absolute, axis=axis, keepdims=True)
    else:
        norm = tp.sqrt(tp.sum(tp.square(absolute), axis=axis, keepdims=True))
    return x / tp.where(norm == 0, 1, norm)


@rule("Dropout", since=12, host=(1, 2))
def dropout(
    data: Any,
    ratio: Any = None,
    training_mode: Any = None,
    *,
    node: Node,
    seed: int | None = None,
) -> Any:
    """Without a seed, each call draws anew."""
    rate = 0.5 if ratio is None else float(ratio)
    if not 0 <= rate < 1:
        raise ValueError(f"ratio must be in [0, 1), is {rate}")
    if training_mode is None or not training_mode:
        return _kept(data, node)
    key = tp.random.key(secrets.randbits(64) if seed is None else seed % 2**64)
    mask = tp.random.uniform(key, data.shape) >= rate
    return tp.where(mask, data / (1 - rate), 0), mask


@rule("Dropout", since=1)
def dropout_1(
    data: Any,
    *,
    node: Node,
    consumed_inputs: tuple[int, ...] = (),  # noqa: ARG001  # which memory may be reused
    is_test: int = 0,
    ratio: float = 0.5,
) -> Any:
    """It trains unless it says that it does not; the mask has the dtype of the data."""
    if is_test:
        return _kept(data, node, data.dtype)
    y, mask = dropout(data, ratio, training_mode=True, node=node)
    return y, tp.astype(mask, data.dtype)


@rule("Dropout", since=10)
def dropout_10(data: Any, *, node: Node, ratio: float = 0.5) -> Any:  # noqa: ARG001  # in training
    return _kept(data, node)


@rule("Dropout", since=7)
def dropout_7(data: Any, *, node: Node, ratio: float = 0.5) -> Any:  # noqa: ARG001  # in training
    """The mask has the dtype of the data."""
    return _kept(data, node, data.dtype)


def _kept(data: Any, node: Node, dtype: Any = tp.bool) -> Any:
    return data if len(node.outputs) == 1 else (data, tp.ones(data.shape, dtype=dtype))

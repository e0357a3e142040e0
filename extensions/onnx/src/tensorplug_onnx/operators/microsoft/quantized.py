"""Quantized operators: as onnxruntime's quantizers and optimizer write them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug_onnx.operators.convolution import quantized_convolution
from tensorplug_onnx.operators.elementwise import leaky_relu
from tensorplug_onnx.operators.microsoft.domain import microsoft_rule, nhwc
from tensorplug_onnx.operators.pooling import average
from tensorplug_onnx.operators.quantization import dequantize, product, quantize
from tensorplug_onnx.operators.recurrent import (
    DIRECTIONS,
    USUAL_OF_LSTM,
    activations_of,
    lstm_by_steps,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Ints = tuple[int, ...]


@microsoft_rule("QuantizeLinear")
def quantize_linear(x: Any, scale: Any, zero_point: Any = None, *, axis: int = 1) -> Any:
    return quantize(x, scale, zero_point, axis=axis)


@microsoft_rule("DequantizeLinear")
def dequantize_linear(x: Any, scale: Any, zero_point: Any = None, *, axis: int = 1) -> Any:
    return dequantize(x, scale, zero_point, axis=axis)


def _by_reals(
    function: Callable[..., Any],
    operands: Sequence[tuple[Any, Any, Any]],
    scale: Any,
    zero_point: Any,
) -> Any:
    """Return the quantized result of a function of the real numbers that operands stand for.

    Each operand is numbers, their scale and their zero point or None.
    """
    y = function(*(dequantize(*one) for one in operands))
    if zero_point is None:
        zero_point = tp.zeros((), dtype=operands[0][0].dtype)
    return quantize(y, scale, zero_point)


def _register_pair(op_type: str, function: Callable[..., Any]) -> None:
    """Register an operator of two quantized operands."""

    def pair(
        a: Any,
        a_scale: Any,
        a_zero: Any,
        b: Any,
        b_scale: Any,
        b_zero: Any,
        scale: Any,
        zero_point: Any = None,
    ) -> Any:
        both = [(a, a_scale, a_zero), (b, b_scale, b_zero)]
        return _by_reals(function, both, scale, zero_point)

    microsoft_rule(op_type)(pair)


_register_pair("QLinearAdd", tp.add)
_register_pair("QLinearMul", tp.multiply)


@microsoft_rule("QLinearWhere")
def where(
    condition: Any,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    y: Any,
    y_scale: Any,
    y_zero: Any,
    scale: Any,
    zero_point: Any,
) -> Any:
    both = [(x, x_scale, x_zero), (y, y_scale, y_zero)]
    return _by_reals(partial(tp.where, condition), both, scale, zero_point)


@microsoft_rule("QLinearConcat")
def concat(scale: Any, zero_point: Any, *operands: Any, axis: int) -> Any:
    if len(operands) % 3:
        raise ValueError(f"{len(operands)} inputs are no triples of numbers, scale, zero point")
    triples = [operands[at : at + 3] for at in range(0, len(operands), 3)]
    return _by_reals(lambda *parts: tp.concat(parts, axis=axis), triples, scale, zero_point)


@microsoft_rule("QLinearSigmoid")
def sigmoid(x: Any, x_scale: Any, x_zero: Any, scale: Any, zero_point: Any = None) -> Any:
    return _by_reals(tp.nn.sigmoid, [(x, x_scale, x_zero)], scale, zero_point)


@microsoft_rule("QLinearLeakyRelu")
def leaky(
    x: Any, x_scale: Any, x_zero: Any, scale: Any, zero_point: Any = None, *, alpha: float = 0.01
) -> Any:
    bent = partial(leaky_relu, alpha=alpha)
    return _by_reals(bent, [(x, x_scale, x_zero)], scale, zero_point)


@microsoft_rule("QLinearSoftmax")
def softmax(
    x: Any, x_scale: Any, x_zero: Any, scale: Any, zero_point: Any, *, axis: int = -1, opset: int
) -> Any:
    """Up to opset 12, all axes from ``axis`` on are one."""

    def shares(real: Any) -> Any:
        if opset >= 13:
            return tp.nn.softmax(real, axis=axis)
        first = axis % real.ndim
        flat = tp.reshape(real, (*real.shape[:first], -1))
        return tp.reshape(tp.nn.softmax(flat), real.shape)

    return _by_reals(shares, [(x, x_scale, x_zero)], scale, zero_point)


@microsoft_rule("QLinearReduceMean")
def mean(
    x: Any,
    x_scale: Any,
    x_zero: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axes: Ints,
    keepdims: int,
) -> Any:
    means = partial(tp.mean, axis=tuple(axes), keepdims=bool(keepdims))
    return _by_reals(means, [(x, x_scale, x_zero)], scale, zero_point)


@microsoft_rule("QLinearGlobalAveragePool")
def global_average(
    x: Any, x_scale: Any, x_zero: Any, scale: Any, zero_point: Any, *, channels_last: int = 0
) -> Any:
    axes = tuple(range(1, x.ndim - 1) if channels_last else range(2, x.ndim))
    return mean(x, x_scale, x_zero, scale, zero_point, axes=axes, keepdims=1)


@microsoft_rule("QLinearAveragePool")
def average_pool(
    x: Any,
    x_scale: Any,
    x_zero: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Ints,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    pooled = partial(
        nhwc(average, 0) if channels_last else average,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return _by_reals(pooled, [(x, x_scale, x_zero)], scale, zero_point)


@microsoft_rule("QLinearConv")
def convolution(
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    y_scale: Any,
    y_zero: Any,
    b: Any = None,
    *,
    auto_pad: str = "NOTSET",
    channels_last: int = 0,
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    of_layout = nhwc(quantized_convolution, 0) if channels_last else quantized_convolution
    return of_layout(
        x,
        x_scale,
        x_zero,
        w,
        w_scale,
        w_zero,
        y_scale,
        y_zero,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )


@microsoft_rule("MulInteger")
def multiply_integers(a: Any, a_zero: Any, b: Any, b_zero: Any = None) -> Any:
    return _centred(a, a_zero) * _centred(b, b_zero)


@microsoft_rule("ReduceSumInteger")
def sum_of_integers(x: Any, *, axes: Ints, keepdims: int) -> Any:
    return tp.sum(tp.astype(x, tp.int32), axis=tuple(axes), keepdims=bool(keepdims))


def _centred(x: Any, zero_point: Any) -> Any:
    wide = tp.astype(x, tp.int32)
    return wide if zero_point is None else wide - tp.astype(_scalar(zero_point), tp.int32)


def _scalar(number: Any) -> Any:
    """Return one number of rank 0, which onnxruntime takes with an axis, too."""
    return number if number is None or number.ndim == 0 else tp.reshape(number, ())


def _of_columns(numbers: Any) -> Any:
    """Return one number, or one for each column."""
    if numbers is None or numbers.ndim == 0 or numbers.shape != (1,):
        return numbers
    return tp.reshape(numbers, ())


@microsoft_rule("MatMulIntegerToFloat")
def product_of_integers(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    a_zero: Any = None,
    b_zero: Any = None,
    bias: Any = None,
) -> Any:
    y = product(
        a,
        b,
        a_scale=_scalar(a_scale),
        b_scale=_of_columns(b_scale),
        a_zero_point=_scalar(a_zero),
        b_zero_point=_of_columns(b_zero),
    )
    return y if bias is None else y + bias


def dynamically_quantized(x: Any) -> tuple[Any, Any, Any]:
    """Return x in uint8, its scale and its zero point, from its extrema and 0."""
    low = tp.minimum(tp.min(x), 0.0)
    high = tp.maximum(tp.max(x), 0.0)
    range_ = (high - low) / 255
    scale = tp.where(tp.equal(range_, 0), 1.0, range_)
    zero_point = tp.astype(tp.clip(tp.round(-low / scale), 0, 255), tp.uint8)
    return tp.quantize(x, scale, zero_point), scale, zero_point


@microsoft_rule("DynamicQuantizeMatMul")
def product_by_integers(a: Any, b: Any, b_scale: Any, b_zero: Any = None, bias: Any = None) -> Any:
    numbers, scale, zero_point = dynamically_quantized(a)
    return product_of_integers(numbers, b, scale, b_scale, zero_point, b_zero, bias)


@microsoft_rule("QGemm")
def gemm(
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    c: Any = None,
    y_scale: Any = None,
    y_zero: Any = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
) -> Any:
    """C is added to the sums of products, before they are scaled."""
    sums = tp.quantized_matmul(
        tp.matrix_transpose(a) if transA else a,
        tp.matrix_transpose(b) if transB else b,
        a_zero_point=_scalar(a_zero),
        b_zero_point=_of_columns(b_zero),
    )
    if c is not None:
        sums = sums + c
    y = tp.astype(sums, tp.float32) * (alpha * _scalar(a_scale) * _of_columns(b_scale))
    return y if y_scale is None else tp.quantize(y, _scalar(y_scale), _scalar(y_zero))


@microsoft_rule("DynamicQuantizeLSTM")
def lstm(
    x: Any,
    w: Any,
    r: Any,
    b: Any,
    lengths: Any,
    initial_h: Any,
    initial_c: Any,
    peepholes: Any,
    w_scale: Any,
    w_zero: Any,
    r_scale: Any,
    r_zero: Any,
    *,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,  # noqa: ARG001  # R says it
    input_forget: int = 0,
) -> tuple[Any, ...]:
    """Inputs and states are quantized, too: all inputs together, the states of each step."""

    def products(weights: Any, scales: Any, zeros: Any) -> Callable[[int, Any], Any]:
        def times(at: int, rows: Any) -> Any:
            flat = tp.reshape(rows, (-1, rows.shape[-1]))
            zero = None if zeros is None else zeros[at]
            y = product_by_integers(flat, weights[at], scales[at], zero)
            return tp.reshape(y, (*rows.shape[:-1], -1))

        return times

    if direction not in DIRECTIONS:
        raise ValueError(f"attribute 'direction' is {direction!r}")
    directions = DIRECTIONS[direction]
    names = tuple(activations) or USUAL_OF_LSTM * len(directions)
    return lstm_by_steps(
        x,
        b,
        lengths,
        (initial_h, initial_c),
        peepholes,
        products(w, w_scale, w_zero),
        products(r, r_scale, r_zero),
        functions=activations_of(names, activation_alpha, activation_beta, clip),
        directions=directions,
        units=r.shape[1],
        input_forget=input_forget,
    )

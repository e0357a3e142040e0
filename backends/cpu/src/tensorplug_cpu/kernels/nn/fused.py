"""Products with bias and activation, which are applied in place."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import channel_broadcast_shape, convolution_windows
from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    KernelRefusedError,
    KernelSpec,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu import depthwise
from tensorplug_cpu.arrays import working
from tensorplug_cpu.constants import Bindable
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.codegen.epilogues import EPILOGUES
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.families import batched_products, matrices
from tensorplug_cpu.jit.families import convolution as native_convolution
from tensorplug_cpu.jit.families import depthwise as native_depthwise
from tensorplug_cpu.jit.families.multiplication import Multiplication
from tensorplug_cpu.jit.forms import formed
from tensorplug_cpu.jit.groups.kernels import compile_group
from tensorplug_cpu.jit.groups.threads import MOST_MODULES
from tensorplug_cpu.jit.loops.calls import dense
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.kernels.matrix_products import are_few, by_loops, find_product
from tensorplug_cpu.windows import correlation
from tensorplug_cpu.windows.sliding import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Backend, DType, Expression, Shape
    from tensorplug_cpu.arrays import Array, Call
    from tensorplug_cpu.kernels.nn.convolution import Forward, Native, Products


kernels = Kernels()

_COMPILED = (dt.float32, dt.float64)

Attributes = dict[str, Any]


def _relu(x: Array) -> None:
    np.maximum(x, x.dtype.type(0), out=x)


def _relu6(x: Array) -> None:
    _relu(x)
    np.minimum(x, x.dtype.type(6), out=x)


def _elu(x: Array) -> None:
    below = np.asarray(np.minimum(x, x.dtype.type(0)))
    np.expm1(below, out=below)
    _relu(x)
    np.add(x, below, out=x)  # one of the two is 0


def _sigmoid(x: Array) -> None:
    one = x.dtype.type(1)
    small = np.asarray(np.abs(x))
    np.negative(small, out=small)
    np.exp(small, out=small)  # neither overflows nor loses small results
    np.copyto(x, np.where(x < 0, small, one))
    small += one
    np.divide(x, small, out=x)


def _leaky_relu(x: Array, alpha: float) -> None:
    slope = x.dtype.type(alpha)
    if 0 < slope <= 1:
        np.maximum(x, x * slope, out=x)
    else:
        np.multiply(x, slope, out=x, where=x < 0)


_PLAIN: dict[str, Callable[[Array], None]] = {
    "relu": _relu,
    "relu6": _relu6,
    "elu": _elu,
    "sigmoid": _sigmoid,
}


def _at_most_6(x: Expression) -> Expression:
    return expressions.where(x > 6, 6, x)


def _at_least_0(x: Expression) -> Expression:
    return expressions.where(x < 0, 0, x)  # NaN stays NaN


def _logistic(x: Expression) -> Expression:
    small = expressions.function("exp", -abs(x))  # neither overflows nor loses small results
    return expressions.where(x < 0, small, 1) / (small + 1)


_EXPRESSIONS: dict[str, Callable[[Expression], Expression]] = {
    "linear": lambda x: x,
    "relu": _at_least_0,
    "relu6": lambda x: _at_most_6(_at_least_0(x)),
    "sigmoid": _logistic,
}


def _epilogue(
    bias: TensorType | None,
    weights: TensorType | None,
    attributes: Attributes,
    out: TensorType,
) -> Callable[[Array, Array | None, Array | None], Array]:
    """Return the function that adds the bias, applies the activation and rounds to ``out``."""
    data_format = attributes.get("data_format")
    activation, alpha = attributes["activation"], attributes["leakyrelu_alpha"]
    shapes = [
        channel_broadcast_shape(type_.shape, out.rank, data_format) if type_ else ()
        for type_ in (bias, weights)
    ]
    work, narrow = working(out.dtype), out.dtype.numpy

    def end(x: Array, bias: Array | None, weights: Array | None) -> Array:
        if bias is not None:
            np.add(x, bias.reshape(shapes[0]).astype(work, copy=False), out=x)
        if activation == "prelu":
            assert weights is not None  # the spec requires it
            slopes = weights.reshape(shapes[1]).astype(work, copy=False)
            np.multiply(x, slopes, out=x, where=x < 0)
        elif activation == "leakyrelu":
            _leaky_relu(x, alpha)
        elif activation != "linear":
            _PLAIN[activation](x)
        return x.astype(narrow, copy=False)

    return end


def _native_epilogue(
    bias: TensorType | None, weights: TensorType | None, attributes: Attributes, filters: int
) -> str | None:
    """Return the native loops' name for the activation; None if they do not have it."""
    if any(type_ is not None and type_.shape != (filters,) for type_ in (bias, weights)):
        return None
    return _native_activation(attributes)


def _native_activation(attributes: Attributes) -> str | None:
    """Return the native loops' name for the activation; None if they do not have it."""
    activation = str(attributes["activation"])
    if activation in {"prelu", "leakyrelu"}:
        return "slope"
    return activation if activation in EPILOGUES else None


@lru_cache(MOST_MODULES)
def _ending(activation: str, dtype: DType, *, biased: bool) -> Expression:
    """Return what ends a product: one object for all sizes, by which code is found."""
    x = expressions.parameter(0, dtype)
    return _EXPRESSIONS[activation](x + expressions.parameter(1, dtype) if biased else x)


def _compiled_ending(
    bias: TensorType | None, attributes: Attributes, out: TensorType
) -> Callable[[Array, Array | None, Array | None], Array] | None:
    """Return the epilogue of a large product as one loop; None if it is not compiled."""
    activation, dtype = attributes["activation"], out.dtype
    is_row = bias is None or bias.shape == out.shape[-1:]
    if activation not in _EXPRESSIONS or dtype not in _COMPILED or not is_row:
        return None
    if not is_worthwhile(out.size):
        return None
    columns = out.shape[-1]
    operands = [GroupInput(out, (True, True))]
    if bias is not None:
        operands.append(GroupInput(bias, (False, True)))
    ending = _ending(activation, dtype, biased=bias is not None)
    result = GroupOutput(ending, out, (True, True), into=0)
    shape = (out.size // columns, columns)
    run = compile_group(Group("epilogue", shape, tuple(operands), (), (result,)))

    def end(product: Array, bias: Array | None, _weights: Array | None) -> Array:
        assert run is not None
        return run(product)[0] if bias is None else run(product, bias)[0]

    return run and end


def _with_epilogue(
    loops: Call, epilogue: str, attributes: Attributes, filters: int, out: TensorType
) -> Call:
    """Return native loops that add the bias and end with the activation before they store."""
    work, narrow = working(out.dtype), out.dtype.numpy

    def run(x: Array, filter: Array, bias: Array | None, weights: Array | None) -> Array:
        left, right = (array.astype(work, copy=False) for array in (x, filter))
        numbers = _numbers((bias, weights), attributes, filters, work)
        wide: Array = loops(left, right, *numbers, epilogue)
        return wide.astype(narrow, copy=False)

    return run


def _binder(
    loops: Forward | batched_products.BatchedProduct,
    epilogue: str,
    attributes: Attributes,
    ends: Sequence[TensorType | None],
    out: TensorType,
    orders: tuple[Shape, Shape] | None = None,
) -> Callable[[Sequence[Array | None]], Call | None]:
    """Return what makes calls of constant filter, bias and weights, of which there may be none.

    ``loops``: of one filter, or of a stack of matrices.

    ``orders``: permutations of an image to channels last, and back.
    """
    work, narrow = working(out.dtype), out.dtype.numpy
    same = tuple(range(out.rank))
    last, back = orders or (same, same)
    filters = out.shape[last[-1]]

    def bound(constants: Sequence[Array | None]) -> Call | None:
        image, taps, *extras = constants
        lacks = any(
            type_ is not None and end is None for type_, end in zip(ends, extras, strict=True)
        )
        if taps is None or image is not None or lacks:
            return None
        numbers = _numbers(extras, attributes, filters, work)
        multiply = loops.bind(taps.astype(work, copy=False), *numbers, epilogue)
        if orders is None:
            return without_warnings(
                lambda x, *_: multiply(x.astype(work, copy=False)).astype(narrow, copy=False)
            )

        def run_bound(x: Array, *_others: Array | None) -> Array:
            wide: Array = multiply(x.transpose(last).astype(work, copy=False))
            return wide.transpose(back).astype(narrow, copy=False)

        return without_warnings(run_bound)

    return bound


def _numbers(
    ends: Sequence[Array | None], attributes: Attributes, filters: int, work: np.dtype[Any]
) -> list[Array | None]:
    """Return bias and slopes as native loops read them."""
    bias, slopes = ends
    if attributes["activation"] != "prelu":  # whether or not there are weights, too
        slopes = np.full(filters, attributes["leakyrelu_alpha"], work)
    return [
        None if array is None else dense(array.astype(work, copy=False))
        for array in (bias, slopes)
    ]


def _convolution(spec: KernelSpec, products: Products, native: Native) -> None:
    """Register a fused convolution; float16 works in float32 and is rounded once."""

    @kernels.prepare(spec, because="faster")
    def run_convolution(
        x: TensorType,
        filter: TensorType,
        bias: TensorType | None,
        prelu_activation_weights: TensorType | None,
        *,
        attributes: Attributes,
        data_format: str,
        out: TensorType,
    ) -> Call:
        at = convolution_windows(x.shape, filter.shape, attributes)
        end = _epilogue(bias, prelu_activation_weights, attributes, out)
        work = working(out.dtype)
        last, back = layout(data_format)
        filters = out.shape[last[-1]]
        loops = native.forward(at, x.shape[0], filter.shape, work)
        epilogue = _native_epilogue(bias, prelu_activation_weights, attributes, filters)
        correlate = loops or partial(products.correlate, at=at)

        def run(
            x: Array, filter: Array, bias: Array | None, prelu_activation_weights: Array | None
        ) -> Array:
            images = x.transpose(last).astype(work, copy=False)
            wide = correlate(images, filter.astype(work, copy=False))
            return end(wide.transpose(back), bias, prelu_activation_weights)

        if loops is None or epilogue is None:
            return without_warnings(run)
        whole = _with_epilogue(loops, epilogue, attributes, filters, out)

        def run_whole(x: Array, *others: Array) -> Array:
            result: Array = whole(x.transpose(last), *others)
            return result.transpose(back)

        ends = bias, prelu_activation_weights
        bound = _binder(loops, epilogue, attributes, ends, out, (last, back))
        return Bindable(without_warnings(run_whole), bound)


_convolution(specs.FUSED_CONV2D, correlation, native_convolution)
_convolution(specs.FUSED_DEPTHWISE_CONV2D, depthwise, native_depthwise)


_BY_FORM: Final = formed(specs.FUSED_MAT_MUL)


@kernels.prepare(specs.FUSED_MAT_MUL, because="faster", dtypes=dt.NUMERIC)
def fused_mat_mul(
    a: TensorType,
    b: TensorType,
    bias: TensorType | None,
    prelu_activation_weights: TensorType | None,
    *,
    attributes: Attributes,
    backend: Backend,
    out: TensorType,
) -> Call:
    """Multiply the last two axes, as ``batch_mat_mul`` does; float16 in float32."""
    turn_a, turn_b = attributes["transpose_a"], attributes["transpose_b"]
    if are_few(a, b, out, transpose_a=turn_a, transpose_b=turn_b):
        operands = a, b, bias, prelu_activation_weights
        with suppress(KernelRefusedError):  # no LLVM
            return by_loops(_BY_FORM, operands, attributes, backend, out)
    if out.dtype in dt.WIDENED:
        raise KernelRefusedError("BLAS does not know it")
    work = working(out.dtype)
    native = matrices.product(a.shape, b.shape, work, transpose_a=turn_a, transpose_b=turn_b)
    epilogue = _native_epilogue(bias, prelu_activation_weights, attributes, out.shape[-1])
    if isinstance(native, Multiplication) and epilogue is not None:
        whole = without_warnings(_with_epilogue(native, epilogue, attributes, out.shape[-1], out))
        bound = _binder(native, epilogue, attributes, (bias, prelu_activation_weights), out)
        return Bindable(whole, bound)
    if not turn_a and _is_own_bias(bias, out) and prelu_activation_weights is None:
        stack = batched_products.batched_product(a.shape, b.shape, work, transpose_b=turn_b)
        epilogue = _native_activation(attributes)
        if stack is not None and epilogue is not None:
            whole = without_warnings(
                _with_epilogue(stack, epilogue, attributes, out.shape[-1], out)
            )
            bound = _binder(stack, epilogue, attributes, (bias, None), out)
            return Bindable(whole, bound)
    end = _compiled_ending(bias, attributes, out) or _epilogue(
        bias, prelu_activation_weights, attributes, out
    )
    inner = a.shape[-2 if turn_a else -1]
    multiply = find_product(out.size * inner, out, one_matrix=b.rank == 2)

    def run(a: Array, b: Array, bias: Array | None, weights: Array | None) -> Array:
        left = a.swapaxes(-1, -2) if turn_a else a
        right = b.swapaxes(-1, -2) if turn_b else b
        product = multiply(left.astype(work, copy=False), right.astype(work, copy=False))
        return end(product, bias, weights)

    return without_warnings(run)


def _is_own_bias(bias: TensorType | None, out: TensorType) -> bool:
    """Return whether each product of a stack has a bias of its own, as groups of channels do."""
    return bias is not None and bias.shape == (*out.shape[:-2], 1, out.shape[-1])

"""Convolutions and matrix products with a bias and an activation, as one kernel each.

``activation(product(x, filter) + bias)``; TensorFlow.js's ``fused`` namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from tensorplug.contract import attributes as kinds
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.contract.windows import channel_axis
from tensorplug.dispatch.calls import dispatch
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import matrix_products
from tensorplug.ops.movement import reshape
from tensorplug.ops.nn.convolution import convolution, correlation, depthwise

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.nn.convolution.correlation import Attributes, Family
    from tensorplug.typing import ArrayLike, DataFormat, PaddingLike, PerAxis, RoundingMode

__all__ = [
    "fused_conv2d",
    "fused_depthwise_conv2d",
    "fused_matmul",
]

Activation = Literal["linear", "relu", "relu6", "elu", "prelu", "leakyrelu", "sigmoid"]
_WHOLE = ("linear", "relu", "relu6")  # activations for integers
_SLOPE = 0.2  # TensorFlow.js's default


def _read_slope(value: Any, _known: InputTypes) -> float:
    number = _SLOPE if value is None else kinds.number().canonical(value, {})
    if isinstance(number, complex):
        raise ArgumentError(f"must be a real number, got {quoted(value)}")
    return float(number)  # type: ignore[arg-type]  # a number, and not complex


_OPTIONS = {
    "activation": kinds.choice(*get_args(Activation), default="linear"),
    "leakyrelu_alpha": Attribute(_read_slope, _SLOPE, "float"),
}


def channel_broadcast_shape(shape: Shape, rank: int, data_format: str | None) -> Shape:
    """Return the shape in which a bias broadcasts; a vector has one value per channel.

    ``rank``: of the result; ``data_format``: ``"NHWC"`` or ``"NCHW"``.
    """
    behind = rank - 1 - channel_axis(data_format) if data_format else 0
    return (*shape, *(1,) * behind) if len(shape) == 1 and shape[0] != 1 else shape


def align(x: Tensor, rank: int, data_format: str | None) -> Tensor:
    """Return a bias, or the weights of a PReLU, in the shape in which it broadcasts."""
    shape = channel_broadcast_shape(x.shape, rank, data_format)
    return x if shape == x.shape else reshape(x, shape)


def _check_operands(
    out: TensorType,
    bias: TensorType | None,
    weights: TensorType | None,
    activation: str,
    data_format: str | None = None,
) -> TensorType:
    """Return ``out`` after checking the other operands."""
    for what, operand in (("bias", bias), ("prelu_activation_weights", weights)):
        if operand is None:
            continue
        shape = channel_broadcast_shape(operand.shape, out.rank, data_format)
        behind = zip(reversed(shape), reversed(out.shape), strict=False)
        if len(shape) > out.rank or any(own not in (1, length) for own, length in behind):
            raise ShapeError(f"{what} must broadcast to the result's shape, {list(out.shape)}")
    if activation == "prelu" and weights is None:
        raise ArgumentError("activation 'prelu' requires prelu_activation_weights")
    complex_ = out.dtype in dt.COMPLEX and activation != "linear"
    if complex_ or (out.dtype not in dt.INEXACT and activation not in _WHOLE):
        raise DTypeError(f"activation {activation!r} does not support {out.dtype}")
    return out


def _define_fused(name: str, family: Family) -> KernelSpec:
    """Return the kernel of ``family.forward`` with bias and activation."""

    def infer(
        x: TensorType,
        filter: TensorType,
        bias: TensorType | None,
        prelu_activation_weights: TensorType | None,
        *,
        attributes: Attributes,
    ) -> TensorType:
        out = TensorType(x.dtype, family.output_shape(x.shape, filter.shape, attributes))
        return _check_operands(
            out,
            bias,
            prelu_activation_weights,
            attributes["activation"],
            attributes["data_format"],
        )

    names = ("x", "filter", "bias", "prelu_activation_weights")
    return KernelSpec(
        name,
        (*names[:2], *(f"{name}?" for name in names[2:])),
        infer,
        attributes={**correlation.options(2, "NHWC", "NCHW"), **_OPTIONS},
        accepts=dt.FLOATING,
        promote=names,
    )


def _infer_fused_mat_mul(
    a: TensorType,
    b: TensorType,
    bias: TensorType | None,
    prelu_activation_weights: TensorType | None,
    *,
    transpose_a: bool,
    transpose_b: bool,
    activation: str,
) -> TensorType:
    out = matrix_products.BATCH_MAT_MUL.infer(
        a, b, transpose_a=transpose_a, transpose_b=transpose_b
    )
    assert isinstance(out, TensorType)  # the product has one output
    return _check_operands(out, bias, prelu_activation_weights, activation)


FUSED_CONV2D = _define_fused("FusedConv2D", convolution.FAMILY)
FUSED_DEPTHWISE_CONV2D = _define_fused("FusedDepthwiseConv2D", depthwise.FAMILY)
FUSED_MAT_MUL = KernelSpec(
    "_FusedMatMul",
    ("a", "b", "bias?", "prelu_activation_weights?"),
    _infer_fused_mat_mul,
    attributes={
        "transpose_a": kinds.flag(default=False),
        "transpose_b": kinds.flag(default=False),
        **_OPTIONS,
    },
    accepts=dt.NUMERIC,
    promote=("a", "b", "bias", "prelu_activation_weights"),
)


def fused_conv2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    bias: ArrayLike | None = None,
    activation: Activation = "linear",
    prelu_activation_weights: ArrayLike | None = None,
    leakyrelu_alpha: float = 0.2,
    data_format: DataFormat = "NHWC",
    dilations: PerAxis = 1,
    dim_rounding_mode: RoundingMode | None = None,
) -> Tensor:
    """Return ``activation(conv2d(x, filter) + bias)``.

    Args:
        x: as for ``conv2d``.
        filter: as for ``conv2d``.
        strides: as for ``conv2d``.
        pad: as for ``conv2d``.
        bias: one number per out channel, or a tensor that broadcasts to the result, or None.
        activation: "linear" (none), "relu", "relu6", "elu", "prelu", "leakyrelu" or "sigmoid".
        prelu_activation_weights: slopes below 0 for "prelu", with a shape like that of ``bias``.
        leakyrelu_alpha: slope below 0 for "leakyrelu".
        data_format: as for ``conv2d``.
        dilations: as for ``conv2d``.
        dim_rounding_mode: as for ``conv2d``.

    The gradient of "relu6" is 0 from 6 on.

    Raises:
        ArgumentError: the activation is unknown, or "prelu" has no weights.
        ShapeError: ranks, channels or window do not fit, or bias or weights do not broadcast.
        DTypeError: an operand is not floating.

    Source: TensorFlow.js's fused.conv2d.

    Examples:
        >>> x = [[[[1.0, 2.0]]]]  # one pixel of two channels
        >>> filters = [[[[1.0, 1.0], [1.0, -1.0]]]]
        >>> tp.nn.fused_conv2d(x, filters, bias=[10.0, 0.0], activation="relu")
        Tensor([[[[13.,  0.]]]], dtype=float32, device='cpu')

    """
    return correlation.per_image(
        "fused_conv2d",
        x,
        4,
        lambda images: dispatch(
            FUSED_CONV2D,
            images,
            filter,
            bias,
            prelu_activation_weights,
            activation=activation,
            leakyrelu_alpha=leakyrelu_alpha,
            strides=strides,
            pad=pad,
            data_format=data_format,
            dilations=dilations,
            dim_rounding_mode=dim_rounding_mode,
        ),
    )


def fused_depthwise_conv2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    bias: ArrayLike | None = None,
    activation: Activation = "linear",
    prelu_activation_weights: ArrayLike | None = None,
    leakyrelu_alpha: float = 0.2,
    data_format: DataFormat = "NHWC",
    dilations: PerAxis = 1,
    dim_rounding_mode: RoundingMode | None = None,
) -> Tensor:
    """Return ``activation(depthwise_conv2d(x, filter) + bias)``.

    Arguments and errors are those of ``fused_conv2d``, but ``filter`` is that of
    ``depthwise_conv2d``: [height, width, channels, multiplier].

    ``strides``: how far the filter moves; ``pad``: ``"valid"``, ``"same"`` or the padding;
    ``prelu_activation_weights``: the slopes of the activation ``"prelu"``; ``leakyrelu_alpha``:
    the slope of the activation ``"leakyrelu"``; ``data_format``: ``"NHWC"`` or ``"NCHW"``;
    ``dilations``: the distance between the taps of the filter; ``dim_rounding_mode``: how the
    number of places is rounded.

    Source: TensorFlow.js's fused.depthwiseConv2d.

    Examples:
        >>> x = [[[[1.0, 2.0]]]]  # one pixel of two channels
        >>> filters = [[[[3.0], [-1.0]]]]
        >>> tp.nn.fused_depthwise_conv2d(x, filters, bias=[10.0, 0.0], activation="relu")
        Tensor([[[[13.,  0.]]]], dtype=float32, device='cpu')

    """
    return correlation.per_image(
        "fused_depthwise_conv2d",
        x,
        4,
        lambda images: dispatch(
            FUSED_DEPTHWISE_CONV2D,
            images,
            filter,
            bias,
            prelu_activation_weights,
            activation=activation,
            leakyrelu_alpha=leakyrelu_alpha,
            strides=strides,
            pad=pad,
            data_format=data_format,
            dilations=dilations,
            dim_rounding_mode=dim_rounding_mode,
        ),
    )


def fused_matmul(
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: ArrayLike | None = None,
    activation: Activation = "linear",
    prelu_activation_weights: ArrayLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Tensor:
    """Return ``activation(a @ b + bias)`` over the last two axes; the leading ones broadcast.

    Args:
        a: [..., rows, inner], or [..., inner, rows] with ``transpose_a``.
        b: [..., inner, columns], or [..., columns, inner] with ``transpose_b``.
        transpose_a: whether to transpose the last two axes of ``a`` first.
        transpose_b: whether to transpose the last two axes of ``b`` first.
        bias: a tensor that broadcasts to the result, such as one number per column, or None.
        activation: as for ``fused_conv2d``. Integers support "linear", "relu" and "relu6",
            complex numbers "linear".
        prelu_activation_weights: slopes below 0 for "prelu"; they broadcast to the result.
        leakyrelu_alpha: slope below 0 for "leakyrelu".

    Raises:
        ArgumentError: the activation is unknown, or "prelu" has no weights.
        ShapeError: a rank is below 2, inner sizes differ, or shapes do not broadcast.
        DTypeError: the dtype does not support the activation.

    Source: TensorFlow.js's fused.matMul.

    Examples:
        >>> x, weights, bias = [[1.0, 2.0]], [[1.0, 1.0], [1.0, -1.0]], [10.0, 0.0]
        >>> tp.nn.fused_matmul(x, weights, bias=bias, activation="relu")
        Tensor([[13.,  0.]], dtype=float32, device='cpu')
        >>> tp.nn.fused_matmul(x, weights, activation="leakyrelu", leakyrelu_alpha=0.5)
        Tensor([[ 3. , -0.5]], dtype=float32, device='cpu')

    """
    return dispatch(
        FUSED_MAT_MUL,
        a,
        b,
        bias,
        prelu_activation_weights,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        activation=activation,
        leakyrelu_alpha=leakyrelu_alpha,
    )

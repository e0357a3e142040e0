"""Batch normalization, local response normalization, moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag, quoted, real
from tensorplug.contract.shapes import broadcast
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import extents, movement
from tensorplug.ops.elementwise.arithmetic import squared_difference
from tensorplug.ops.reduction import mean as mean_of

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, Axis, SupportsArray

__all__ = [
    "Moments",
    "batch_norm",
    "local_response_normalization",
    "moments",
    "moving_average",
]


def _infer_fused_batch_norm(
    x: TensorType,
    scale: TensorType | None,
    offset: TensorType | None,
    mean: TensorType,
    variance: TensorType,
    *,
    variance_epsilon: dt.Scalar,
) -> TensorType:
    dt.check_number(variance_epsilon, x.dtype)
    parameters = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    for name, parameter in parameters.items():
        if parameter is not None and broadcast(x.shape, parameter.shape) != x.shape:
            raise ShapeError(f"{name} must broadcast to the shape of x")
    return x


FUSED_BATCH_NORM = KernelSpec(
    "FusedBatchNorm",
    ("x", "scale?", "offset?", "mean", "variance"),
    _infer_fused_batch_norm,
    attributes={"variance_epsilon": attributes.number(0.001)},
    accepts=dt.REAL,
    promote=("x", "scale", "offset", "mean", "variance"),
    inexact=True,
    elementwise=True,
)

_RESPONSE = {
    "depth_radius": attributes.integer(5, at_least=0),
    "bias": attributes.number(1.0),
    "alpha": attributes.number(1.0),
    "beta": attributes.number(0.5),
}


def _infer_lrn(x: TensorType, *, bias: dt.Scalar, alpha: dt.Scalar, beta: dt.Scalar) -> TensorType:
    if not x.rank:
        raise ShapeError("x must have at least rank 1")
    for number in (bias, alpha, beta):
        dt.check_number(number, x.dtype)
    return x


def _infer_lrn_grad(
    x: TensorType,
    y: TensorType,
    dy: TensorType,
    *,
    bias: dt.Scalar,
    alpha: dt.Scalar,
    beta: dt.Scalar,
) -> TensorType:
    if not x.shape == y.shape == dy.shape:
        raise ShapeError("x, y and dy must have the same shape")
    return _infer_lrn(x, bias=bias, alpha=alpha, beta=beta)


LRN = KernelSpec(
    "LRN",
    ("x",),
    _infer_lrn,
    attributes=_RESPONSE,
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    leading=(),
)
LRN_GRAD = KernelSpec(
    "LRNGrad",
    ("x", "y", "dy"),
    _infer_lrn_grad,
    attributes=_RESPONSE,
    accepts=dt.FLOATING,
    promote=("x", "y", "dy"),
    linear=("dy",),
    leading=(),
)


def compute_neighbours_norm(x: Tensor, radius: int, bias: float, alpha: float) -> Tensor:
    """Return ``bias + alpha * sum of neighbours' squares``, the base of LRN's divisor."""
    return sum_neighbours(x * x, radius) * alpha + bias


def sum_neighbours(x: Tensor, radius: int) -> Tensor:
    """Return for each channel the sum over channels at most ``radius`` away.

    It doubles sums of 1, 2, 4 ... channels, so wide windows take few steps. It is its own
    transpose. Gradients and decompositions use it.
    """
    channels = x.shape[-1]
    reach = min(radius, channels - 1)
    if reach <= 0:
        return x
    begin = (0,) * (x.ndim - 1)
    run = extents.pad(x, [(0, 0)] * (x.ndim - 1) + [(reach, reach)])
    width, done, total = 1, 0, None  # width of the runs, and the part of the window that is summed
    while True:
        if (2 * reach + 1) & width:
            part = extents.slice(run, (*begin, done), (*x.shape[:-1], channels))
            total = part if total is None else total + part
            done += width
        if total is not None and done == 2 * reach + 1:
            return total
        length = run.shape[-1] - width
        left = extents.slice(run, (*begin, 0), (*x.shape[:-1], length))
        run = left + extents.slice(run, (*begin, width), (*x.shape[:-1], length))
        width *= 2


@chained
def batch_norm(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    offset: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    variance_epsilon: float = 1e-3,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``.

    Args:
        x: of any rank; channels usually come last.
        mean: broadcasts to the shape of x, such as one number per channel.
        variance: likewise.
        offset: likewise; None for 0.
        scale: likewise; None for 1.
        variance_epsilon: keeps the square root above 0.

    All five are differentiable. Integers become floats first.

    Raises:
        ShapeError: another operand does not broadcast to the shape of x.

    Source: batch normalization (Ioffe and Szegedy, 2015), with given statistics.

    Examples:
        >>> x = tp.asarray([[1.0, 10.0], [3.0, 14.0]])
        >>> mean, variance = tp.nn.moments(x, axis=0)
        >>> tp.nn.batch_norm(x, mean, variance, variance_epsilon=0.0)
        Tensor([[-1., -1.],
                [ 1.,  1.]], dtype=float32, device='cpu')
        >>> tp.nn.batch_norm(x, mean, variance, [0.0, 5.0], [2.0, 1.0], variance_epsilon=0.0)
        Tensor([[-2.,  4.],
                [ 2.,  6.]], dtype=float32, device='cpu')

    """
    return dispatch(
        FUSED_BATCH_NORM, x, scale, offset, mean, variance, variance_epsilon=variance_epsilon
    )


@chained
def local_response_normalization(
    x: ArrayLike,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> Tensor:
    """Return ``x * (bias + alpha * s) ** -beta``, s the sum of squares of neighbouring channels.

    Channels are the last axis. The neighbours of a channel are the channels at most
    ``depth_radius`` away, itself included. ``alpha`` is not divided by their number. Integers
    become floats first.

    Raises:
        ShapeError: x has rank 0.

    Source: "ImageNet classification with deep convolutional neural networks" (Krizhevsky et
    al., 2012), section 3.3.

    Examples:
        >>> x = [[[[3.0, 4.0, 0.0]]]]  # one pixel of three channels
        >>> tp.nn.local_response_normalization(x, depth_radius=1, bias=0.0).numpy().round(4)
        array([[[[0.6, 0.8, 0. ]]]], dtype=float32)

    """
    return dispatch(LRN, x, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta)


class Moments(NamedTuple):
    """The mean and the variance that ``moments`` returns.

    Examples:
        >>> result = tp.nn.moments([1.0, 3.0])
        >>> result.mean, result.variance
        (Tensor(2., dtype=float32, device='cpu'), Tensor(1., dtype=float32, device='cpu'))

    """

    mean: Tensor
    variance: Tensor


def moments(x: ArrayLike, axis: Axis | None = None, *, keepdims: bool = False) -> Moments:
    """Return the mean of ``x`` along ``axis``, and its variance: the mean squared distance.

    ``axis`` is None for all axes, an int, or several. The variance divides by the number of
    elements. Integers become floats first. Without elements both are NaN.

    ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: x is complex.

    Source: TensorFlow.js's moments.

    Examples:
        >>> mean, variance = tp.nn.moments([[1.0, 2.0], [3.0, 6.0]], axis=0)
        >>> mean
        Tensor([2., 4.], dtype=float32, device='cpu')
        >>> variance
        Tensor([1., 4.], dtype=float32, device='cpu')

    """
    tensor = as_tensor(x, what="moments: x")
    if tensor.dtype in dt.COMPLEX:
        raise DTypeError(f"moments: x must hold real numbers, got {tensor.type}")
    if tensor.dtype in dt.BOOL:
        raise DTypeError(f"moments: x must hold numbers, got {tensor.type}")
    flag(keepdims, "moments: keepdims")
    centre = mean_of(tensor, axis=axis, keepdims=True)
    variance = mean_of(squared_difference(tensor, centre), axis=axis, keepdims=keepdims)
    mean = centre if keepdims else movement.reshape(centre, variance.shape)
    return Moments(mean, variance)


def moving_average(
    v: ArrayLike,
    x: ArrayLike,
    decay: float | Tensor | SupportsArray,
    step: float | Tensor | SupportsArray | None = None,
    *,
    zero_debias: bool = True,
) -> Tensor:
    """Return ``v + (x - v) * (1 - decay)``: the exponential moving average v after one step.

    Args:
        v: the average so far.
        x: the new value, of the shape of v.
        decay: the factor of the average in one step, a number or tensor in [0, 1).
        step: the number of this step, counted from 1; required with ``zero_debias``.
        zero_debias: whether to divide the change by ``1 - decay ** step``, which corrects an
            average that began at 0.

    Raises:
        ArgumentError: ``step`` is missing or less than 1, or a number is of another kind.
        ShapeError: v and x have different shapes.

    Source: TensorFlow.js's movingAverage.

    Examples:
        >>> tp.nn.moving_average(0.0, 8.0, 0.75, zero_debias=False)
        Tensor(2., dtype=float32, device='cpu')
        >>> tp.nn.moving_average(0.0, 8.0, 0.75, step=1)
        Tensor(8., dtype=float32, device='cpu')

    """
    average, value = as_tensor(v, what="moving_average: v"), as_tensor(x, what="moving_average: x")
    if average.shape != value.shape:
        raise ShapeError(
            f"moving_average: v and x must have the same shape, got {list(average.shape)} and "
            f"{list(value.shape)}"
        )
    factor = _read_factor(decay, "moving_average: decay")
    change: Tensor = (value - average) * (1.0 - factor)
    if flag(zero_debias, "moving_average: zero_debias"):
        if step is None:
            raise ArgumentError("moving_average: zero_debias requires step")
        count = _read_factor(step, "moving_average: step")
        if isinstance(count, float) and count < 1:
            raise ArgumentError(f"moving_average: step must be at least 1, got {quoted(step)}")
        change = change / (1.0 - factor**count)
    return average + change


def _read_factor(value: Any, what: str) -> Any:
    """Return a number as a float, and anything else as a tensor."""
    return as_tensor(value, what=what) if hasattr(value, "shape") else real(value, what)

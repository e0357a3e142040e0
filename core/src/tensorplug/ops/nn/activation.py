"""Activation functions of neural networks. They live in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import attributes, inference
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "elu",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "softmax",
    "softplus",
    "step",
]

# From "Self-Normalizing Neural Networks" (Klambauer et al., 2017). They make mean 0 and variance 1
# a fixed point.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946

RELU = KernelSpec("Relu", ("x",), inference.same, accepts=dt.REAL, elementwise=True)
SIGMOID = KernelSpec(
    "Sigmoid",
    ("x",),
    inference.same,
    accepts=dt.NUMERIC,
    promote=("x",),
    inexact=True,
    elementwise=True,
)
RELU6 = KernelSpec("Relu6", ("x",), inference.same, accepts=dt.REAL, elementwise=True)
ELU = KernelSpec(
    "Elu", ("x",), inference.same, accepts=dt.REAL, promote=("x",), inexact=True, elementwise=True
)
SELU = KernelSpec(
    "Selu", ("x",), inference.same, accepts=dt.REAL, promote=("x",), inexact=True, elementwise=True
)
SOFTPLUS = KernelSpec(
    "Softplus",
    ("x",),
    inference.same,
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    elementwise=True,
)


SIGMOID_GRAD = KernelSpec(
    "SigmoidGrad",
    ("dy", "x"),
    inference.of_one_shape("dy", "x"),
    accepts=dt.FLOATING,
    promote=("dy", "x"),
    elementwise=True,
)
ELU_GRAD = KernelSpec(
    "EluGrad",
    ("dy", "y"),
    inference.of_one_shape("dy", "y"),
    accepts=dt.FLOATING,
    promote=("dy", "y"),
    elementwise=True,
)


def _infer_sloped(x: TensorType, *, alpha: dt.Scalar) -> TensorType:
    dt.check_number(alpha, x.dtype)
    return x


LEAKY_RELU = KernelSpec(
    "LeakyRelu",
    ("x",),
    _infer_sloped,
    attributes={"alpha": attributes.number(0.2)},
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    elementwise=True,
)
PRELU = KernelSpec(
    "Prelu",
    ("x", "alpha"),
    inference.broadcast,
    accepts=dt.REAL,
    promote=("x", "alpha"),
    inexact=True,
    elementwise=True,
)
STEP = KernelSpec(
    "Step",
    ("x",),
    _infer_sloped,
    attributes={"alpha": attributes.number(0.0)},
    accepts=dt.REAL,
    elementwise=True,
)
SOFTMAX = KernelSpec(
    "Softmax",
    ("logits",),
    inference.same,
    attributes={"dim": attributes.axis("logits", -1)},
    accepts=dt.REAL,
    promote=("logits",),
    inexact=True,
    symmetric=("logits",),
    leading=("dim",),
)
LOG_SOFTMAX = KernelSpec(
    "LogSoftmax",
    ("logits",),
    inference.same,
    attributes={"axis": attributes.axis("logits", -1)},
    accepts=dt.REAL,
    promote=("logits",),
    inexact=True,
    leading=("axis",),
)


@chained
def relu(x: ArrayLike, /) -> Tensor:
    """Return ``max(x, 0)`` elementwise, in the dtype of ``x``; NaN stays NaN.

    Its gradient at 0 is 0.

    Raises:
        DTypeError: complex numbers or strings.

    Source: "Rectified linear units improve restricted Boltzmann machines" (Nair and Hinton,
    2010).

    Examples:
        >>> tp.nn.relu([-2.0, 0.0, 3.0])
        Tensor([0., 0., 3.], dtype=float32, device='cpu')
        >>> tp.nn.relu([-2, 3])
        Tensor([0, 3], dtype=int32, device='cpu')

    """
    return dispatch_unary(RELU, x)


@chained
def relu6(x: ArrayLike, /) -> Tensor:
    """Return ``min(max(x, 0), 6)`` elementwise; NaN stays NaN.

    The dtype is that of ``x``. Its gradient is that of ``x`` for 0 < x <= 6, else 0.

    Raises:
        DTypeError: complex numbers or strings.

    Source: "Convolutional deep belief networks on CIFAR-10" (Krizhevsky, 2010).

    Examples:
        >>> tp.nn.relu6([-2.0, 3.0, 9.0])
        Tensor([0., 3., 6.], dtype=float32, device='cpu')

    """
    return dispatch_unary(RELU6, x)


@chained
def elu(x: ArrayLike, /) -> Tensor:
    """Return ``x`` where it is positive, else ``e**x - 1``; integers become floats first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: exponential linear units (Clevert et al., 2015) with alpha 1.

    Examples:
        >>> tp.nn.elu([-np.inf, -1.0, 0.0, 2.0]).numpy().round(4)
        array([-1.    , -0.6321,  0.    ,  2.    ], dtype=float32)

    """
    return dispatch_unary(ELU, x)


@chained
def selu(x: ArrayLike, /) -> Tensor:
    """Return ``SCALE * x`` where x is positive, else ``SCALE * ALPHA * (e**x - 1)``.

    SCALE is 1.0507..., ALPHA 1.6732...; integers become floats first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: self-normalizing neural networks (Klambauer et al., 2017).

    Examples:
        >>> tp.nn.selu([-1.0, 0.0, 1.0]).numpy().round(4)
        array([-1.1113,  0.    ,  1.0507], dtype=float32)

    """
    return dispatch_unary(SELU, x)


@chained
def leaky_relu(x: ArrayLike, /, alpha: float = 0.2) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * x``; integers become floats first.

    Its gradient at 0 is ``alpha``.

    Raises:
        DTypeError: complex numbers or strings.

    Source: "Rectifier nonlinearities improve neural network acoustic models" (Maas et al., 2013).

    Examples:
        >>> tp.nn.leaky_relu([-2.0, 3.0], alpha=0.25)
        Tensor([-0.5,  3. ], dtype=float32, device='cpu')
        >>> tp.nn.leaky_relu([-5, 5])
        Tensor([-1.,  5.], dtype=float32, device='cpu')

    """
    return dispatch(LEAKY_RELU, x, alpha=alpha)


@chained
def prelu(x: ArrayLike, alpha: ArrayLike, /) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * x``, for a tensor ``alpha``.

    Both operands broadcast and have gradients; at x = 0 they are ``alpha`` for x and 0 for alpha.
    Integers become floats first.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: parametric rectified linear units (He et al., 2015).

    Examples:
        >>> tp.nn.prelu([[-2.0, -2.0], [4.0, 4.0]], [0.5, 0.25])
        Tensor([[-1. , -0.5],
                [ 4. ,  4. ]], dtype=float32, device='cpu')

    """
    return dispatch(PRELU, x, alpha)


@chained
def softplus(x: ArrayLike, /) -> Tensor:
    """Return ``log(1 + e**x)`` elementwise, without overflow or loss of accuracy.

    Integers become floats first. Its gradient is ``sigmoid(x)``.

    Raises:
        DTypeError: complex numbers or strings.

    Source: TensorFlow.js's softplus.

    Examples:
        >>> tp.nn.softplus([-1000.0, 1000.0])
        Tensor([   0., 1000.], dtype=float32, device='cpu')
        >>> tp.nn.softplus([0.0]).numpy().round(4)
        array([0.6931], dtype=float32)

    """
    return dispatch_unary(SOFTPLUS, x)


@chained
def log_sigmoid(x: ArrayLike, /) -> Tensor:
    """Return the logarithm of ``sigmoid(x)`` elementwise: ``-softplus(-x)``.

    It is finite where ``sigmoid(x)`` underflows to 0. Integers become floats first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: TensorFlow.js's logSigmoid.

    Examples:
        >>> tp.nn.log_sigmoid([-1000.0])
        Tensor([-1000.], dtype=float32, device='cpu')
        >>> tp.nn.log_sigmoid([0.0]).numpy().round(4)
        array([-0.6931], dtype=float32)

    """
    return -softplus(-as_tensor(x, what="log_sigmoid: x"))


@chained
def step(x: ArrayLike, /, alpha: float = 0.0) -> Tensor:
    """Return 1 where ``x`` is positive, else ``alpha``, in the dtype of ``x``; NaN stays NaN.

    It stops gradients, because it is constant on both sides of 0.

    Raises:
        DTypeError: x holds integers and alpha is a fraction.

    Source: TensorFlow.js's step.

    Examples:
        >>> tp.nn.step([-2.0, 0.0, 3.0])
        Tensor([0., 0., 1.], dtype=float32, device='cpu')
        >>> tp.nn.step([-2.0, 0.0, 3.0], alpha=0.5)
        Tensor([0.5, 0.5, 1. ], dtype=float32, device='cpu')

    """
    return dispatch(STEP, x, alpha=alpha)


@chained
def sigmoid(x: ArrayLike, /) -> Tensor:
    """Return ``1 / (1 + e**-x)`` elementwise, without overflow.

    It turns logits into probabilities. Integers become floats first; complex numbers are allowed.

    Raises:
        DTypeError: strings.

    Source: TensorFlow.js's sigmoid; SciPy's expit.

    Examples:
        >>> tp.nn.sigmoid([-1000.0, 0.0, 1000.0])
        Tensor([0. , 0.5, 1. ], dtype=float32, device='cpu')
        >>> tp.nn.sigmoid([np.log(3.0)]).numpy().round(4)
        array([0.75], dtype=float32)

    """
    return dispatch_unary(SIGMOID, x)


@chained
def softmax(x: ArrayLike, /, axis: int = -1) -> Tensor:
    """Return ``e**x / sum(e**x)`` along ``axis``, computed from ``x - max(x)``.

    It turns logits into probabilities that add up to 1. Integers become floats first. Where all
    elements along the axis are -inf, the result is NaN.

    Raises:
        OutOfRangeError: the axis is out of range.
        DTypeError: complex numbers or strings.

    Source: TensorFlow.js's softmax.

    Examples:
        >>> tp.nn.softmax([0.0, np.log(3.0)]).numpy().round(4)
        array([0.25, 0.75], dtype=float32)
        >>> tp.nn.softmax([[1.0, 1.0], [1000.0, -1000.0]])
        Tensor([[0.5, 0.5],
                [1. , 0. ]], dtype=float32, device='cpu')
        >>> tp.nn.softmax([[1.0, 1.0], [1.0, 1.0], [1.0, -np.inf]], axis=0).numpy().round(4)
        array([[0.3333, 0.5   ],
               [0.3333, 0.5   ],
               [0.3333, 0.    ]], dtype=float32)

    """
    return dispatch(SOFTMAX, x, dim=axis)


@chained
def log_softmax(x: ArrayLike, /, axis: int = -1) -> Tensor:
    """Return the logarithm of ``softmax(x)`` along ``axis``, without computing log(0).

    It is finite where ``softmax(x)`` underflows. Integers become floats first.

    Raises:
        OutOfRangeError: the axis is out of range.
        DTypeError: complex numbers or strings.

    Source: TensorFlow.js's logSoftmax.

    Examples:
        >>> tp.nn.log_softmax([0.0, np.log(3.0)]).numpy().round(4)
        array([-1.3863, -0.2877], dtype=float32)
        >>> tp.nn.log_softmax([0.0, -1000.0])
        Tensor([    0., -1000.], dtype=float32, device='cpu')

    """
    return dispatch(LOG_SOFTMAX, x, axis=axis)

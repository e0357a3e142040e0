"""Elementwise arithmetic: specs and public functions.

Binary ops broadcast by NumPy's rules and promote their operands to a common dtype; Python
scalars are weak. The formulas are the definitions; the source is the array API standard
2025.12 unless a docstring says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, inference, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag
from tensorplug.contract.expressions import cast, function, of_floats
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import (
    as_constant,
    as_tensor,
    chained,
    dispatch,
    dispatch_binary,
    dispatch_unary,
    run_on,
)
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.complexes import COMPLEX_ABS
from tensorplug.ops.movement import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expression_rules import Given
    from tensorplug.contract.expressions import Expression
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, TensorLike

__all__ = [
    "abs",
    "add",
    "add_n",
    "astype",
    "atan",
    "cos",
    "div_no_nan",
    "divide",
    "erf",
    "exp",
    "floor",
    "floor_divide",
    "log",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "positive",
    "pow",
    "remainder",
    "sin",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tanh",
    "where",
]


def _define_inexact(
    name: str, expression: str, accepts: frozenset[DType] = dt.NUMERIC
) -> KernelSpec:
    return KernelSpec(
        name,
        ("x",),
        inference.same,
        accepts=accepts,
        promote=("x",),
        inexact=True,
        expression=expression,
    )


def _define_binary(
    name: str, expression: Given, accepts: frozenset[DType] = dt.NUMERIC, *, inexact: bool = False
) -> KernelSpec:
    return KernelSpec(
        name,
        ("a", "b"),
        inference.broadcast,
        accepts=accepts,
        promote=("a", "b"),
        inexact=inexact,
        expression=expression,
    )


def _power(a: Expression, b: Expression) -> Expression:
    """Return ``a ** b``; the exponents 1, 2 and -1, which are frequent, need no function."""
    if b.op == "constant" and a.dtype in dt.FLOATING:
        if b.value == 1:
            return a
        if b.value == 2:
            return a * a
        if b.value == -1:
            return 1 / a
    return function("pow", a, b)


NEG = KernelSpec(
    "Neg", ("x",), inference.same, accepts=dt.NUMERIC, promote=("x",), expression="negative"
)
ABS = KernelSpec("Abs", ("x",), inference.same, accepts=dt.REAL, promote=("x",), expression="abs")
FLOOR = KernelSpec(
    "Floor",
    ("x",),
    inference.same,
    accepts=dt.REAL,
    promote=("x",),
    expression=of_floats("floor"),
)
EXP = _define_inexact("Exp", "exp")
LOG = _define_inexact("Log", "log")
SQRT = _define_inexact("Sqrt", "sqrt")
SIN = _define_inexact("Sin", "sin")
COS = _define_inexact("Cos", "cos")
ATAN = _define_inexact("Atan", "atan")
ERF = _define_inexact("Erf", "erf", dt.REAL)
TANH = _define_inexact("Tanh", "tanh")
SQUARE = KernelSpec("Square", ("x",), inference.same, accepts=dt.NUMERIC, promote=("x",))
ADD = _define_binary("Add", "add")
SUB = _define_binary("Sub", "subtract")
MULTIPLY = _define_binary("Multiply", "multiply")
REAL_DIV = _define_binary("RealDiv", "divide", inexact=True)
DIV_NO_NAN = KernelSpec(
    "DivNoNan",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.NUMERIC,
    promote=("a", "b"),
    inexact=True,
)
FLOOR_DIV = _define_binary("FloorDiv", "floor_divide", dt.REAL)
MOD = _define_binary("Mod", "remainder", dt.REAL)
POW = _define_binary("Pow", _power)
MAXIMUM = _define_binary("Maximum", "maximum", dt.REAL)
MINIMUM = _define_binary("Minimum", "minimum", dt.REAL)
SQUARED_DIFFERENCE = KernelSpec(
    "SquaredDifference",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.NUMERIC,
    promote=("a", "b"),
)


def _infer_add_n(xs: list[TensorType]) -> TensorType:
    if not xs:
        raise ArgumentError("xs is empty")
    for x in xs[1:]:
        if x.shape != xs[0].shape:
            raise ShapeError(f"xs must have the same shape, got {xs[0]} and {x}")
    return xs[0]


ADD_N = KernelSpec("AddN", ("xs[]",), _infer_add_n, accepts=dt.NUMERIC, promote=("xs",))


def _infer_cast(x: TensorType, *, dtype: DType) -> TensorType:
    return TensorType(dtype, x.shape)


CAST = KernelSpec(
    "Cast",
    ("x",),
    _infer_cast,
    attributes={"dtype": attributes.dtype(stored=True)},
    accepts=dt.FIXED | dt.STORAGE,
    expression=lambda x, *, dtype: cast(x, dtype),
    exact=True,
)


def _infer_select(condition: TensorType, t: TensorType, e: TensorType) -> TensorType:
    return TensorType(t.dtype, shapes.broadcast(condition.shape, t.shape, e.shape))


SELECT = KernelSpec(
    "Select",
    ("condition", "t", "e"),
    _infer_select,
    accepts={"condition": dt.BOOL},
    promote=("t", "e"),
    expression="where",
)


@chained
def negative(x: ArrayLike, /) -> Tensor:
    """Return ``-x`` elementwise, in the dtype of ``x``.

    Unsigned integers wrap, and so does the least signed one.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.negative([1.5, 0.0, -2.0])
        Tensor([-1.5, -0. ,  2. ], dtype=float32, device='cpu')
        >>> tp.negative(tp.asarray([1, 0], dtype="uint8"))
        Tensor([255,   0], dtype=uint8, device='cpu')

    """
    return dispatch_unary(NEG, x)


@chained
def abs(x: ArrayLike, /) -> Tensor:
    """Return ``|x|`` elementwise.

    The dtype is that of ``x``. For complex numbers the result is the modulus, in the dtype of
    the parts. The least signed integer stays as it is, because its absolute value does not fit.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.abs([-1.5, 0.0, 2.0])
        Tensor([1.5, 0. , 2. ], dtype=float32, device='cpu')
        >>> tp.abs([3 + 4j])
        Tensor([5.], dtype=float32, device='cpu')
        >>> tp.abs(tp.asarray([-128, -127], dtype="int8"))
        Tensor([-128,  127], dtype=int8, device='cpu')

    """
    tensor: Any = x if hasattr(x, "_placement") else as_tensor(x, what="Abs: input 'x'")
    return dispatch_unary(COMPLEX_ABS if tensor.dtype.kind == "complex" else ABS, tensor)


@chained
def positive(x: ArrayLike, /) -> Tensor:
    """Return ``x`` as it is: ``+x``.

    Source: the array API standard.

    Examples:
        >>> tp.positive([-1.5, 2.0])
        Tensor([-1.5,  2. ], dtype=float32, device='cpu')

    """
    return dispatch_unary(IDENTITY, x)


@chained
def floor(x: ArrayLike, /) -> Tensor:
    """Return the largest integer that is not above ``x``, elementwise.

    The dtype is that of ``x``, so floats stay floats. Integers stay as they are.

    Raises:
        DTypeError: complex numbers, booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.floor([1.7, -1.2, 3.0])
        Tensor([ 1., -2.,  3.], dtype=float32, device='cpu')

    """
    return dispatch_unary(FLOOR, x)


@chained
def exp(x: ArrayLike, /) -> Tensor:
    """Return ``e**x`` elementwise: the exponential function.

    Above about 88.7, float32 gives infinity. Integers and booleans become floats, float32 by
    default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.exp([0.0, 1.0, -1.0]).numpy().round(4)
        array([1.    , 2.7183, 0.3679], dtype=float32)
        >>> tp.exp([-np.inf, 100.0])
        Tensor([ 0., inf], dtype=float32, device='cpu')

    """
    return dispatch_unary(EXP, x)


@chained
def log(x: ArrayLike, /) -> Tensor:
    """Return ``ln x`` elementwise: the natural logarithm.

    It is -inf at 0 and NaN below, but complex for complex ``x``. Integers and booleans become
    floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.log([1.0, 10.0]).numpy().round(4)
        array([0.    , 2.3026], dtype=float32)
        >>> tp.log([0.0, -1.0])
        Tensor([-inf,  nan], dtype=float32, device='cpu')
        >>> tp.log([-1 + 0j]).numpy().round(4)
        array([0.+3.1416j], dtype=complex64)

    """
    return dispatch_unary(LOG, x)


@chained
def sqrt(x: ArrayLike, /) -> Tensor:
    """Return ``x**0.5`` elementwise: the square root.

    It is NaN below 0, but complex for complex ``x``; -0.0 stays -0.0. Integers and booleans become
    floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.sqrt([0.0, 2.25, -1.0])
        Tensor([0. , 1.5, nan], dtype=float32, device='cpu')
        >>> tp.sqrt([16, 25])
        Tensor([4., 5.], dtype=float32, device='cpu')
        >>> tp.sqrt([-4 + 0j])
        Tensor([0.+2.j], dtype=complex64, device='cpu')

    """
    return dispatch_unary(SQRT, x)


@chained
def sin(x: ArrayLike, /) -> Tensor:
    """Return ``sin x`` elementwise: the sine of radians.

    Integers and booleans become floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.sin([0.0, np.pi / 6, np.pi / 2]).numpy().round(4)
        array([0. , 0.5, 1. ], dtype=float32)

    """
    return dispatch_unary(SIN, x)


@chained
def cos(x: ArrayLike, /) -> Tensor:
    """Return ``cos x`` elementwise: the cosine of radians.

    Integers and booleans become floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.cos([0.0, np.pi / 3, np.pi]).numpy().round(4)
        array([ 1. ,  0.5, -1. ], dtype=float32)

    """
    return dispatch_unary(COS, x)


@chained
def atan(x: ArrayLike, /) -> Tensor:
    """Return ``atan x`` elementwise: the inverse tangent, in radians within [-pi/2, pi/2].

    Integers and booleans become floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.atan([0.0, 1.0, -np.inf]).numpy().round(4)
        array([ 0.    ,  0.7854, -1.5708], dtype=float32)

    """
    return dispatch_unary(ATAN, x)


@chained
def erf(x: ArrayLike, /) -> Tensor:
    """Return the Gauss error function elementwise.

    ``erf(x)`` is ``2/sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to x. Integers and
    booleans become floats, float32 by default.

    Raises:
        DTypeError: complex numbers or strings.

    Source: C's erf; TensorFlow's Erf.

    Examples:
        >>> tp.erf([0.0, 0.5, np.inf]).numpy().round(4)
        array([0.    , 0.5205, 1.    ], dtype=float32)
        >>> x = tp.asarray([0.0, 1.0, 2.0])
        >>> (0.5 * (1 + tp.erf(x / 2**0.5))).numpy().round(4)  # the normal distribution function
        array([0.5   , 0.8413, 0.9772], dtype=float32)

    """
    return dispatch_unary(ERF, x)


@chained
def tanh(x: ArrayLike, /) -> Tensor:
    """Return ``tanh x`` elementwise: the hyperbolic tangent, within [-1, 1].

    Integers and booleans become floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.tanh([0.0, 0.5, -np.inf]).numpy().round(4)
        array([ 0.    ,  0.4621, -1.    ], dtype=float32)

    """
    return dispatch_unary(TANH, x)


@chained
def square(x: ArrayLike, /) -> Tensor:
    """Return ``x * x`` elementwise, in the dtype of ``x``.

    Integers wrap.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.square([1.5, -3.0])
        Tensor([2.25, 9.  ], dtype=float32, device='cpu')
        >>> tp.square(tp.asarray([15, 16], dtype="uint8"))
        Tensor([225,   0], dtype=uint8, device='cpu')

    """
    return dispatch_unary(SQUARE, x)


@chained
def add(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a + b`` elementwise.

    Integers wrap.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans (see ``logical_or``), or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.add([1.0, 2.0], 10)
        Tensor([11., 12.], dtype=float32, device='cpu')
        >>> tp.add([[1], [2]], [10, 20])
        Tensor([[11, 21],
                [12, 22]], dtype=int32, device='cpu')
        >>> tp.add(tp.asarray([200], dtype="uint8"), 100)
        Tensor([44], dtype=uint8, device='cpu')

    """
    return dispatch_binary(ADD, a, b)


def add_n(xs: Sequence[ArrayLike], /) -> Tensor:
    """Return the sum of the tensors ``xs``, a list or tuple, which have the same shape.

    Their dtypes are promoted; integers wrap.

    Raises:
        ShapeError: the shapes differ.
        DTypeError: only booleans, or strings, or dtypes that do not promote.
        ArgumentError: ``xs`` is empty or not a list.

    Source: TensorFlow's AddN.

    Examples:
        >>> tp.add_n([[1, 2], [10, 20], [100.0, 200.0]])
        Tensor([111., 222.], dtype=float32, device='cpu')

    """
    if not isinstance(xs, list | tuple):
        raise ArgumentError(f"add_n: xs must be a list of tensors, got {type(xs).__name__}")
    return dispatch(ADD_N, list(xs))


@chained
def subtract(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a - b`` elementwise.

    Integers wrap.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans (see ``logical_xor``), or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.subtract([5.0, 7.0], [1.0, 10.0])
        Tensor([ 4., -3.], dtype=float32, device='cpu')
        >>> tp.subtract(tp.asarray([1], dtype="uint8"), 2)
        Tensor([255], dtype=uint8, device='cpu')

    """
    return dispatch_binary(SUB, a, b)


@chained
def multiply(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a * b`` elementwise.

    Integers wrap.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans (see ``logical_and``), or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.multiply([1.0, 2.0, 3.0], 0.5)
        Tensor([0.5, 1. , 1.5], dtype=float32, device='cpu')
        >>> tp.multiply([[1], [2]], [3, 4])
        Tensor([[3, 4],
                [6, 8]], dtype=int32, device='cpu')

    """
    return dispatch_binary(MULTIPLY, a, b)


@chained
def divide(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a / b`` elementwise.

    Integers and booleans become floats, float32 by default. Division by 0 gives an infinity, and
    NaN for 0 / 0.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.divide([1, 3], 2)
        Tensor([0.5, 1.5], dtype=float32, device='cpu')
        >>> tp.divide([1.0, -1.0, 0.0], 0.0)
        Tensor([ inf, -inf,  nan], dtype=float32, device='cpu')

    """
    return dispatch_binary(REAL_DIV, a, b)


@chained
def div_no_nan(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a / b`` elementwise, and 0 where ``b`` is 0.

    Integers and booleans become floats, float32 by default. The gradients are those of the
    quotient, and 0 where ``b`` is 0.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: strings, or dtypes that do not promote.

    Source: TensorFlow's DivNoNan.

    Examples:
        >>> tp.div_no_nan([1.0, 3.0], [0.0, 2.0])
        Tensor([0. , 1.5], dtype=float32, device='cpu')

    """
    return dispatch_binary(DIV_NO_NAN, a, b)


@chained
def floor_divide(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``floor(a / b)`` elementwise: the quotient rounded down.

    Integers stay integers; an integer divided by 0 gives 0.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.floor_divide([7, -7], 2)
        Tensor([ 3, -4], dtype=int32, device='cpu')
        >>> tp.floor_divide([7.0, -7.0], 2.0)
        Tensor([ 3., -4.], dtype=float32, device='cpu')

    """
    return dispatch_binary(FLOOR_DIV, a, b)


@chained
def remainder(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a - b * floor(a / b)`` elementwise: the remainder with the sign of ``b``.

    An integer modulo 0 gives 0; a float gives NaN.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.remainder([7, -7, 7, -7], [3, 3, -3, -3])
        Tensor([ 1,  2, -2, -1], dtype=int32, device='cpu')
        >>> tp.remainder([5.5, 1.0], [2.0, 0.0])
        Tensor([1.5, nan], dtype=float32, device='cpu')

    """
    return dispatch_binary(MOD, a, b)


@chained
def pow(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a ** b`` elementwise.

    Integers wrap; an integer to a negative power is rounded towards 0, and 0 gives 0. A negative
    float to a power that is not whole gives NaN.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.pow([1.0, 2.0, 3.0], 2)
        Tensor([1., 4., 9.], dtype=float32, device='cpu')
        >>> tp.pow([2, -1, 3], -1)
        Tensor([ 0, -1,  0], dtype=int32, device='cpu')
        >>> tp.pow([-8.0, 4.0], 0.5)
        Tensor([nan,  2.], dtype=float32, device='cpu')

    """
    return dispatch_binary(POW, a, b)


@chained
def maximum(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return the larger of ``a`` and ``b`` elementwise; NaN if either is NaN.

    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.maximum([1.0, 5.0, np.nan], [3.0, 2.0, 0.0])
        Tensor([ 3.,  5., nan], dtype=float32, device='cpu')
        >>> tp.maximum([-1.0, 2.0], 0.0)
        Tensor([0., 2.], dtype=float32, device='cpu')

    """
    return dispatch_binary(MAXIMUM, a, b)


@chained
def minimum(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return the smaller of ``a`` and ``b`` elementwise; NaN if either is NaN.

    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.minimum([1.0, 5.0, np.nan], [3.0, 2.0, 0.0])
        Tensor([ 1.,  2., nan], dtype=float32, device='cpu')
        >>> tp.minimum([0.5, 2.0], 1.0)
        Tensor([0.5, 1. ], dtype=float32, device='cpu')

    """
    return dispatch_binary(MINIMUM, a, b)


@chained
def squared_difference(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``(a - b)**2`` elementwise.

    Integers wrap.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans, or strings, or dtypes that do not promote.

    Source: TensorFlow's SquaredDifference.

    Examples:
        >>> tp.squared_difference([1.0, 2.0], [4.0, 2.5])
        Tensor([9.  , 0.25], dtype=float32, device='cpu')

    """
    return dispatch_binary(SQUARED_DIFFERENCE, a, b)


@chained
def astype(
    x: TensorLike,
    dtype: DTypeLike,
    /,
    *,
    copy: bool = True,
    device: str | None = None,
    saturate: bool = False,
) -> Tensor:
    """Return ``x`` with its elements converted to ``dtype``.

    Floats are truncated towards zero to become integers. Values that do not fit wrap; NaN and
    infinities give 0. Nonzero values become True. Complex numbers lose their imaginary part to
    become real. Floats are rounded to the nearest one of fewer digits, ties to the even one; too
    large a number becomes infinite, or NaN in float8 dtypes without infinities.

    Args:
        x: a tensor of numbers or booleans; strings can only stay strings.
        dtype: of the result.
        copy: False returns ``x`` itself if it already has the dtype and the device.
        device: of the result; by default that of ``x``.
        saturate: True gives the least or the greatest finite number of ``dtype`` for numbers
            beyond it, infinities too.

    Raises:
        DTypeError: strings; complex numbers with ``saturate``.

    Source: the array API standard.

    Examples:
        >>> tp.astype([1.7, -1.7, np.nan], "int32")
        Tensor([ 1, -1,  0], dtype=int32, device='cpu')
        >>> tp.astype([300.0, -5.0], "uint8")
        Tensor([ 44, 251], dtype=uint8, device='cpu')
        >>> tp.astype([300.0, -5.0], "uint8", saturate=True)
        Tensor([255,   0], dtype=uint8, device='cpu')
        >>> tp.astype([0.1], "bfloat16")
        Tensor([0.1001], dtype=bfloat16, device='cpu')

    """
    wanted = dt.of(dtype, "astype")
    flag(copy, "astype: copy")
    if saturate is not False and flag(saturate, "astype: saturate"):
        return _saturated(x, wanted, device)

    def converted() -> Tensor:
        tensor: Any = x if copy else as_tensor(x, what="astype: x")
        if not copy and tensor.dtype is wanted:
            same: Tensor = tensor
            return same
        if wanted is dt.string:  # Cast is of numbers
            if not hasattr(tensor, "_placement"):
                tensor = as_tensor(tensor, what="astype: x")
            if tensor.dtype is wanted:
                return dispatch_unary(IDENTITY, tensor)
        return dispatch(CAST, tensor, dtype=wanted)

    return converted() if device is None else run_on(device, converted)


def _saturated(x: Any, dtype: DType, device: str | None) -> Tensor:
    tensor = as_tensor(x, what="astype: x")
    if tensor.dtype in dt.COMPLEX or "string" in (tensor.dtype.kind, dtype.kind):
        raise DTypeError(f"astype: saturate is for real numbers, got {tensor.type} for {dtype}")
    if tensor.dtype in dt.STORAGE:
        tensor = astype(tensor, dt.unpacked(tensor.dtype))
    if tensor.dtype in dt.BOOL or dtype in dt.BOOL | dt.COMPLEX:
        return astype(tensor, dtype, device=device)
    if dtype in dt.WHOLE and tensor.dtype in dt.FLOATING:
        found = where(tensor <= float(dtype.min), dtype.min, astype(tensor, dtype))
        # Powers of 2 are exact in any float, or infinite.
        found = where(tensor >= float(dtype.max + 1), dtype.max, found)
        return astype(found, dtype, device=device)
    if tensor.dtype in dt.INTEGER and dtype in dt.STORAGE - dt.WHOLE:
        tensor = astype(tensor, dt.unpacked(dtype))
    elif dtype in dt.FLOATING and dtype.max > tensor.dtype.max:
        tensor = astype(tensor, dtype)
    low, high = max(dtype.min, tensor.dtype.min), min(dtype.max, tensor.dtype.max)
    return astype(minimum(maximum(tensor, low), high), dtype, device=device)


@chained
def where(condition: ArrayLike, t: TensorLike, e: TensorLike, /) -> Tensor:
    """Return ``t`` where ``condition`` is True, else ``e``, elementwise.

    All three broadcast. ``t`` and ``e`` have any dtype and are promoted; a Python number takes the
    dtype of the tensor beside it. Gradients flow to the elements that are chosen.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: ``condition`` is not boolean, or the dtypes do not promote.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([-1.0, 0.0, 2.0])
        >>> tp.where(x > 0, x, 0.0)
        Tensor([0., 0., 2.], dtype=float32, device='cpu')
        >>> tp.where([[True], [False]], ["a", "b"], "-")
        Tensor([['a', 'b'],
                ['-', '-']], dtype=string, device='cpu')

    """
    return dispatch(SELECT, condition, as_constant(SELECT, 1, t, e), as_constant(SELECT, 2, e, t))

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
def negative(x: Any, /) -> Tensor:
    """Return ``-x`` elementwise. Arithmetic negation. Unsigned integers wrap."""
    return dispatch_unary(NEG, x)


@chained
def abs(x: Any, /) -> Tensor:
    """Return ``|x|`` elementwise.

    Absolute value; the most negative integer stays as it is. For complex numbers it is the
    modulus, in the dtype of the parts.
    """
    tensor = x if hasattr(x, "_placement") else as_tensor(x, what="Abs: input 'x'")
    return dispatch_unary(COMPLEX_ABS if tensor.dtype.kind == "complex" else ABS, tensor)


@chained
def positive(x: Any, /) -> Tensor:
    """Return ``x`` as it is."""
    return dispatch_unary(IDENTITY, x)


@chained
def floor(x: Any, /) -> Tensor:
    """Return ``largest integer <= x`` elementwise. Rounding down; integers stay as they are."""
    return dispatch_unary(FLOOR, x)


@chained
def exp(x: Any, /) -> Tensor:
    """Return ``e**x`` elementwise. Exponential."""
    return dispatch_unary(EXP, x)


@chained
def log(x: Any, /) -> Tensor:
    """Return ``ln x`` elementwise. Natural logarithm: -inf at 0, NaN below."""
    return dispatch_unary(LOG, x)


@chained
def sqrt(x: Any, /) -> Tensor:
    """Return ``x**0.5`` elementwise. Square root: NaN below 0; -0.0 stays -0.0."""
    return dispatch_unary(SQRT, x)


@chained
def sin(x: Any, /) -> Tensor:
    """Return ``sin x`` elementwise. Sine of radians."""
    return dispatch_unary(SIN, x)


@chained
def cos(x: Any, /) -> Tensor:
    """Return ``cos x`` elementwise. Cosine of radians."""
    return dispatch_unary(COS, x)


@chained
def atan(x: Any, /) -> Tensor:
    """Return ``atan x`` elementwise. Inverse tangent in radians, within [-pi/2, pi/2]."""
    return dispatch_unary(ATAN, x)


@chained
def erf(x: Any, /) -> Tensor:
    """Return ``2/sqrt(pi) * integral of exp(-t**2) from 0 to x`` elementwise.

    Gauss error function.
    """
    return dispatch_unary(ERF, x)


@chained
def tanh(x: Any, /) -> Tensor:
    """Return ``tanh x`` elementwise. Hyperbolic tangent."""
    return dispatch_unary(TANH, x)


@chained
def square(x: Any, /) -> Tensor:
    """Return ``x*x`` elementwise. Square; integers wrap."""
    return dispatch_unary(SQUARE, x)


@chained
def add(a: Any, b: Any, /) -> Tensor:
    """Return ``a + b`` elementwise. Sum. Not for booleans: use logical_or."""
    return dispatch_binary(ADD, a, b)


def add_n(xs: Sequence[Any], /) -> Tensor:
    """Return the sum of the tensors ``xs``, a list or tuple, which have the same shape.

    Their dtypes are promoted. (TensorFlow's AddN.)

    Raises:
        ShapeError: the shapes differ.
        ArgumentError: ``xs`` is empty or not a list.

    """
    if not isinstance(xs, list | tuple):
        raise ArgumentError(f"add_n: xs must be a list of tensors, got {type(xs).__name__}")
    return dispatch(ADD_N, list(xs))


@chained
def subtract(a: Any, b: Any, /) -> Tensor:
    """Return ``a - b`` elementwise. Difference; integers wrap."""
    return dispatch_binary(SUB, a, b)


@chained
def multiply(a: Any, b: Any, /) -> Tensor:
    """Return ``a * b`` elementwise. Product; integers wrap."""
    return dispatch_binary(MULTIPLY, a, b)


@chained
def divide(a: Any, b: Any, /) -> Tensor:
    """Return ``a / b`` elementwise. Quotient; integers become the default float first."""
    return dispatch_binary(REAL_DIV, a, b)


@chained
def div_no_nan(a: Any, b: Any, /) -> Tensor:
    """Return ``a / b`` elementwise, and 0 where ``b`` is 0.

    Integers become the default float first. The gradients are those of the quotient, and 0
    where ``b`` is 0. (TensorFlow's DivNoNan.)
    """
    return dispatch_binary(DIV_NO_NAN, a, b)


@chained
def floor_divide(a: Any, b: Any, /) -> Tensor:
    """Return ``floor(a / b)`` elementwise.

    Quotient rounded down. An integer divided by 0 gives 0.
    """
    return dispatch_binary(FLOOR_DIV, a, b)


@chained
def remainder(a: Any, b: Any, /) -> Tensor:
    """Return ``a - b * floor(a / b)`` elementwise.

    Remainder with the sign of b. An integer modulo 0 gives 0.
    """
    return dispatch_binary(MOD, a, b)


@chained
def pow(a: Any, b: Any, /) -> Tensor:
    """Return ``a ** b`` elementwise.

    Power. Integers wrap. An integer to a negative power is rounded towards 0; 0 gives 0.
    """
    return dispatch_binary(POW, a, b)


@chained
def maximum(a: Any, b: Any, /) -> Tensor:
    """Return ``max(a, b)`` elementwise. The larger one; NaN if either is NaN."""
    return dispatch_binary(MAXIMUM, a, b)


@chained
def minimum(a: Any, b: Any, /) -> Tensor:
    """Return ``min(a, b)`` elementwise. The smaller one; NaN if either is NaN."""
    return dispatch_binary(MINIMUM, a, b)


@chained
def squared_difference(a: Any, b: Any, /) -> Tensor:
    """Return ``(a - b)**2`` elementwise.

    Square of the difference; integers wrap. (TensorFlow's SquaredDifference.)
    """
    return dispatch_binary(SQUARED_DIFFERENCE, a, b)


@chained
def astype(
    x: Any,
    dtype: Any,
    /,
    *,
    copy: bool = True,
    device: str | None = None,
    saturate: bool = False,
) -> Tensor:
    """Return ``x`` with its elements converted to ``dtype``.

    Floats are truncated towards zero to become integers. Values that do not fit wrap; NaN and
    infinities give 0. Nonzero values become True. Complex numbers lose their imaginary part to
    become real. Floats are rounded to the nearest one of fewer digits, the even one of two; too
    large a number becomes infinite, or NaN in float8 dtypes without infinities.

    Args:
        x: a tensor of numbers or booleans; strings can only stay strings.
        dtype: of the result.
        copy: False returns ``x`` itself if it already has the dtype and the device.
        device: of the result; by default that of ``x``.
        saturate: True gives the least or the greatest finite number of ``dtype`` for those
            beyond it, infinities too.

    Raises:
        DTypeError: strings; complex numbers with ``saturate``.

    """
    wanted = dt.of(dtype, "astype")
    flag(copy, "astype: copy")
    if saturate is not False and flag(saturate, "astype: saturate"):
        return _saturated(x, wanted, device)

    def converted() -> Tensor:
        tensor = x if copy else as_tensor(x, what="astype: x")
        if not copy and tensor.dtype is wanted:
            return tensor
        if wanted is dt.string and getattr(tensor, "dtype", None) is wanted:
            return dispatch_unary(IDENTITY, tensor)  # Cast is of numbers
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
def where(condition: Any, t: Any, e: Any, /) -> Tensor:
    """Return ``t`` where the boolean ``condition`` is True, else ``e``; all three broadcast."""
    return dispatch(SELECT, condition, as_constant(SELECT, 1, t, e), as_constant(SELECT, 2, e, t))

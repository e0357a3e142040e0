"""Elementwise kernels, reductions and scans, and the NumPy expression for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import erf as _erf
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Array = np.ndarray[Any, Any]
    Inputs = Callable[[int, str], list[Any]]


rng = np.random.default_rng(0)
erf = np.vectorize(_erf, otypes=[np.float32])


@dataclass(frozen=True)
class Row:
    """A kernel and the expression for it.

    ``inputs`` makes arrays of about so many elements of a dtype. ``kinds``: initials of dtypes.
    """

    kernel: str
    expression: Callable[..., object]
    inputs: Inputs
    attributes: Callable[[int], dict[str, Any]]
    kinds: str = "f"
    label: str = ""
    only: int = 0  # the only size, if there is just one


def row(
    kernel: str,
    expression: Callable[..., object],
    inputs: Inputs,
    kinds: str = "f",
    label: str = "",
    *,
    only: int = 0,
    **attributes: Any,
) -> Row:
    """Return a row whose attributes do not depend on the size."""
    return Row(kernel, expression, inputs, lambda _size: attributes, kinds, label, only)


def made(kind: str, shape: int | tuple[int, ...], dtype: str) -> Array:
    """Return numbers of a kind: "unit" lie within 0 and 1, "above" beyond 1, "signed" around 0."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        if kind == "signed" and np.dtype(dtype).kind == "i":
            return rng.integers(-100, 100, shape).astype(dtype)
        return rng.integers(1, 30, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if kind == "signed":
        return (3 * rng.normal(size=shape)).astype(dtype)
    return (rng.random(shape) * 0.9 + (0.05 if kind == "unit" else 1.05)).astype(dtype)


def of(*kinds: str) -> Inputs:
    """Return a function that makes one vector of each kind."""
    return lambda size, dtype: [made(kind, size, dtype) for kind in kinds]


def side(size: int, depth: int = 1) -> int:
    """Return the side of squares with ``depth`` elements per position and so many in total."""
    return max(1, round((size // depth) ** 0.5))


def matrix(kind: str = "signed") -> Inputs:
    """Return a function that makes one square matrix."""
    return lambda size, dtype: [made(kind, (side(size), side(size)), dtype)]


_UNARY: dict[str, tuple[Any, str, str]] = {
    "Abs": (np.abs, "signed", "fi"),
    "Acos": (np.arccos, "unit", "f"),
    "Acosh": (np.arccosh, "above", "f"),
    "Asin": (np.arcsin, "unit", "f"),
    "Asinh": (np.arcsinh, "signed", "f"),
    "Atan": (np.arctan, "signed", "f"),
    "Atanh": (np.arctanh, "unit", "f"),
    "Ceil": (np.ceil, "signed", "f"),
    "ComplexAbs": (np.abs, "signed", "c"),
    "Conj": (np.conj, "signed", "c"),
    "Cos": (np.cos, "signed", "f"),
    "Cosh": (np.cosh, "signed", "f"),
    "Elu": (lambda x: np.where(x > 0, x, np.expm1(x)), "signed", "f"),
    "Erf": (erf, "signed", "f"),
    "Exp": (np.exp, "signed", "f"),
    "Expm1": (np.expm1, "signed", "f"),
    "Floor": (np.floor, "signed", "f"),
    "Identity": (lambda x: x, "signed", "f"),
    "Imag": (np.imag, "signed", "c"),
    "Invert": (np.invert, "signed", "ib"),
    "IsFinite": (np.isfinite, "signed", "fi"),
    "IsInf": (np.isinf, "signed", "fi"),
    "IsNan": (np.isnan, "signed", "fi"),
    "Log": (np.log, "unit", "f"),
    "Log10": (np.log10, "unit", "f"),
    "Log1p": (np.log1p, "unit", "f"),
    "Log2": (np.log2, "unit", "f"),
    "LogicalNot": (np.logical_not, "signed", "b"),
    "Neg": (np.negative, "signed", "fi"),
    "OnesLike": (np.ones_like, "signed", "fi"),
    "Real": (np.real, "signed", "c"),
    "Reciprocal": (np.reciprocal, "above", "f"),
    "Relu": (lambda x: np.maximum(x, 0), "signed", "fi"),
    "Relu6": (lambda x: np.minimum(np.maximum(x, 0), 6), "signed", "fi"),
    "Round": (np.rint, "signed", "f"),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), "above", "f"),
    "Selu": (lambda x: 1.05 * np.where(x > 0, x, 1.67 * np.expm1(x)), "signed", "f"),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), "signed", "f"),
    "Sign": (np.sign, "signed", "fi"),
    "SignBit": (np.signbit, "signed", "f"),
    "Sin": (np.sin, "signed", "f"),
    "Sinh": (np.sinh, "signed", "f"),
    "Softplus": (lambda x: np.logaddexp(x, 0), "signed", "f"),
    "Sqrt": (np.sqrt, "unit", "f"),
    "Square": (np.square, "signed", "fi"),
    "Tan": (np.tan, "signed", "f"),
    "Tanh": (np.tanh, "signed", "f"),
    "Trunc": (np.trunc, "signed", "f"),
    "ZerosLike": (np.zeros_like, "signed", "fi"),
}

_BINARY: dict[str, tuple[Any, str, str]] = {
    "Add": (np.add, "signed", "fi"),
    "Atan2": (np.arctan2, "signed", "f"),
    "BitwiseAnd": (np.bitwise_and, "signed", "i"),
    "BitwiseOr": (np.bitwise_or, "signed", "i"),
    "BitwiseXor": (np.bitwise_xor, "signed", "i"),
    "CopySign": (np.copysign, "signed", "f"),
    "DivNoNan": (lambda a, b: np.where(b == 0, 0, a / b), "above", "f"),
    "EluGrad": (lambda dy, y: np.where(y > 0, dy, dy * (y + 1)), "signed", "f"),
    "Equal": (np.equal, "signed", "fi"),
    "FloorDiv": (np.floor_divide, "above", "fi"),
    "Greater": (np.greater, "signed", "fi"),
    "GreaterEqual": (np.greater_equal, "signed", "fi"),
    "Hypot": (np.hypot, "signed", "f"),
    "LeftShift": (np.left_shift, "above", "i"),
    "Less": (np.less, "signed", "fi"),
    "LessEqual": (np.less_equal, "signed", "fi"),
    "LogAddExp": (np.logaddexp, "signed", "f"),
    "LogicalAnd": (np.logical_and, "signed", "b"),
    "LogicalOr": (np.logical_or, "signed", "b"),
    "LogicalXor": (np.logical_xor, "signed", "b"),
    "Maximum": (np.maximum, "signed", "fi"),
    "Minimum": (np.minimum, "signed", "fi"),
    "Mod": (np.remainder, "above", "fi"),
    "Multiply": (np.multiply, "signed", "fi"),
    "NextAfter": (np.nextafter, "signed", "f"),
    "NotEqual": (np.not_equal, "signed", "fi"),
    "Pow": (np.power, "above", "fi"),
    "Prelu": (lambda x, alpha: np.where(x < 0, x * alpha, x), "signed", "f"),
    "RealDiv": (np.true_divide, "above", "f"),
    "RightShift": (np.right_shift, "above", "i"),
    "SquaredDifference": (lambda a, b: np.square(a - b), "signed", "fi"),
    "Sub": (np.subtract, "signed", "fi"),
}

# Name, function, dtypes, and the name of the axis attribute.
_REDUCTIONS: tuple[tuple[str, Any, str, str], ...] = (
    ("Sum", np.sum, "fi", "axis"),
    ("Mean", np.mean, "f", "axis"),
    ("Prod", np.prod, "fi", "axis"),
    ("Max", np.max, "fi", "reduction_indices"),
    ("Min", np.min, "fi", "axis"),
    ("Any", np.any, "b", "axis"),
    ("All", np.all, "b", "axis"),
)


def elementwise() -> Iterator[Row]:
    """Yield the rows."""
    for name, (function, kind, kinds) in _UNARY.items():
        yield row(name, function, of(kind), kinds)
    for name, (function, kind, kinds) in _BINARY.items():
        yield row(name, function, of(kind, kind), kinds)
    yield from _mixed()
    for name, function, kinds, axis in _REDUCTIONS:
        yield row(name, function, of("signed"), kinds, "of all")
        for at, what in ((0, "of columns"), (1, "of rows")):
            by_axis = partial(function, axis=at)
            yield row(name, by_axis, matrix(), kinds, what, **{axis: (at,)})
    yield from _scans()


def _mixed() -> Iterator[Row]:
    yield row("AddN", lambda xs: xs[0] + xs[1] + xs[2], lambda n, d: [of(*["signed"] * 3)(n, d)])
    yield row("Cast", lambda x: x.astype(np.int32), of("signed"), "fb", dtype="int32")
    yield row("Cast", lambda x: x.astype(np.float32), of("signed"), "ib", "up", dtype="float32")
    yield row(
        "ClipByValue",
        lambda x: np.clip(x, -1, 2),
        of("signed"),
        "fi",
        clip_value_min=-1,
        clip_value_max=2,
    )
    yield row("Complex", lambda a, b: a + 1j * b, of("signed", "signed"))
    yield row("LeakyRelu", lambda x: np.where(x > 0, x, x * np.float32(0.2)), of("signed"))
    yield row("Select", np.where, _chosen, "fi")
    yield row("Step", lambda x: np.where(x > 0, np.float32(1), np.float32(0)), of("signed"))
    yield row("Add", np.add, _row_and_column, "f", "row and column")
    yield row("Add", np.add, lambda n, d: [*of("signed")(n, d), made("signed", (), d)], "f", "one")


def _chosen(size: int, dtype: str) -> list[Array]:
    return [made("unit", size, "bool"), *of("signed", "signed")(size, dtype)]


def _row_and_column(size: int, dtype: str) -> list[Array]:
    return [made("signed", (side(size), 1), dtype), made("signed", (1, side(size)), dtype)]


def _scans() -> Iterator[Row]:
    for name, function in (("Cumsum", np.cumsum), ("Cumprod", np.cumprod)):
        for at, what in ((0, "down columns"), (1, "along rows")):
            yield row(name, partial(function, axis=at), matrix("unit"), "fi", what, axis=at)
        yield row(name, function, of("unit"), "fi", "of all")
    yield row("Cumsum", _backwards, matrix(), "f", "reverse", axis=1, reverse=True)
    yield row("Cumsum", _exclusive, matrix(), "f", "exclusive", axis=1, exclusive=True)
    for name, find in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        for at, what in ((0, "of columns"), (1, "of rows")):
            yield row(name, partial(find, axis=at), matrix(), "fi", what, axis=at)
    yield row("Softmax", _softmax, matrix())
    yield row("LogSoftmax", _log_softmax, matrix())


def _backwards(x: Array) -> Array:
    return np.cumsum(x[:, ::-1], axis=1)[:, ::-1]


def _exclusive(x: Array) -> Array:
    sums = np.zeros_like(x)
    np.cumsum(x[:, :-1], axis=1, out=sums[:, 1:])
    return sums


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

"""Operators that compute each element alone."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import to_numpy_dtype

if TYPE_CHECKING:
    from types import ModuleType

# Names of the array API, which NumPy and tensorplug share.
_SHARED: Final = {
    "Abs": "abs", "Neg": "negative", "Sign": "sign", "Floor": "floor", "Ceil": "ceil",
    "Round": "round", "Sqrt": "sqrt", "Exp": "exp", "Log": "log",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan",
    "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh",
    "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh",
    "IsNaN": "isnan", "Not": "logical_not", "BitwiseNot": "bitwise_invert",
    "Add": "add", "Sub": "subtract", "Mul": "multiply",
    "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal",
    "Less": "less", "LessOrEqual": "less_equal",
    "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor",
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
}  # fmt: skip


def _of_namespace(name: str) -> Any:
    def function(*inputs: Any, xp: ModuleType) -> Any:
        return getattr(xp, name)(*inputs)

    return function


for _op_type, _name in _SHARED.items():
    rule(_op_type)(_of_namespace(_name))

# Activations whose meaning is tensorplug's.
for _op_type, _function in {
    "Reciprocal": tp.reciprocal,
    "Erf": tp.erf,
    "Relu": tp.nn.relu,
    "Sigmoid": tp.nn.sigmoid,
    "Softplus": tp.nn.softplus,
}.items():
    rule(_op_type)(_function)


@rule("Where")
def where(condition: Any, x: Any, y: Any, *, xp: ModuleType) -> Any:
    return xp.where(condition, x, y)


@rule("Max")
def maximum(*inputs: Any, xp: ModuleType) -> Any:
    return reduce(xp.maximum, inputs)


@rule("Min")
def minimum(*inputs: Any, xp: ModuleType) -> Any:
    return reduce(xp.minimum, inputs)


@rule("Div")
def divide(a: Any, b: Any, *, xp: ModuleType) -> Any:
    """Integers are divided towards zero."""
    if np.dtype(to_numpy_dtype(str(a.dtype))).kind not in "iu":
        return xp.divide(a, b)
    quotient = xp.floor_divide(a, b)
    inexact = xp.logical_and(quotient < 0, xp.not_equal(quotient * b, a))
    return quotient + xp.astype(inexact, a.dtype)

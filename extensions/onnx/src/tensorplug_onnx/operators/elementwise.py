"""Operators that compute each element alone."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.rules import lookup, rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from tensorplug_onnx.rules import Rule

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


# Up to version 6 of the opset, an attribute says where the axes of the second operand lie.
_ALIGNED: Final = {
    "Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less",
}  # fmt: skip

for _op_type, _name in _SHARED.items():
    rule(_op_type, since=7 if _op_type in _ALIGNED else 1)(_of_namespace(_name))

# Activations whose meaning is tensorplug's.
for _op_type, _function in {
    "Reciprocal": tp.reciprocal,
    "Erf": tp.erf,
    "Relu": tp.nn.relu,
    "Sigmoid": tp.nn.sigmoid,
    "Softplus": tp.nn.softplus,
}.items():
    rule(_op_type)(_function)


def is_integer(x: Any) -> bool:
    """Return whether the elements are integers."""
    return "int" in str(x.dtype)


@rule("Where")
def where(condition: Any, x: Any, y: Any, *, xp: ModuleType) -> Any:
    return xp.where(condition, x, y)


@rule("Max")
def maximum(*inputs: Any, xp: ModuleType) -> Any:
    return reduce(xp.maximum, inputs)


@rule("Min")
def minimum(*inputs: Any, xp: ModuleType) -> Any:
    return reduce(xp.minimum, inputs)


@rule("Sum")
def add_all(*inputs: Any, xp: ModuleType) -> Any:
    return reduce(xp.add, inputs)


@rule("Mean")
def mean(*inputs: Any, xp: ModuleType) -> Any:
    return reduce(xp.add, inputs) / len(inputs)


@rule("Div", since=7)
def divide(a: Any, b: Any, *, xp: ModuleType) -> Any:
    """Integers are divided towards zero."""
    if not is_integer(a):
        return xp.divide(a, b)
    quotient = xp.floor_divide(a, b)
    inexact = xp.logical_and(quotient < 0, xp.not_equal(quotient * b, a))
    return quotient + xp.astype(inexact, a.dtype)


@rule("Mod")
def modulo(a: Any, b: Any, *, fmod: int = 0, xp: ModuleType) -> Any:
    """The result has the sign of b; with fmod, as in C, that of a."""
    if not fmod:
        return xp.remainder(a, b)
    if not is_integer(a):
        return xp.copysign(xp.remainder(xp.abs(a), xp.abs(b)), a)
    found = xp.remainder(a, b)
    other_sign = xp.logical_and(found != 0, xp.not_equal(found < 0, a < 0))
    return xp.where(other_sign, found - b, found)


@rule("Pow", since=7)
def power(x: Any, exponent: Any, *, xp: ModuleType) -> Any:
    """The result has the dtype of x."""
    if x.dtype == exponent.dtype:
        return xp.pow(x, exponent)
    if not is_integer(x):
        return xp.pow(x, xp.astype(exponent, x.dtype))
    # An error in the last place, rounded towards zero, would be off by one: float32 is too short.
    wide = xp.int64 if is_integer(exponent) else xp.float64
    return xp.astype(xp.pow(xp.astype(x, wide), xp.astype(exponent, wide)), x.dtype)


def _aligned(rule_of_7: Rule) -> Callable[..., Any]:
    """Return the rule of version 6, whose result has the shape of the first operand."""

    def aligned(
        a: Any, b: Any, *, axis: int | None = None, broadcast: int = 0, xp: ModuleType
    ) -> Any:
        if broadcast and axis is not None:
            b = xp.reshape(b, (*b.shape, *[1] * (a.ndim - axis % a.ndim - b.ndim)))
        found = rule_of_7.function(a, b, xp=xp)
        if found.shape != a.shape or not (broadcast or b.shape == a.shape):
            raise ValueError(f"shapes {list(a.shape)} and {list(b.shape)}, broadcast={broadcast}")
        return found

    return aligned


for _op_type in _ALIGNED:
    _newer = lookup(_op_type, "", 7)
    assert _newer is not None
    rule(_op_type)(_aligned(_newer))


@rule("BitShift")
def shift(x: Any, count: Any, *, direction: str, xp: ModuleType) -> Any:
    shifts = {"LEFT": xp.bitwise_left_shift, "RIGHT": xp.bitwise_right_shift}
    if direction not in shifts:
        raise ValueError(f"attribute 'direction' is {direction!r}, must be 'LEFT' or 'RIGHT'")
    return shifts[direction](x, count)


_LARGEST: Final = float(np.finfo(np.float32).max)


@rule("Clip")
def clip_to_attributes(
    x: Any, *, min: float = -_LARGEST, max: float = _LARGEST, xp: ModuleType
) -> Any:
    return xp.clip(x, min, max)


@rule("Clip", since=11)
def clip(x: Any, least: Any = None, most: Any = None, *, xp: ModuleType) -> Any:
    """The upper limit wins over the lower one."""
    if least is not None:
        x = xp.maximum(x, _scalar(least, xp))
    return x if most is None else xp.minimum(x, _scalar(most, xp))


def _scalar(limit: Any, xp: ModuleType) -> Any:
    if limit.size != 1:
        raise ValueError(f"a limit has shape {list(limit.shape)}, must be a scalar")
    return xp.reshape(limit, ()) if limit.ndim else limit


@rule("IsInf")
def isinf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1, xp: ModuleType) -> Any:
    found = xp.isinf(x)
    if not detect_negative:
        found = xp.logical_and(found, x > 0)
    return found if detect_positive else xp.logical_and(found, x < 0)


def _expm1_below_0(x: Any) -> Any:
    return tp.expm1(tp.minimum(x, 0))  # without the limit, gradients of large x are inf * 0


@rule("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    return tp.where(x > 0, x, alpha * _expm1_below_0(x))


@rule("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    return tp.where(x > 0, x, alpha * _expm1_below_0(x / alpha))


@rule("Selu")
def selu(x: Any, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Any:
    return gamma * tp.where(x > 0, x, alpha * _expm1_below_0(x))


@rule("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.009999999776482582) -> Any:
    return tp.nn.leaky_relu(x, alpha)


@rule("PRelu")
def prelu_of_channels(x: Any, slope: Any) -> Any:
    """Up to version 6, there is one slope, or one for each channel."""
    return prelu(x, slope if slope.size == 1 else tp.reshape(slope, (-1, *[1] * (x.ndim - 2))))


@rule("PRelu", since=7)
def prelu(x: Any, slope: Any) -> Any:
    found = tp.where(x < 0, x * slope, x) if is_integer(x) else tp.nn.prelu(x, slope)
    if found.shape != x.shape:
        raise ValueError(f"a slope of shape {list(slope.shape)} for {list(x.shape)}")
    return found


@rule("ThresholdedRelu")
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    return tp.where(x > alpha, x, 0)


@rule("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.20000000298023224, beta: float = 0.5) -> Any:
    return tp.clip(alpha * x + beta, 0, 1)


@rule("HardSwish")
def hard_swish(x: Any) -> Any:
    return x * hard_sigmoid(x, alpha=1 / 6)


@rule("Softsign")
def softsign(x: Any) -> Any:
    return x / (1 + tp.abs(x))


@rule("Gelu")
def gelu(x: Any, *, approximate: str = "none") -> Any:
    if approximate not in ("none", "tanh"):
        raise ValueError(f"attribute 'approximate' is {approximate!r}, must be 'none' or 'tanh'")
    return tp.nn.gelu(x, approximate=approximate == "tanh")


@rule("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    return x * tp.nn.sigmoid(alpha * x)


@rule("Mish")
def mish(x: Any) -> Any:
    return x * tp.tanh(tp.nn.softplus(x))


@rule("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    shift = tp.asarray(bias).astype(x.dtype)
    return tp.where(x < -lambd, x + shift, tp.where(x > lambd, x - shift, 0))

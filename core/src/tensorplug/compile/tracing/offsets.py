"""How far apart two integers of a trace are: one is the other plus a constant, or nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract import dtypes as dt
from tensorplug.ops import movement
from tensorplug.ops.elementwise import arithmetic, casting

if TYPE_CHECKING:
    from tensorplug.compile.tracing.calls import Call
    from tensorplug.dispatch.tensor import Tensor

_SAME: Final = frozenset({casting.CAST, movement.IDENTITY, movement.RESHAPE})
_SIGNS: Final = {arithmetic.ADD: 1, arithmetic.SUB: -1}


def find_distance(start: Tensor, stop: Tensor) -> int | None:
    """Return ``stop - start`` of two tensors of rank 0; None if it depends on data."""
    (base, first), (other, last) = _resolve(start), _resolve(stop)
    return last - first if base is other else None


def _resolve(tensor: Tensor) -> tuple[Any, int]:
    """Return a value and the constant that is added to it; None and a constant of constants."""
    trace: Any = tensor._placement.device.interpreter
    if trace.describe(tensor) is None:
        return None, int(tensor)
    value: Any = tensor._buffer
    offset = 0
    while isinstance(value, Value):
        outside = trace.find_outside(value)
        if outside is not None:
            trace, value = outside
            continue
        call = next((call for call in reversed(trace.calls) if value in call.outputs), None)
        step = None if call is None else _step(call)
        if step is None:
            return value, offset
        value, by = step
        offset += by
    number = _number(value)
    return (value, offset) if number is None else (None, offset + number)


def _step(call: Call) -> tuple[Any, int] | None:
    """Return the operand that a call adds a number to, and the number; None for other calls."""
    spec, operands = call.plan.spec, call.operands()
    if any(operand.placement.type.dtype not in dt.INTEGER for operand in operands):
        return None
    if spec in _SAME:
        return operands[0], 0
    if spec not in _SIGNS:
        return None
    a, b = operands
    by = _number(b)
    if by is not None:
        return a, _SIGNS[spec] * by
    by = _number(a) if spec is arithmetic.ADD else None
    return None if by is None else (b, by)


def _number(operand: Any) -> int | None:
    """Return the integer that a constant holds; None if it holds several, or is none."""
    number: Any = operand.number() if isinstance(operand, Constant) else None
    return None if number is None else int(number)

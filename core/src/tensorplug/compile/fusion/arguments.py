"""Numbers that follow from sizes are inputs of groups, so that groups serve all sizes (ADR 76).

These are divisors, such as that of a mean, and what a trace has computed of sizes, or repeated:
all elements of the gradient of a mean are one over their number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.tracing.values import Constant
from tensorplug.contract import dtypes as dt
from tensorplug.engine.operands import scalar_constant
from tensorplug.ops.elementwise import arithmetic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.device import Device

_DTYPES: Final = frozenset({dt.float32, dt.float64})
_COMMON: Final = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2})  # what compilers make use of
_ARITHMETIC: Final = frozenset(
    {arithmetic.ADD, arithmetic.SUB, arithmetic.MULTIPLY, arithmetic.REAL_DIV}
)
"""Kernels whose expressions do not depend on whether an operand is a constant."""


def find_arguments(calls: Iterable[Call]) -> dict[Constant, Constant]:
    """Return the constants that are arguments of a program's groups, each with its element."""
    elements = {each: find_element(each, divides=use) for each, use in find_uses(calls).items()}
    found = {constant: element for constant, element in elements.items() if element is not None}
    alone = {element for element in found.values() if element not in elements}
    return found | {element: element for element in alone}


def find_uses(calls: Iterable[Call]) -> dict[Constant, bool | None]:
    """Return the constants of calls: whether each is a divisor; None if it cannot be an argument.

    It cannot if one call makes use of its number.
    """
    uses: dict[Constant, bool | None] = {}
    for call in calls:
        spec = call.plan.spec
        for at, operand in enumerate(call.inputs):
            for each in operand if isinstance(operand, list) else (operand,):
                if each.__class__ is Constant:
                    before = uses.get(each, False)
                    divides = spec is arithmetic.REAL_DIV and at == 1
                    repeats = spec in _ARITHMETIC and each.uniform is not None
                    is_free = divides or repeats or each.made is not None
                    uses[each] = before or divides if is_free and before is not None else None
    return uses


def find_element(constant: Constant, *, divides: bool | None) -> Constant | None:
    """Return what all elements of a constant are copies of; None if its number says something.

    ``divides``: its use, as in ``find_uses``.
    """
    if divides is None or constant.placement.type.dtype not in _DTYPES:
        return None
    element: Any = constant
    while element.__class__ is Constant and element.placement.type.size != 1:
        element = element.uniform
    if element.__class__ is not Constant:
        return None
    number = element.number()
    assert isinstance(number, int | float), "as elements of floats are"
    # Compilers turn divisions by powers of two into products, which are exact.
    is_power = divides and math.frexp(number)[0] in (0.5, -0.5)
    return None if number in _COMMON or is_power else element


def make_count(device: Device, sizes: Shape, dtype: DType) -> Constant:
    """Return a number of elements as a constant, which the device keeps."""
    count = float(math.prod(sizes))
    tensor = scalar_constant(device, arithmetic.REAL_DIV, 1, count, dtype)
    return Constant(tensor._buffer, tensor._placement, count)

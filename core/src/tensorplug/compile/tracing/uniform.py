"""Constants of a program all of whose elements are one number, such as the gradient of a sum.

Loops over them have the number in the place of a read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.tracing.values import Constant
from tensorplug.ops import creation, movement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.compile.tracing.values import Value
    from tensorplug.contract.dtypes import Scalar
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan


OF_TYPES: Final = {creation.ONES_LIKE: creation.ones, creation.ZEROS_LIKE: creation.zeros}
"""Kernels whose results depend only on the types of their inputs."""

_REPEATING: Final = frozenset({movement.BROADCAST_TO, movement.RESHAPE, movement.EXPAND_DIMS})
"""Kernels each element of whose result is an element of their input."""


class Uniform:
    """What is known of the buffers that a trace has computed."""

    def __init__(self) -> None:
        # By identity; the buffers stay alive, so that no other one takes the place of one.
        self._known: dict[int, tuple[Any, Scalar | Constant]] = {}

    def note(
        self, plan: Plan, operands: Sequence[Value | Constant], outputs: Sequence[Tensor]
    ) -> None:
        """Remember a result of ``plan`` on constants if all its elements are the same number."""
        uniform = find_uniform(plan, operands)
        if uniform is not None:
            buffer = outputs[0]._buffer
            self._known[id(buffer)] = buffer, uniform

    def find(self, buffer: Any) -> Scalar | Constant | None:
        """Return what the elements of a buffer are: as ``Constant.uniform``."""
        return self._known.get(id(buffer), (buffer, None))[1]


def find_uniform(plan: Plan, operands: Sequence[Value | Constant]) -> Scalar | Constant | None:
    """Return what all elements of a result of ``plan`` on constants are, if that is one number."""
    if plan.spec is creation.FILL:
        number: Scalar = plan.attributes["value"]
        return number
    if plan.spec not in _REPEATING:
        return None
    (source,) = operands
    assert isinstance(source, Constant)
    return source if source.placement.type.size == 1 else source.uniform

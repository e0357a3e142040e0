"""Constants that a trace computes: whose elements are one number, or that follow from sizes.

The gradient of a mean is both. Loops over one number have it in the place of a read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.tracing.values import Constant, Made
from tensorplug.ops import creation, movement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.values import Value
    from tensorplug.contract.dtypes import Scalar
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan


OF_TYPES: Final = {creation.ONES_LIKE: creation.ones, creation.ZEROS_LIKE: creation.zeros}
"""Kernels whose results depend only on the types of their inputs."""

_REPEATING: Final = frozenset({movement.BROADCAST_TO, movement.RESHAPE, movement.EXPAND_DIMS})
"""Kernels each element of whose result is an element of their input."""


class Computed:
    """What is known of the buffers that a trace has computed: as ``Constant`` says it."""

    def __init__(self) -> None:
        # By identity; the buffers stay alive, so that no other one takes the place of one.
        self._known: dict[int, tuple[Any, Scalar | Constant | None, Made | None]] = {}

    def note(
        self, call: Call, outputs: Sequence[Tensor], constants: Mapping[int, Constant]
    ) -> bool:
        """Remember what is known of the results of a call on constants.

        ``constants``: those of the trace, by the identities of their buffers. Return False if the
        call returned one of them, as it may not at other sizes.
        """
        operands: list[Any] = call.operands()
        uniform = find_uniform(call.plan, operands)
        follows = call.plan.extents is not None or any(each.made for each in operands)
        fits = True
        for at, output in enumerate(outputs):
            buffer, made = output._buffer, Made(call.plan, call.inputs, at) if follows else None
            known = constants.get(id(buffer))
            fits = fits and (known is None or not (follows or known.made))
            if uniform is not None or follows:
                self._known[id(buffer)] = buffer, uniform, made
        return fits

    def find(self, buffer: Any) -> tuple[Scalar | Constant | None, Made | None]:
        """Return ``uniform`` and ``made`` of a constant."""
        return self._known.get(id(buffer), (buffer, None, None))[1:]


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

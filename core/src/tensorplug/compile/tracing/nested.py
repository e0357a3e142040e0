"""Calls that run programs: loops and branches inside a compiled function.

Such a call is recorded like one of a kernel. Its plan has sub-programs in the place of a kernel,
which the core runs on buffers, without Python functions of the user between the kernels.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.owner import Owner
from tensorplug.engine.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorplug.compile.tracing.trace import Call
    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import How
    from tensorplug.engine.registry import State


_CORE: Final = Owner("tensorplug")


class NestedPlan(Plan):
    """The plan of a call that runs sub-programs, of one variadic input and output.

    ``parts``: the programs by name, once the plan is prepared.
    """

    __slots__ = ("parts", "ready", "types")

    def __init__(
        self,
        spec: KernelSpec,
        attributes: Mapping[str, Any],
        device: Device,
        types: Sequence[TensorType],
        state: State,
    ) -> None:
        known, outputs = spec.resolve([list(types)], attributes)
        super().__init__(spec, known, device, [list(types)], outputs, state)
        self.how: How = "programs"
        self.owner: Owner | None = _CORE
        self.takes_buffers = self.published = True  # the kernels inside are checked
        self.parts: dict[str, Any] = {}
        self.ready: bool = False
        self.types: list[TensorType] = list(types)  # of the operands

    def prepare(self, engine: Engine, make: Callable[..., Any]) -> None:
        """Set ``call`` and ``parts``; ``make`` makes programs executable."""
        if not self.ready:
            self.ready = True
            self.call: Callable[..., Any] = self.prepared(engine, make)

    @abstractmethod
    def prepared(
        self, engine: Engine, make: Callable[..., Any]
    ) -> Callable[[list[Buffer]], list[Buffer]]:
        """Return the function that computes the call, and fill ``parts``."""

    def needed(self) -> int:
        """Return the bytes that the programs take besides the operands of the call."""
        memories = [part.memory() for part in self.parts.values()]
        return max([memory.peak - memory.arguments for memory in memories], default=0)

    @abstractmethod
    def prune(self, call: Call, needed: Collection[Any]) -> Call:
        """Return a call like ``call``, of this plan, without outputs that are not ``needed``."""

    def derive(
        self,
        call: Call,
        changes: Mapping[str, Any],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> Call:
        """Return a call with other attributes, and of the inputs and outputs some alone."""
        (operands,) = call.inputs
        assert isinstance(operands, list)
        kept = [operands[at] for at in inputs]
        types = [operand.placement.type for operand in kept]
        attributes = {**self.attributes, **changes}
        plan = type(self)(self.spec, attributes, self.device, types, self.state)
        return replace(
            call, plan=plan, inputs=[kept], outputs=[call.outputs[at] for at in outputs]
        )

    def extend(self, call: Call, changes: Mapping[str, Any], more: Sequence[Any]) -> Call:
        """Return a call with other attributes, and with ``more`` operands behind the others."""
        (operands,) = call.inputs
        assert isinstance(operands, list)
        types = [*self.types, *(operand.placement.type for operand in more)]
        attributes = {**self.attributes, **changes}
        plan = type(self)(self.spec, attributes, self.device, types, self.state)
        return replace(call, plan=plan, inputs=[[*operands, *more]])

"""Calls that run programs: loops and branches inside a compiled function.

Such a call is recorded like one of a kernel. Its plan has sub-programs in the place of a kernel,
which the core runs on buffers, without Python functions of the user between the kernels.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.owner import Owner
from tensorplug.dispatch.context import current_context
from tensorplug.engine.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import How
    from tensorplug.engine.registry import State


CORE: Final = Owner("tensorplug")


class NestedPlan(Plan):
    """The plan of a call that runs sub-programs, of one variadic input and output.

    ``parts``: the programs by name, once the plan is prepared. ``whole``: whether the backend runs
    them all in one call.
    """

    __slots__ = ("parts", "ready", "types", "whole")

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
        self.owner: Owner | None = CORE
        self.takes_buffers = self.published = True  # the kernels inside are checked
        self.parts: dict[str, Any] = {}
        self.ready: bool = False
        self.whole: bool = False
        self.types: list[TensorType] = list(types)  # of the operands

    def prepare(self, engine: Engine, make: Callable[..., Any], *, fuses: bool) -> None:
        """Set ``call`` and ``parts``.

        ``make`` makes programs executable. ``fuses``: whether the backend may compute several
        calls as one.
        """
        if not self.ready:
            self.ready = True
            whole = self.compiled(engine) if fuses else None
            self.whole = whole is not None
            self.call: Callable[..., Any] = (
                self.prepared(engine, make)
                if whole is None
                else self._choosing(engine, whole, partial(make, fuses=False))
            )

    def _choosing(
        self, engine: Engine, whole: Callable[..., Any], make: Callable[..., Any]
    ) -> Callable[[list[Buffer]], list[Buffer]]:
        """Return the function that calls ``whole``, or runs kernel by kernel for observers."""
        apart = cache(lambda: self.prepared(engine, make))

        def run(operands: list[Buffer]) -> list[Buffer]:
            if current_context().observers or engine.observers:
                return apart()(operands)
            return list(whole(*operands))

        return run

    def compiled(self, engine: Engine) -> Callable[..., Any] | None:  # noqa: ARG002  # for loops
        """Return the backend's function for the call as a whole, and fill ``parts``; or None."""
        return None

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

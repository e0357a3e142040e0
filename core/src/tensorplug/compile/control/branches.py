"""Branches as a call of a program: ``Switch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.control.sub_programs import SubProgram, make_part
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.contract.backend import Buffer
    from tensorplug.engine.engine import Engine


def _infer_switch(
    operands: list[TensorType],  # noqa: ARG001  # those of the branches
    *,
    branches: tuple[SubProgram, ...],
) -> tuple[TensorType, ...]:
    return tuple(branches[0].types)


_AS_IT_IS: Final = Attribute(lambda value, _: value)

SWITCH: Final = KernelSpec(
    "Switch",
    ("operands[]",),  # the number of the branch, then what the branches take
    _infer_switch,
    # Each branch takes the operands at its places.
    attributes={"branches": _AS_IT_IS, "takes": _AS_IT_IS},
    outputs=("outs[]",),
)


class SwitchPlan(NestedPlan):
    """One of several sub-programs: the one with the number in the first operand."""

    __slots__ = ()

    def prune(self, call: Call, needed: Collection[Any]) -> Call:
        """Drop results that nothing needs, and what only they depend on."""
        places = [at for at, output in enumerate(call.outputs) if output in needed]
        branches = [branch.returning(places) for branch in self.attributes["branches"]]
        used = [branch.used() for branch in branches]
        takes = [
            [old[at] for at in places]
            for old, places in zip(self.attributes["takes"], used, strict=True)
        ]
        inputs = sorted({0, *[at for taken in takes for at in taken]})
        if len(places) == len(call.outputs) and len(inputs) == len(call.operands()):
            return call
        number = {at: new for new, at in enumerate(inputs)}
        changes = {
            "branches": tuple(
                branch.taking(own) for branch, own in zip(branches, used, strict=True)
            ),
            "takes": tuple(tuple(number[at] for at in taken) for taken in takes),
        }
        return self.derive(call, changes, inputs, places)

    def prepared(
        self, engine: Engine, make: Callable[..., Any]
    ) -> Callable[[list[Buffer]], list[Buffer]]:
        """Return the choice of a branch; a number that none has means the nearest one."""
        parts = [
            (make_part(engine, make, self, f"branch {at}", branch), takes)
            for at, (branch, takes) in enumerate(
                zip(self.attributes["branches"], self.attributes["takes"], strict=True)
            )
        ]
        read, last = self.device.read, len(parts) - 1

        def run(operands: list[Buffer]) -> list[Buffer]:
            begin, takes = parts[min(max(int(read(operands[0])), 0), last)]
            return begin()([operands[at] for at in takes])

        return run

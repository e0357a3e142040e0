"""Loops as calls of a program: ``Scan``, of a known number of steps, and ``While``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.control.sub_programs import SubProgram, make_part
from tensorplug.compile.control.whole_loops import compile_scan, compile_while
from tensorplug.compile.programs.program import on_buffers
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.compile.tracing.values import Value
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.ops import joining
from tensorplug.ops.indexing import slicing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.contract.backend import Buffer
    from tensorplug.engine.engine import Engine


def _infer_scan(
    operands: list[TensorType],  # noqa: ARG001  # those of the body
    *,
    body: SubProgram,
    carries: int,
    length: int,
) -> tuple[TensorType, ...]:
    types = body.types
    return (
        *types[:carries],
        *[TensorType(type_.dtype, (length, *type_.shape)) for type_ in types[carries:]],
    )


def _infer_while(operands: list[TensorType], *, body: SubProgram) -> tuple[TensorType, ...]:  # noqa: ARG001  # those of the body
    return tuple(body.types)


_AS_IT_IS: Final = Attribute(lambda value, _: value)

SCAN: Final = KernelSpec(
    "Scan",
    ("operands[]",),  # carries, then sequences, then values that are the same in each step
    _infer_scan,
    attributes=dict.fromkeys(("body", "carries", "sequences", "length", "reverse"), _AS_IT_IS),
    outputs=("outs[]",),  # carries, then what the steps give, stacked
)
WHILE: Final = KernelSpec(
    "While",
    ("operands[]",),  # carries, then values that are the same in each step
    _infer_while,
    # The condition and the body take the operands at the places of their names.
    attributes=dict.fromkeys(("condition", "body", "asks", "takes", "most"), _AS_IT_IS),
    outputs=("outs[]",),  # carries
)


class ScanPlan(NestedPlan):
    """A loop with a known number of steps, over slices of its sequences."""

    __slots__ = ()

    def prune(self, call: Call, needed: Collection[Any]) -> Call:
        """Drop results that nothing needs, and what only they depend on."""
        body, count = self.attributes["body"], self.attributes["carries"]
        outputs = [at for at, output in enumerate(call.outputs) if output in needed]
        while True:  # a carry may be needed by another one in the next step
            part = body.returning(outputs)
            inputs = part.used()
            more = {at for at in inputs if at < count}.difference(outputs)
            if not more:
                break
            outputs = sorted({*outputs, *more})
        kept = sum(at < count for at in outputs)
        inputs = sorted({*inputs, *outputs[:kept]})
        if len(outputs) == len(call.outputs) and len(inputs) == len(body.inputs):
            return call
        end = count + self.attributes["sequences"]
        changes = {
            "body": part.taking(inputs),
            "carries": kept,
            "sequences": sum(count <= at < end for at in inputs),
        }
        return self.derive(call, changes, inputs, outputs)

    def compiled(self, engine: Engine) -> Callable[..., Any] | None:
        """Return the backend's function for all steps."""
        return compile_scan(engine, self)

    def prepared(
        self, engine: Engine, make: Callable[..., Any]
    ) -> Callable[[list[Buffer]], list[Buffer]]:
        """Return the loop."""
        body, count = self.attributes["body"], self.attributes["carries"]
        length, end = self.attributes["length"], count + self.attributes["sequences"]
        rows = [self._splitter(engine, type_) for type_ in self.types[count:end]]
        columns = [self._joiner(engine, type_) for type_ in body.types[count:]]
        begin = make_part(engine, make, self, "body", body, donated=count)
        steps = range(length - 1, -1, -1) if self.attributes["reverse"] else range(length)

        def run(operands: list[Buffer]) -> list[Buffer]:
            step, results = begin(), operands[:count]
            slices = [split(x) for split, x in zip(rows, operands[count:end], strict=True)]
            fixed = operands[end:]
            operands.clear()  # so that the first step may overwrite carries, too
            stacks: list[list[Buffer]] = [[None] * length for _ in columns]
            for at in steps:
                arguments = [*results[:count], *[x[at] for x in slices], *fixed]
                del results  # the last reference to carries that the step may overwrite
                results = step(arguments)
                for stack, buffer in zip(stacks, results[count:], strict=True):
                    stack[at] = buffer
            joined = [join(stack) for join, stack in zip(columns, stacks, strict=True)]
            return [*results[:count], *joined]

        return run

    def needed(self) -> int:
        """Return the bytes of a step, and of the results before they are stacked."""
        stacked = self.outputs[self.attributes["carries"] :]
        return super().needed() + sum(placement.type.nbytes for placement in stacked)

    def _splitter(self, engine: Engine, type_: TensorType) -> Callable[[Buffer], Sequence[Buffer]]:
        """Return a function that gives the slices of a sequence."""
        plan, _ = engine.explain(slicing.UNPACK, self.device, [type_], {"axis": 0})
        return on_buffers(plan, [Value(self.device.placement(type_))])

    def _joiner(self, engine: Engine, type_: TensorType) -> Callable[[list[Buffer]], Buffer]:
        """Return a function that stacks what the steps give."""
        types = [type_] * self.attributes["length"]
        plan, _ = engine.explain(joining.PACK, self.device, [types], {"axis": 0})
        return on_buffers(plan, [[Value(self.device.placement(type_))] * len(types)])


class WhilePlan(NestedPlan):
    """A loop that ends when its condition does not hold, or after ``most`` steps."""

    __slots__ = ()

    def prune(self, call: Call, needed: Collection[Any]) -> Call:
        """Drop carries that neither the condition nor a needed one depends on."""
        known = self.attributes
        body, asks, takes = known["body"], known["asks"], known["takes"]
        condition: SubProgram = known["condition"]
        count = len(call.outputs)
        outputs = {at for at, output in enumerate(call.outputs) if output in needed}
        asked = [asks[at] for at in condition.used()]
        outputs |= {at for at in asked if at < count}
        while True:
            places = sorted(outputs)
            part = body.returning(places)
            taken = [takes[at] for at in part.used()]
            more = {at for at in taken if at < count} - outputs
            if not more:
                break
            outputs |= more
        inputs = sorted({*outputs, *asked, *taken})
        if len(inputs) == len(call.operands()):
            return call
        number = {at: new for new, at in enumerate(inputs)}
        changes = {
            "condition": condition.taking(condition.used()),
            "body": part.taking(part.used()),
            "asks": tuple(number[at] for at in asked),
            "takes": tuple(number[at] for at in taken),
        }
        return self.derive(call, changes, inputs, places)

    def compiled(self, engine: Engine) -> Callable[..., Any] | None:
        """Return the backend's function for all steps."""
        return compile_while(engine, self)

    def prepared(
        self, engine: Engine, make: Callable[..., Any]
    ) -> Callable[[list[Buffer]], list[Buffer]]:
        """Return the loop."""
        known = self.attributes
        asks, takes, most = known["asks"], known["takes"], known["most"]
        count = len(self.outputs)
        begin_asking = make_part(engine, make, self, "condition", known["condition"])
        carried = sum(at < count for at in takes)  # the first of them
        begin = make_part(engine, make, self, "body", known["body"], donated=carried)
        read = self.device.read

        def run(operands: list[Buffer]) -> list[Buffer]:
            holds, step = begin_asking(), begin()
            fixed = operands[count:]
            now = operands.copy()
            operands.clear()  # so that the first step may overwrite carries, too
            steps = 0
            while (most is None or steps < most) and read(holds([now[at] for at in asks])[0]):
                arguments = [now[at] for at in takes]
                del now  # the last reference to carries that the step may overwrite
                now = [*step(arguments), *fixed]
                steps += 1
            return now[:count]

        return run

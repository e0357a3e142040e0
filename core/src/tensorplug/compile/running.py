"""Running a program: one loop over kernels that takes and gives buffers."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.tracing import Constant
from tensorplug.dispatch.observer import execute
from tensorplug.dispatch.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tensorplug.compile.programs import Program
    from tensorplug.compile.tracing import Call
    from tensorplug.contract.backend import Buffer, FlatCall, FlatProgram
    from tensorplug.dispatch.observer import Observer

__all__ = ["Executable"]


class _Step(NamedTuple):
    """One call: where its inputs lie, where its outputs go, which slots are empty afterwards."""

    run: Callable[..., Any]
    take: Callable[[list[Any]], Any]
    single: bool  # whether ``take`` gives the one input instead of a tuple of all
    target: int | tuple[int, ...]
    done: tuple[int, ...]
    call: FlatCall


class Executable:
    """A program as it runs, with what the backend made of it.

    Any number of threads may run it at once.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        flat = program.flat()
        compile_program = program.device.capabilities.compile_program
        calls = flat.calls
        if compile_program is not None:
            calls = compile_program(flat)
        self._fused = calls is not flat.calls
        self._given = len(program.inputs)
        self._blank = [flat.constants.get(at) for at in range(self._given, len(flat.types))]
        self._outputs = [program.slots[item] for item in program.wanted]
        self._steps = _steps(calls, flat)
        # Results of kernels that have never run are compared with their specs once.
        self._unproven = any(not call.plan.published for call in program.calls)

    def run(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Return the wanted buffers."""
        if self._unproven:
            self._prove(buffers)
        values = [*buffers, *self._blank]
        step = None
        try:
            for step in self._steps:  # named in the error
                run, take, single, target, done, _ = step
                made = run(take(values)) if single else run(*take(values))
                if isinstance(target, int):
                    values[target] = made
                else:
                    for at, item in zip(target, made, strict=True):
                        values[at] = item
                for at in done:
                    values[at] = None
        except BaseException as error:
            if step is not None:
                self._annotate(error, step.call)
            raise
        return [values[at] for at in self._outputs]

    def _prove(self, buffers: Sequence[Buffer]) -> None:
        """Run once kernel by kernel, each result being compared with what its spec infers.

        Raises:
            KernelOutputError: as the engine does when it runs a plan for the first time.

        """
        self.observed((), buffers)
        self._unproven = False

    def observed(self, observers: Sequence[Observer], buffers: Sequence[Buffer]) -> list[Buffer]:
        """Run kernel by kernel, each with the observers around it."""
        slots, program = self.program.slots, self.program
        last = _last_uses(
            [[slots[one] for one in item.operands()] for item in program.calls],
            [[slots[one] for one in item.outputs] for item in program.calls],
            frozenset(self._outputs),
        )
        values = [*buffers, *self._blank]
        for call, done in zip(program.calls, last, strict=True):
            tensors = [_tensor(operand, values, slots) for operand in call.inputs]
            try:
                outputs = execute(observers, call.plan, tensors, partial(_verified, call, tensors))
            except BaseException as error:
                _locate(error, call)
                raise
            for value, tensor in zip(call.outputs, outputs, strict=True):
                values[slots[value]] = tensor._buffer
            del tensors, outputs
            for at in done:
                values[at] = None
        return [values[at] for at in self._outputs]

    def _annotate(self, error: BaseException, call: FlatCall) -> None:
        for item in self.program.calls:
            if self.program.slots[item.outputs[0]] in call.outputs and call.spec is item.plan.spec:
                item.plan.annotate(error)
                _locate(error, item)
                return
        error.add_note(f"in {call.name} of a compiled program on {self.program.device.name!r}")


def _verified(call: Call, tensors: Sequence[Any]) -> list[Tensor]:
    outputs = call.plan.execute(tensors)
    if not call.plan.published:
        call.plan.verify(outputs)
        call.plan.published = True
    return outputs


def _locate(error: BaseException, call: Call) -> None:
    if call.site is not None:
        error.add_note(f"called in a compiled function, at {call.site.describe()}")


def _tensor(operand: Any, values: Sequence[Any], slots: dict[Any, int]) -> Any:
    """Return the tensor, the list of them, or none that an operand means now."""
    if isinstance(operand, list):
        return [_tensor(item, values, slots) for item in operand]
    if operand is None:
        return None
    buffer = operand.buffer if isinstance(operand, Constant) else values[slots[operand]]
    return Tensor._of(buffer, operand.placement)


def _steps(calls: Sequence[FlatCall], flat: FlatProgram) -> list[_Step]:
    used = [_flattened(item.inputs) for item in calls]
    kept = flat.outputs.union(flat.constants)
    last = _last_uses(used, [item.outputs for item in calls], kept)
    return [_step(call, tuple(done)) for call, done in zip(calls, last, strict=True)]


def _step(call: FlatCall, done: tuple[int, ...]) -> _Step:
    places = _flattened(call.inputs)
    run = call.run
    if any(operand.__class__ is not int for operand in call.inputs):
        run = partial(_regrouped, run, tuple(_sizes(call)))
    target: int | tuple[int, ...] = call.outputs if call.multiple_outputs else call.outputs[0]
    if not places:
        return _Step(run, _nothing, False, target, done, call)  # noqa: FBT003  # a record
    return _Step(run, itemgetter(*places), len(places) == 1, target, done, call)


def _nothing(_: list[Any]) -> tuple[()]:
    return ()


def _flattened(inputs: Sequence[int | tuple[int, ...] | None]) -> list[int]:
    found: list[int] = []
    for operand in inputs:
        if isinstance(operand, tuple):
            found += operand
        elif operand is not None:
            found.append(operand)
    return found


def _sizes(call: FlatCall) -> list[int | None]:
    """Return for each input how many buffers its list has: -1 for no list, None if absent."""
    return [
        len(operand) if isinstance(operand, tuple) else None if operand is None else -1
        for operand in call.inputs
    ]


def _regrouped(run: Callable[..., Any], sizes: Sequence[int | None], *buffers: Any) -> Any:
    rest = iter(buffers)
    return run(
        *[
            None if size is None else next(rest) if size < 0 else [next(rest) for _ in range(size)]
            for size in sizes
        ]
    )


def _last_uses(
    used: Sequence[Sequence[int]], made: Sequence[Sequence[int]], kept: Collection[int]
) -> list[list[int]]:
    """Return for each call the slots that nobody needs after it."""
    seen = set(kept)
    result: list[list[int]] = []
    for given, filled in zip(reversed(used), reversed(made), strict=True):
        done = [at for at in dict.fromkeys((*given, *filled)) if at not in seen]
        seen.update(done)
        result.append(done)
    result.reverse()
    return result

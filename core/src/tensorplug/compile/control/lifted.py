"""Loops and branches inside ``vmap`` or forward mode, of a compiled function: outside of these.

The loop is one of the physical tensors, and its function enters the interpreter again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.backpropagation import backpropagate
from tensorplug.autodiff.recording import Recording
from tensorplug.autodiff.tape import Leaf, find_boundary, mark
from tensorplug.compile.control.calls import slice_types
from tensorplug.compile.tracing.values import Value
from tensorplug.contract.dtypes import INEXACT
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.interpreters import Interpreter
from tensorplug.engine.logical_devices import Carried
from tensorplug.mapping.examples import Batched, Examples
from tensorplug.ops import creation, reduction
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.elementwise import choosing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.autodiff.tape import Node
    from tensorplug.compile.control.calls import Flat, Found, Steps
    from tensorplug.dispatch.context import Context


class _Inside:
    """A function of logical tensors as one of the physical tensors that carry them.

    Args:
        f: of logical tensors, of the ``groups`` of types. Each group is carried by physical
            tensors of its own.
        first: how many of its results are a group; the others are another.

    ``types``: of the logical results of the last call. ``nodes``: of the tensors on the tape
    inside that ``f`` uses besides its arguments, with their types.

    """

    def __init__(
        self, context: Context, f: Flat, groups: Sequence[Sequence[Tensor]], first: int = 0
    ) -> None:
        assert isinstance(context.interpreter, Interpreter)
        self.interpreter: Interpreter = context.interpreter
        self.recording, self.autocast = context.recording, context.autocast
        self.call = context.call
        for group in groups:
            self.interpreter.check_call(group, self.call)
        self.f = f
        self.first = first
        self.lengths = [len(self.interpreter.lower(group)) for group in groups]
        self.groups = [[tensor.type for tensor in group] for group in groups]
        self.types: list[TensorType] = []
        self.nodes: dict[Node, TensorType] | None = None if self.recording else {}

    def __call__(self, physical: list[Tensor]) -> list[Tensor]:
        """Call the function; return the physical tensors that carry its results."""
        interpreter, logical = self.interpreter, []
        start = 0
        for types, length in zip(self.groups, self.lengths, strict=True):
            logical += interpreter.lift(physical[start : start + length], types, self.call)
            start += length
        outside = current_context().replace(autocast=self.autocast)
        with use_context(interpreter.context(outside, self.call)):
            if self.nodes is None:
                self.nodes = self._find_nodes(logical)
            results = self.f(logical)
            interpreter.check_call(results, self.call)
        self.types = [tensor.type for tensor in results]
        return [
            *interpreter.lower(results[: self.first]),
            *interpreter.lower(results[self.first :]),
        ]

    def _find_nodes(self, tensors_in: Sequence[Tensor]) -> dict[Node, TensorType]:
        """Return the nodes on which the results depend; what is computed here is not used."""
        since = mark()
        entered = [
            Tensor._of(
                tensor._buffer,
                tensor._placement,
                Leaf((None,)) if tensor.dtype in INEXACT else None,
            )
            for tensor in tensors_in
        ]
        with use_context(current_context().recorded_by(Recording(self.recording))):
            results = self.f(entered)
        ends = [(tensor._node, tensor) for tensor in results if tensor._node is not None]
        nodes = find_boundary([node for node, _ in ends], since)
        cotangents = backpropagate([(node, creation.zeros_like(y)) for node, y in ends], nodes)
        return {node: cotangents[node].type for node in nodes if node in cotangents}


def _enter(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return sequences for slices along the first axis of the logical tensors."""
    trace = current_context().interpreter
    assert isinstance(trace, Interpreter)
    trace.check_call(tensors, current_context().call)
    with use_context(_outside()):
        return _swap(trace, trace.lower(tensors))


def _swap(interpreter: Interpreter, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Exchange the axis of the steps with the one of the examples, if there is one."""
    if isinstance(interpreter, Examples):
        return [moveaxis(tensor, 0, 1) for tensor in tensors]
    return list(tensors)


def _outside() -> Context:
    outside = current_context().outside
    assert outside is not None
    return outside


def lift_scan(
    steps: Steps,
    init: Sequence[Tensor],
    xs: Sequence[Tensor],
    scan: Callable[[Steps, Sequence[Tensor], Sequence[Tensor]], list[Tensor]],
) -> Found:
    """Call ``scan`` outside; return what ``calls.trace_scan`` does."""
    context, count = current_context(), len(init)
    interpreter = context.interpreter
    columns = _enter(xs)
    with use_context(_outside()):
        inside = _Inside(context, steps.f, _groups(init, xs), count)
        physical = scan(steps._replace(f=inside), interpreter.lower(init), columns)
        end = inside.lengths[0]
        carries = interpreter.lift(physical[:end], inside.types[:count], context.call)
        types = [
            TensorType(type_.dtype, (steps.length, *type_.shape)) for type_ in inside.types[count:]
        ]
        results = interpreter.lift(_swap(interpreter, physical[end:]), types, context.call)
    return [*carries, *results], inside.nodes or {}


def _groups(init: Sequence[Tensor], xs: Sequence[Tensor]) -> list[list[Tensor]]:
    """Return the carries, and tensors with the types of the slices."""
    slices = [creation.zeros(type_.shape, dtype=type_.dtype) for type_ in slice_types(xs)]
    return [list(init), slices]


def lift_types(
    f: Flat,
    init: Sequence[Tensor],
    xs: Sequence[Tensor],
    who: str,
    result_types: Callable[..., list[TensorType]],
) -> list[TensorType]:
    """Return the types of the results of ``f`` for carries and slices."""
    context = current_context()
    columns = _enter(xs)
    with use_context(_outside()):
        inside = _Inside(context, f, _groups(init, xs), len(init))
        result_types(inside, context.interpreter.lower(init), columns, who)
    return inside.types


def lift_switch(
    index: Tensor,
    branches: Sequence[Flat],
    operands: Sequence[Tensor],
    who: str,
    switch: Callable[..., list[Tensor]],
) -> Found:
    """Call ``switch`` outside; return what ``calls.trace_switch`` does."""
    context = current_context()
    interpreter: Interpreter = context.interpreter
    interpreter.check_call([index], context.call)
    with use_context(_outside()):
        inside = [_Inside(context, branch, [operands]) for branch in branches]
        if interpreter.holds(index):
            index = interpreter.lower([index])[0]
        physical = switch(index, inside, interpreter.lower(operands), who)
        types = next(each.types for each in inside if each.types or not physical)
        results = interpreter.lift(physical, types, context.call)
    nodes = {node: type_ for each in inside for node, type_ in (each.nodes or {}).items()}
    return results, nodes


def lift_while(
    condition: Flat,
    body: Flat,
    init: Sequence[Tensor],
    most: int | None,
    who: str,
    while_loop: Callable[..., list[Tensor]],
) -> Found:
    """Call ``while_loop`` outside; return what ``calls.trace_while`` does."""
    context = current_context()
    interpreter: Interpreter = context.interpreter

    def step(now: list[Tensor]) -> list[Tensor]:
        holds = condition(now)[0]
        return keep_finished(holds, body(now), now) if differs(holds) else body(now)

    with use_context(_outside()):
        asked = _Inside(context, condition, [init])
        asked.nodes = {}  # a condition has no derivative
        inside = _Inside(context, step, [init])

        def holds(now: list[Tensor]) -> list[Tensor]:
            physical = asked(now)[0]
            return [reduction.any(physical, axis=0) if physical.ndim else physical]

        physical = while_loop(holds, inside, interpreter.lower(init), most, who)
        results = interpreter.lift(physical, [tensor.type for tensor in init], context.call)
    return results, inside.nodes or {}


def differs(tensor: Tensor) -> bool:
    """Return whether a tensor may differ from example to example of a ``vmap``."""
    return isinstance(_carrier(tensor), Batched)


def is_known(tensor: Tensor) -> bool:
    """Return whether the data of a tensor can be read now."""
    return not isinstance(_carrier(tensor), Batched | Value)


def _carrier(tensor: Tensor) -> Any:
    """Return what carries the value: the buffer, also that of a primal."""
    buffer = tensor._buffer
    while isinstance(buffer, Carried) and not isinstance(buffer, Batched):
        primal = buffer.tensors[0]
        assert primal is not None
        buffer = primal._buffer
    return buffer


def keep_finished(holds: Tensor, new: Sequence[Tensor], old: Sequence[Tensor]) -> list[Tensor]:
    """Return ``new`` for the examples for which a loop goes on, and ``old`` for the others."""
    return [choosing.where(holds, a, b) for a, b in zip(new, old, strict=True)]


def holds_for_any(tensor: Tensor) -> bool:
    """Return the value of a boolean scalar; inside ``vmap``, whether it holds for any example."""
    trace: Any = current_context().interpreter
    if not isinstance(trace, Interpreter):
        return bool(tensor)
    with use_context(_outside()):
        if trace.holds(tensor):
            (flags,) = trace.lower([tensor])
            tensor = reduction.any(flags, axis=0) if flags.ndim else flags
        return holds_for_any(tensor)

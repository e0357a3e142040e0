"""A compiled function for one signature: its program, inputs and results."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.fusion.epilogues import add_epilogues
from tensorplug.compile.fusion.layouts import choose_layouts, find_windowed
from tensorplug.compile.fusion.weights import fold_dequantized
from tensorplug.compile.programs.executable import Executable
from tensorplug.compile.programs.program import Program
from tensorplug.compile.tracing.bodies import call_body
from tensorplug.compile.tracing.passes import eliminate_common_calls, eliminate_dead_calls
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import DeviceMismatchError
from tensorplug.tensors.assignment import replace_contents
from tensorplug.tensors.tree import rebuild_leaf

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.compile.arguments.floats import Floats
    from tensorplug.compile.tracing.bodies import Request, Traced
    from tensorplug.compile.tracing.calls import Call
    from tensorplug.contract.backend import Buffer
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device, Placement


_new: Final = object.__new__
_NO_NODES: Final = repeat(None)


class Specialized:
    """A compiled function for one signature.

    Its fields are those of the request and of the trace. ``is_general``: whether other sizes may
    have the same calls and groups. ``shared``: whether its groups are those
    of another signature, which differs in sizes alone; ``used``: whether a call has found it since
    it was kept, or last asked; ``derivatives``: by the inputs that need gradients.
    """

    used = is_general = False

    def __init__(self, request: Request, traced: Traced, executable: Executable) -> None:
        self.engine, self.device, self.body, arguments, self.floats, _, _ = request
        self.executable = executable
        self.shared = False
        self.state = traced.state
        self.autocast = traced.autocast
        self.derivatives: dict[Hashable, Any] = {}
        self.result = traced.result
        self.reads = traced.reads
        self.assigns = traced.assigns
        self.changed = traced.changed
        self.committed = traced.committed
        self.placements = [self.place(value.placement) for value in traced.wanted]
        # The signature includes the tensors' devices, so this holds for each call.
        transfers = any(tensor._placement.device is not self.device for tensor in arguments)
        self.prepares = bool(self.reads or transfers)
        self.effects = bool(self.assigns)
        self.numeric = bool(self.floats.given or self.floats.operations)
        self.single = self.result.rebuild is rebuild_leaf and len(self.result.places) == 1

    @classmethod
    def of(cls, request: Request, traced: Traced) -> Specialized:
        """Return the function with the program that the trace recorded."""
        engine, device = request[:2]
        declined: list[Call] = []
        calls = fold_dequantized(engine, traced.calls, traced.wanted, declined)
        calls, results = eliminate_common_calls(calls, traced.wanted)
        calls = eliminate_dead_calls(calls, results)
        is_general = not find_windowed(calls)
        calls, results = choose_layouts(engine, calls, results)
        calls = eliminate_dead_calls(calls, results)
        calls = add_epilogues(engine, calls, results, declined)
        program = Program(device, traced.inputs, calls, results)
        executable = Executable(engine, program, small=True, donated=traced.free)
        special = cls(request, traced, executable)
        special.shared = program.fusion is not None and program.fusion.known
        special.is_general = is_general and not declined and executable.is_general
        return special

    def place(self, placement: Placement) -> Placement:
        """Return the placement of a result, or of what a gradient needs or yields."""
        return placement.as_committed(self.committed)

    def enter(self, context: Context, arguments: list[Tensor]) -> list[Tensor]:
        """Return the program's inputs, including reads, on its device.

        Raises:
            DeviceMismatchError: a variable has moved to another device.

        """
        tensors = [*arguments, *(read.fetch() for read in self.reads)]
        device = self.device
        there: Context | None = None
        for at, tensor in enumerate(tensors):
            if tensor._placement.device is not device:
                # Another thread may have changed the active device since this one was chosen.
                if tensor._placement.committed:
                    raise DeviceMismatchError(f"compile: {tensor.type}", tensor.device)
                there = there or context.replace(device=device)
                tensors[at] = self.engine.convert(there, tensor, None, "compile: an argument")
        return tensors

    def run(
        self,
        context: Context,
        tensors: Sequence[Tensor],
        floats: Sequence[float],
        donated: Sequence[Tensor] = (),
        changing: Sequence[Tensor] = (),
    ) -> Any:
        """Run the program, which disposes of ``donated``; return the function's result.

        ``changing``: donated tensors to which the function assigns. Their memory is the program's,
        too; they are disposed of if it fails.
        """
        buffers = [tensor._buffer for tensor in tensors]
        for tensor in donated:
            tensor.dispose()
        for tensor in changing:
            tensor._buffer = tensor._exclusive = None
        numbers: Sequence[float] = ()
        if self.numeric:
            numbers = self.floats.evaluate(floats)
            buffers += upload(self.device, self.floats, numbers)
        try:
            results = run(self.executable, context, buffers, consumes=bool(donated or changing))
        except BaseException:
            for tensor in changing:
                tensor.dispose()
            raise
        return self.leave(context, results, numbers)

    def call_function(self, arguments: Sequence[Tensor], floats: Sequence[float]) -> list[Tensor]:
        """Call the function without its program; return the tensors of its result."""
        return call_body(self.body, arguments, floats)[0].tensors

    def assign_arguments(self, result: Any, arguments: Sequence[Tensor]) -> Any:
        """Replace the contents of arguments to which the function assigns; return its result."""
        returned, contents = result
        for at, tensor in zip(self.changed, contents, strict=True):
            replace_contents(arguments[at], tensor)
        return returned

    def leave(
        self,
        context: Context,
        buffers: Sequence[Buffer],
        numbers: Sequence[float],
        nodes: Sequence[Any] = (),
    ) -> Any:
        """Assign to variables; return the function's result, made of ``buffers``.

        ``numbers``: the result of ``floats.evaluate``.
        """
        tensors: list[Tensor] = []
        for buffer, placement, node in zip(buffers, self.placements, nodes or _NO_NODES):  # noqa: B905
            tensor: Tensor = _new(Tensor)  # as in `dispatch`, without the call of `_of`
            tensor._buffer = buffer
            tensor._placement = placement
            tensor._node = node
            tensors.append(tensor)
        if self.effects:
            self._assign(tensors)
        if context.scope is not None:
            for tensor in tensors:
                context.scope.adopt(tensor)
        return tensors[0] if self.single else self.result.with_tensors(tensors, numbers)

    def _assign(self, tensors: list[Tensor]) -> None:
        """Assign to variables; take the new contents out of ``tensors``."""
        count = len(self.result.places)
        for variable, tensor in zip(self.assigns, tensors[count:], strict=True):
            variable.assign(tensor)
        del tensors[count:]


def upload(device: Device, floats: Floats, numbers: Sequence[float]) -> list[Buffer]:
    """Return the inputs of a program that are made of floats."""
    return [device.backend.from_host(array) for array in floats.arrays(numbers)]


def run(
    executable: Executable, context: Context, buffers: list[Buffer], *, consumes: bool = False
) -> list[Buffer]:
    """Run a program, kernel by kernel if there are observers.

    ``consumes``: ``buffers`` is emptied, so that a buffer may be freed after its last use.
    """
    engine: Any = context.engine
    if context.observers or engine.observers:
        return executable.run_observed((*context.observers, *engine.observers), buffers)
    return executable.run(buffers, consumed=buffers if consumes else None)

"""A function for one signature: its program, and the way into it and out of it."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.passes import without_common, without_dead
from tensorplug.compile.programs import Program
from tensorplug.compile.running import Executable
from tensorplug.compile.tracing import Trace, error
from tensorplug.dispatch.context import use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.tensors.assignment import replace_contents
from tensorplug.tensors.tree import flatten
from tensorplug.tensors.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.autodiff.recording import Recording
    from tensorplug.contract.backend import Buffer
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.registry import State

__all__ = ["Body", "Result", "Specialized"]


class Body(NamedTuple):
    """A function with the form of its arguments: how they are built around other tensors.

    ``leaves``: those of the arguments, tensors among them; ``places``: where the tensors stand.
    """

    f: Callable[..., Any]
    leaves: list[Any]
    places: list[int]
    rebuild: Callable[[list[Any]], Any]

    @classmethod
    def of(cls, f: Callable[..., Any], args: Any, kwargs: Any) -> Body:
        """Take the form of a call; the tensors' data is not kept."""
        leaves, rebuild = flatten((args, kwargs))
        places = [at for at, leaf in enumerate(leaves) if leaf.__class__ is Tensor]
        for at in places:
            leaves[at] = leaves[at].type
        return cls(f, leaves, places, rebuild)

    def call(self, tensors: Sequence[Tensor]) -> Any:
        """Call the function with ``tensors`` in their places."""
        leaves = list(self.leaves)
        for at, tensor in zip(self.places, tensors, strict=True):
            leaves[at] = tensor
        args, kwargs = self.rebuild(leaves)
        return self.f(*args, **kwargs)


class Result(NamedTuple):
    """What a traced function returned: ``places`` are those of tensors among the ``leaves``."""

    leaves: list[Any]
    places: list[int]
    rebuild: Callable[[list[Any]], Any]

    @classmethod
    def of(cls, returned: Any) -> Result:
        """Take apart what a function returned.

        Raises:
            DisposedError: one of the tensors was disposed.

        """
        leaves, rebuild = flatten(returned)
        for at, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                leaf._live()
            if isinstance(leaf, Variable):
                leaves[at] = leaf._reading()
        places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        return cls(leaves, places, rebuild)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors, in order."""
        return [self.leaves[at] for at in self.places]

    def emptied(self) -> Result:
        """Return the same form without the tensors."""
        leaves = list(self.leaves)
        for at in self.places:
            leaves[at] = None
        return Result(leaves, self.places, self.rebuild)

    def filled(self, tensors: Sequence[Tensor]) -> Any:
        """Return the tree around other tensors."""
        if len(self.leaves) == 1 and self.places:
            return self.rebuild(list(tensors))
        leaves = list(self.leaves)
        for at, tensor in zip(self.places, tensors, strict=True):
            leaves[at] = tensor
        return self.rebuild(leaves)


def called(body: Body, arguments: Sequence[Tensor]) -> tuple[Result, list[int]]:
    """Call a function with handles of its arguments' own.

    If it assigns to some of them, the tensors of the result end with their new contents. Return
    the result, and the positions of those arguments.

    Raises:
        CompileError: it disposes of an argument.

    """
    given = [
        Tensor._of(argument._buffer, argument._placement, argument._node) for argument in arguments
    ]
    returned = body.call(given)
    if any(handle.is_disposed for handle in given):
        raise error(
            f"{getattr(body.f, '__name__', 'the function')} disposes of an argument, which a "
            "program never does to its caller's; work on a copy: asarray(x, copy=True)"
        )
    assigned = [
        at
        for at, (argument, handle) in enumerate(zip(arguments, given, strict=True))
        if handle._buffer is not argument._buffer
    ]
    if not assigned:
        return Result.of(returned), assigned
    return Result.of((returned, [given[at] for at in assigned])), assigned


def traced(
    trace: Trace, body: Body, arguments: Sequence[Tensor], recording: Recording | None = None
) -> tuple[Result, list[int]]:
    """Do as ``called`` with tensors without data."""
    with use_context(trace.context(recording)):
        return called(body, arguments)


class Specialized:
    """A function for one signature.

    ``reads``: what it takes from variables and generators; ``assigns``: the variables, and
    ``changed``: the arguments, that it assigns to; ``state``: the registry that its plans come
    from; ``derivatives``: made for those inputs that need gradients.
    """

    def __init__(
        self, engine: Engine, device: Device, body: Body, given: Sequence[Tensor]
    ) -> None:
        self.engine = engine
        self.device = device
        self.body = body
        self.state: State = engine.registry.state
        self.derivatives: dict[tuple[int, ...], Any] = {}
        trace = Trace(engine, device)
        entries = [trace.enter(body.leaves[at]) for at in body.places]
        try:
            result, self.changed = traced(trace, body, [tensor for _, tensor in entries])
            assigned = list(trace.assigned.values())
            returned = [*result.tensors, *(tensor for _, tensor in assigned)]
            wanted = [trace.operand(item) for item in returned]
        finally:
            trace.over = True
        calls, wanted = without_common(trace.calls, wanted)
        # A signature says where tensors are; those elsewhere are brought at each call.
        self.brought = any(item._placement.device is not device for item in given)
        self.reads = trace.reads
        self.assigns = [variable for variable, _ in assigned]
        self.result = result.emptied()
        inputs = [*(value for value, _ in entries), *(read.value for read in trace.reads)]
        self.placements = [item.placement for item in wanted]
        self.executable = Executable(Program(device, inputs, without_dead(calls, wanted), wanted))

    def enter(self, context: Context, arguments: list[Tensor]) -> list[Tensor]:
        """Return all that a call is given, reads too, brought to where the program runs."""
        if not self.reads and not self.brought:
            return arguments
        tensors = [*arguments, *(read.fetch() for read in self.reads)]
        device = self.device
        for at, tensor in enumerate(tensors):
            if tensor._placement.device is not device:
                tensors[at] = self.engine.convert(context, tensor, None, "compile: an argument")
        return tensors

    def run(self, context: Context, tensors: Sequence[Tensor]) -> Any:
        """Run the program; return what the function returns."""
        return self.leave(
            context, run(self.executable, context, [tensor._buffer for tensor in tensors])
        )

    def returned(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Call the function itself; return the tensors of its result."""
        return called(self.body, arguments)[0].tensors

    def finished(self, result: Any, arguments: Sequence[Tensor]) -> Any:
        """Give the caller's arguments what the function assigns to them; return what it returns."""
        returned, contents = result
        for at, tensor in zip(self.changed, contents, strict=True):
            replace_contents(arguments[at], tensor)
        return returned

    def leave(self, context: Context, buffers: Sequence[Buffer], nodes: Sequence[Any] = ()) -> Any:
        """Return buffers as what the function returns, and assign what it assigns."""
        made = list(map(Tensor._of, buffers, self.placements, nodes or repeat(None)))
        if self.assigns:
            count = len(self.result.places)
            for variable, tensor in zip(self.assigns, made[count:], strict=True):
                variable.assign(tensor)
            del made[count:]
        if context.scope is not None:
            for item in made:
                context.scope.adopt(item)
        return self.result.filled(made)


def run(executable: Executable, context: Context, buffers: Sequence[Buffer]) -> list[Buffer]:
    """Run a program: kernel by kernel where somebody watches."""
    engine: Any = context.engine
    if context.observers or engine.observers:
        return executable.observed((*context.observers, *engine.observers), buffers)
    return executable.run(buffers)

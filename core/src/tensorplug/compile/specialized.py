"""A compiled function for one signature: its program, inputs and results."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.compile.arguments.floats import TracedFloat
from tensorplug.compile.fusion.epilogues import add_epilogues
from tensorplug.compile.programs.executable import Executable
from tensorplug.compile.programs.program import Program
from tensorplug.compile.tracing.passes import eliminate_common_calls, eliminate_dead_calls
from tensorplug.compile.tracing.trace import Trace
from tensorplug.compile.tracing.values import error
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.tensors.assignment import replace_contents
from tensorplug.tensors.tree import flatten
from tensorplug.tensors.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.autodiff.recording import Recording
    from tensorplug.compile.arguments.floats import Floats
    from tensorplug.compile.tracing.trace import Call
    from tensorplug.compile.tracing.values import Constant, Value
    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.registry import State

__all__ = ["Body", "Result", "Specialized", "make_executable", "run", "trace_body", "upload"]

_new: Final = object.__new__
_NO_NODES: Final = repeat(None)


class Body(NamedTuple):
    """A function and the structure of its arguments.

    ``leaves``: those of the arguments, with types for tensors; ``places``: the tensors' positions,
    ``floats``: those of the floats that are not static.
    """

    f: Callable[..., Any]
    leaves: list[Any]
    places: list[int]
    floats: list[int]
    rebuild: Callable[[list[Any]], Any]

    @classmethod
    def of(cls, f: Callable[..., Any], args: Any, kwargs: Any, *, static_floats: bool) -> Body:
        """Return the structure of a call, without the tensors' data."""
        leaves, rebuild = flatten((args, kwargs))
        places = [at for at, leaf in enumerate(leaves) if leaf.__class__ is Tensor]
        for at in places:
            leaves[at] = leaves[at].type
        floats = [at for at, leaf in enumerate(leaves) if leaf.__class__ is float]
        return cls(f, leaves, places, [] if static_floats else floats, rebuild)

    def call(self, tensors: Sequence[Tensor], floats: Sequence[float]) -> Any:
        """Call the function with ``tensors`` and ``floats``."""
        leaves = list(self.leaves)
        for at, tensor in zip(self.places, tensors, strict=True):
            leaves[at] = tensor
        for at, number in zip(self.floats, floats, strict=True):
            leaves[at] = number
        args, kwargs = self.rebuild(leaves)
        return self.f(*args, **kwargs)


class Result(NamedTuple):
    """The result of a function.

    ``places``: the positions of tensors among the ``leaves``; ``floats``: those of traced floats,
    each with its position in the result of ``Floats.evaluate``.
    """

    leaves: list[Any]
    places: list[int]
    rebuild: Callable[[list[Any]], Any]
    floats: list[tuple[int, int]]

    @classmethod
    def of(cls, returned: Any) -> Result:
        """Flatten the result of a function.

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
        floats = [(at, leaf.at) for at, leaf in enumerate(leaves) if type(leaf) is TracedFloat]
        return cls(leaves, places, rebuild, floats)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors, in order."""
        return [self.leaves[at] for at in self.places]

    def without_tensors(self) -> Result:
        """Return the same structure without the tensors and the traced floats."""
        leaves = list(self.leaves)
        for at in self.places:
            leaves[at] = None
        for at, _ in self.floats:
            leaves[at] = None
        return Result(leaves, self.places, self.rebuild, self.floats)

    def with_tensors(self, tensors: Sequence[Tensor], numbers: Sequence[float]) -> Any:
        """Return the tree with other tensors, and with floats from ``numbers``."""
        if len(self.leaves) == 1 and self.places:
            return self.rebuild(list(tensors))
        leaves = list(self.leaves)
        for at, tensor in zip(self.places, tensors, strict=True):
            leaves[at] = tensor
        for at, number in self.floats:
            leaves[at] = numbers[number]
        return self.rebuild(leaves)


def call_body(
    body: Body, arguments: Sequence[Tensor], floats: Sequence[float]
) -> tuple[Result, list[int]]:
    """Call a function with aliases of ``arguments``.

    Return the result, and the positions of the arguments to which the function assigns. Their new
    contents are the last tensors of the result.

    Raises:
        CompileError: it disposes of an argument.

    """
    aliases = [
        Tensor._of(argument._buffer, argument._placement, argument._node) for argument in arguments
    ]
    returned = body.call(aliases, floats)
    if any(alias.is_disposed for alias in aliases):
        raise error(
            f"{getattr(body.f, '__name__', 'the function')} disposes of an argument, which a "
            "compiled function must not do; work on a copy: asarray(x, copy=True)"
        )
    assigned = [
        at
        for at, (argument, alias) in enumerate(zip(arguments, aliases, strict=True))
        if alias._buffer is not argument._buffer
    ]
    if not assigned:
        return Result.of(returned), assigned
    return Result.of((returned, [aliases[at] for at in assigned])), assigned


def trace_body(
    trace: Trace,
    body: Body,
    arguments: Sequence[Tensor],
    recording: Recording | None = None,
    autocast: DType | None = None,
) -> tuple[Result, list[int]]:
    """Do the same as ``call_body`` with tensors without data, and record the calls."""
    with use_context(trace.context(recording, autocast)):
        return call_body(body, arguments, trace.floats.arguments)


class Specialized:
    """A compiled function for one signature.

    ``reads``: the inputs from variables and generators; ``floats``: those from Python floats;
    ``assigns``: the variables, and ``changed``: the arguments, to which it assigns; ``state``: the
    registry state of its plans; ``shared``: whether its program is also that of other signatures;
    ``derivatives``: by the inputs that need gradients;
    ``autocast``: the dtype of the block of its calls.
    """

    shared = False

    def __init__(
        self,
        engine: Engine,
        device: Device,
        body: Body,
        arguments: Sequence[Tensor],
        floats: Floats,
        donated: Sequence[Tensor] = (),
    ) -> None:
        self.engine = engine
        self.device = device
        self.body = body
        self.state: State = engine.registry.state
        self.floats = floats
        self.derivatives: dict[Hashable, Any] = {}
        self.autocast = current_context().autocast
        trace = Trace(engine, device, floats)
        entries = [trace.enter(body.leaves[at]) for at in body.places]
        try:
            result, self.changed = trace_body(
                trace, body, [tensor for _, tensor in entries], autocast=self.autocast
            )
            assigned = list(trace.assigned.values())
            returned = [*result.tensors, *(tensor for _, tensor in assigned)]
            wanted = [trace.operand(tensor) for tensor in returned]
        finally:
            recorded = trace.finish()
        # The signature includes the tensors' devices, so this holds for each call.
        self.transfers = any(tensor._placement.device is not device for tensor in arguments)
        self.reads = recorded.reads
        self.assigns = [variable for variable, _ in assigned]
        self.result = result.without_tensors()
        self.held = [
            (cell, number.at if type(number) is TracedFloat else None, number)
            for cell, number in recorded.held
        ]
        self.prepares = bool(self.reads or self.transfers)
        self.effects = bool(self.assigns or self.held)
        self.numeric = bool(floats.given or floats.operations)
        inputs = [value for value, _ in entries] + [read.value for read in recorded.reads]
        inputs += recorded.numbers
        self.placements = [value.placement for value in wanted]
        given = {id(tensor) for tensor in donated}
        free = [value for value, x in zip(inputs, arguments) if id(x) in given]  # noqa: B905  # reads follow
        self.compile(eliminate_dead_calls(recorded.calls, wanted), inputs, wanted, free)

    def compile(
        self,
        calls: Sequence[Call],
        inputs: list[Value],
        wanted: Sequence[Value | Constant],
        free: list[Value],
    ) -> None:
        """Make the program of what the trace recorded; ``free``: the donated inputs."""
        self.executable = make_executable(self.engine, self.device, calls, inputs, wanted, free)

    def effects_on(self) -> list[int]:
        """Return the identities of what it reads and assigns beside its arguments."""
        touched = [read.source for read in self.reads]
        touched += [*self.assigns, *(cell for cell, _, _ in self.held)]
        return [id(each) for each in touched]

    def enter(self, context: Context, arguments: list[Tensor]) -> list[Tensor]:
        """Return the program's inputs, including reads, on its device."""
        tensors = [*arguments, *(read.fetch() for read in self.reads)]
        device = self.device
        there: Context | None = None
        for at, tensor in enumerate(tensors):
            if tensor._placement.device is not device:
                # Another thread may have changed the active device since this one was chosen.
                there = there or context.replace(device=device)
                tensors[at] = self.engine.convert(there, tensor, None, "compile: an argument")
        return tensors

    def run(
        self,
        context: Context,
        tensors: Sequence[Tensor],
        floats: Sequence[float],
        donated: Sequence[Tensor] = (),
    ) -> Any:
        """Run the program, which disposes of ``donated``; return the function's result."""
        buffers = [tensor._buffer for tensor in tensors]
        for tensor in donated:
            tensor.dispose()
        numbers: Sequence[float] = ()
        if self.numeric:
            numbers = self.floats.evaluate(floats)
            buffers += upload(self.device, self.floats, numbers)
        results = run(self.executable, context, buffers, consumes=bool(donated))
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
            self._assign(tensors, numbers)
        if context.scope is not None:
            for tensor in tensors:
                context.scope.adopt(tensor)
        return self.result.with_tensors(tensors, numbers)

    def _assign(self, tensors: list[Tensor], numbers: Sequence[float]) -> None:
        """Assign to variables and held numbers; take the former out of ``tensors``."""
        count = len(self.result.places)
        for variable, tensor in zip(self.assigns, tensors[count:], strict=True):
            variable.assign(tensor)
        del tensors[count:]
        for cell, at, number in self.held:
            cell.value = number if at is None else numbers[at]


def make_executable(
    engine: Engine,
    device: Device,
    calls: Sequence[Call],
    inputs: list[Value],
    wanted: Sequence[Value | Constant],
    free: list[Value],
) -> Executable:
    """Return the program of recorded calls, without repeated and dead ones."""
    calls, wanted = eliminate_common_calls(calls, wanted)
    calls = add_epilogues(engine, eliminate_dead_calls(calls, wanted), wanted)
    return Executable(engine, Program(device, inputs, calls, wanted), small=True, donated=free)


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

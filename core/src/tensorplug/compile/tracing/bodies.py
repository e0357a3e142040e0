"""Tracing a function for the arguments of one call: what goes in, comes out, and is assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.arguments.floats import TracedFloat
from tensorplug.compile.tracing.trace import Trace
from tensorplug.compile.tracing.values import error
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.tensors.tree import flatten
from tensorplug.tensors.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.autodiff.recording import Recording
    from tensorplug.compile.arguments.floats import Floats
    from tensorplug.compile.tracing.calls import Call, Read
    from tensorplug.compile.tracing.values import Constant, Value
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.registry import State


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


class Request(NamedTuple):
    """A call for which a function is traced: ``arguments`` are the tensors among its arguments.

    ``floats``: the inputs from Python floats; ``donated``: the tensors that the call gives up;
    ``committed``: whether an argument is committed to the device.
    """

    engine: Engine
    device: Device
    body: Body
    arguments: Sequence[Tensor]
    floats: Floats
    donated: Sequence[Tensor] = ()
    committed: bool = False


class Traced(NamedTuple):
    """What tracing a function has recorded.

    ``calls`` compute ``wanted`` from ``inputs``, of which those in ``free`` are donated.
    ``wanted``: the results, then the new contents of the variables in ``assigns``. ``reads``: the
    inputs from variables and generators; ``changed``: the arguments to which it assigns;
    ``state``: the registry state of its plans; ``autocast``: the dtype of the block of its calls;
    ``committed``: whether the results are; ``sizes_read``: the sizes on which the function
    depends, None if that is not known.
    """

    calls: list[Call]
    inputs: list[Value]
    wanted: list[Value | Constant]
    free: list[Value]
    result: Result
    reads: list[Read]
    assigns: list[Any]
    changed: list[int]
    state: State
    autocast: DType | None
    committed: bool
    sizes_read: frozenset[int] | None


def trace_request(request: Request) -> Traced:
    """Trace the function of a request."""
    engine, device, body, _, floats, _, committed = request
    state, autocast = engine.registry.state, current_context().autocast
    trace = Trace(engine, device, floats, committed=committed)
    entries = [trace.enter(body.leaves[at]) for at in body.places]
    try:
        result, changed = trace_body(
            trace, body, [tensor for _, tensor in entries], autocast=autocast
        )
        assigned = list(trace.assigned.values())
        returned = [*result.tensors, *(tensor for _, tensor in assigned)]
        results = [trace.operand(tensor) for tensor in returned]
    finally:
        recorded = trace.finish()
    inputs = [value for value, _ in entries] + [read.value for read in recorded.reads]
    inputs += recorded.numbers
    return Traced(
        recorded.calls,
        inputs,
        results,
        find_donated(inputs, request),
        result.without_tensors(),
        recorded.reads,
        [variable for variable, _ in assigned],
        changed,
        state,
        autocast,
        trace.committed,
        None if trace.exact else frozenset(trace.sizes_read | trace.sizes_declared),
    )


def find_donated(inputs: Sequence[Value], request: Request) -> list[Value]:
    """Return the inputs of a program whose memory it may use: of tensors given up."""
    donated = {id(tensor) for tensor in request.donated}
    arguments = request.arguments
    return [value for value, x in zip(inputs, arguments) if id(x) in donated]  # noqa: B905  # reads follow

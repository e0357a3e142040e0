"""``tensorplug.compile``: tracing functions once and running them as programs."""

from __future__ import annotations

import functools
import inspect
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from tensorplug.compile.arguments import recompiles
from tensorplug.compile.arguments.donation import Donation
from tensorplug.compile.arguments.floats import Floats, find, remember
from tensorplug.compile.arguments.signatures import (
    FoundArrayError,
    append_signature,
    convert_arrays,
)
from tensorplug.compile.derivatives import run_recorded
from tensorplug.compile.specialized import Specialized
from tensorplug.compile.templates import Template
from tensorplug.compile.tracing.bodies import Body, Request, trace_request
from tensorplug.compile.tracing.replays import may_replay, without_sizes
from tensorplug.contract.arguments import flag
from tensorplug.dispatch.commitment import find_root
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.locks import Lock
from tensorplug.errors import (
    ArgumentError,
    CompileError,
    DeviceMismatchError,
    TensorplugError,
)
from tensorplug.tensors import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.compile.programs.program import Program
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.engine import Engine


LIMIT: Final = 256
"""The number of programs that one function keeps, of 50 to 100 kilobytes each."""


Donated: TypeAlias = "int | str | Sequence[int | str]"
P = ParamSpec("P")
R = TypeVar("R")
# Of methods: the object, the other parameters, the result.
S = TypeVar("S")
Q = ParamSpec("Q")
T = TypeVar("T")


class _Decorator(Protocol):
    """``compile`` with options, for use as a decorator."""

    def __call__(self, f: Callable[P, R], /) -> Compiled[P, R]: ...


_ABSENT: Final = object()


@overload
def compile(
    f: Callable[P, R],
    *,
    static_floats: bool = False,
    donate: Donated = (),
) -> Compiled[P, R]: ...
@overload
def compile(
    *,
    static_floats: bool = False,
    donate: Donated = (),
) -> _Decorator: ...
def compile(
    f: Any = _ABSENT,
    *,
    static_floats: bool = False,
    donate: Donated = (),
) -> Any:
    """Compile ``f`` to a program of kernels that runs without Python code between them.

    The first call with arguments of a signature traces ``f``: it calls it once with tensors that
    have a type but no data. If nothing reads the sizes of the arguments, neither ``f`` nor an op,
    the trace serves other sizes, too. The kernel calls, also those of gradients, become a flat
    program without common subexpressions or dead code, which the backend may optimize, for
    example by fusing elementwise kernels. Later calls with that signature run the program.

    Tensors, NumPy arrays and Python floats in the arguments (in nested dicts, lists, tuples and
    dataclasses) are inputs; ``f`` gets the arrays as tensors. All other values are static and
    belong to the signature, like the dtypes, shapes and devices of the tensors, the structure of
    the arguments and the active device. So does the value of a float that ``f`` uses as a Python
    number: in a condition, in ``math.exp``, as an attribute of an op.
    A function keeps 256 programs. The ninth signature that differs from the others in more than
    the sizes of tensors causes a ``RecompileWarning``, or the ninth size, if the backend compiles
    code for each.

    Side effects of ``f`` (printing, appending to a list, changing objects) happen only in
    tracing. Captured tensors become constants. Every call reads and assigns variables, and draws
    new random numbers from generators. ``f`` must not read the data of a tensor that depends on
    an argument, by ``float``, ``if``, ``item`` or ``numpy``.

    Gradients flow through a compiled function as through ``f``; the backward pass is a program
    too. A derivative of the backward pass calls ``f`` itself again: compile the function that
    computes the second derivative instead.

    With observers (``profile``, ``debug``, ``trace_dispatch``) the program runs kernel by kernel.
    Inside another compiled function, ``f`` becomes part of that function. (docs/compile.md)

    Args:
        f: a function of tensors, or of trees with tensors in them; it returns such a tree.
            Without it, ``compile`` returns a decorator.
        static_floats: whether each value of a Python float gets a program of its own.
        donate: positions or names of arguments that every call gives up: their tensors are
            disposed of, unless ``f`` assigns to them, and their memory is free for other values
            after its last use in the program: ``cache[:, i:i + n] = rows`` then writes these rows
            alone. Other tensors that share the memory keep it.

    Returns:
        A function with the arguments and results of ``f``; ``program(*args, **kwargs)`` returns
        the program.

    Raises:
        ArgumentError: ``f`` is not a function, or is a coroutine or generator function;
            ``static_floats`` is not a bool; ``f`` has no parameter that ``donate`` names.
        CompileError: in a call: ``f`` does something a program cannot, at the line in the
            message; an argument is neither a tensor nor hashable. Also the errors of ``f``.

    Examples:
        >>> step = tp.compile(lambda w, slope, rate: w - rate * slope)
        >>> w, slope = tp.asarray([1.0, 2.0]), tp.asarray([1.0, 1.0])
        >>> [step(w, slope, rate).tolist() for rate in (0.5, 0.25)]  # one program
        [[0.5, 1.5], [0.75, 1.75]]

    """
    flag(static_floats, "compile: static_floats")
    if f is _ABSENT:
        return functools.partial(compile, static_floats=static_floats, donate=donate)
    if not callable(f):
        raise ArgumentError(f"compile: f must be a function, got {type(f).__name__}")
    started = (
        inspect.iscoroutinefunction(f)
        or inspect.isgeneratorfunction(f)
        or inspect.isasyncgenfunction(f)
    )
    if started:
        raise ArgumentError(
            f"compile: {getattr(f, '__name__', f)!r} is a coroutine or generator function, whose "
            "body does not run when it is called; compile a function that returns tensors"
        )
    return Compiled(f, static_floats=static_floats, donate=donate)


class Compiled(Generic[P, R]):
    """A compiled function; see ``compile``."""

    def __init__(
        self,
        f: Callable[P, R],
        *,
        static_floats: bool = False,
        donate: Donated = (),
    ) -> None:
        functools.update_wrapper(self, f)
        self._f = f
        self._donation = None if donate == () else Donation.of(f, donate)
        self._static_floats = static_floats
        self._known: dict[Hashable, Specialized] = {}
        self._templates: dict[Hashable, Template] = {}
        self._lock = Lock()
        self._traced = 0  # signatures
        self._latest: recompiles.Signature = {}

    def __repr__(self) -> str:
        count = len(set(map(id, self._known.values())))
        return f"<compiled {self._f!r}, {count} programs>"

    @overload
    def __get__(self, instance: None, _owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Compiled[Concatenate[S, Q], T], instance: S, _owner: type | None = None
    ) -> Callable[Q, T]: ...
    def __get__(self, instance: Any, _owner: type | None = None) -> Any:
        """Return the function bound to an object, as a method."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the program for these arguments, tracing the function if there is none yet."""
        context = current_context()
        engine: Engine = engine_of(context)  # type: ignore[assignment]  # the only class of engines
        device = engine.devices.of(context)
        if not device.is_real:
            return self._f(*args, **kwargs)
        tensors: list[Tensor] = []
        floats: list[float] = []
        try:
            special = self._specialized(engine, device, (args, kwargs), tensors, floats)
        except FoundArrayError:
            args, kwargs = convert_arrays((args, kwargs))
            return self(*args, **kwargs)
        try:
            inputs = special.enter(context, tensors) if special.prepares else tensors
        except DeviceMismatchError:  # a variable has moved
            self._forget(special)
            return self(*args, **kwargs)
        donated, changing = (
            self._donated(special, tensors, args, kwargs) if self._donation else ((), ())
        )
        if context.recording is not None and any(tensor._node is not None for tensor in inputs):
            result = run_recorded(special, context, inputs, floats)
            for tensor in donated:
                tensor.dispose()
        else:
            result = special.run(context, inputs, floats, donated, changing)
        return special.assign_arguments(result, tensors) if special.changed else result  # type: ignore[no-any-return]  # what f returned

    def _forget(self, special: Specialized) -> None:
        with self._lock:
            for key in [key for key, known in self._known.items() if known is special]:
                del self._known[key]

    def _donated(
        self, special: Specialized, tensors: Sequence[Tensor], args: Any, kwargs: Any
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the tensors to dispose of, and those that get new contents instead."""
        assert self._donation is not None
        assigned = {id(tensors[at]) for at in special.changed}
        donated = self._donation.tensors(args, kwargs)
        return (
            [tensor for tensor in donated if id(tensor) not in assigned],
            [tensor for tensor in donated if id(tensor) in assigned],
        )

    def program(self, *args: P.args, **kwargs: P.kwargs) -> Program:
        """Return the program that a call with these arguments runs; print it to see its calls.

        Raises: the same errors as a call.
        """
        context = current_context()
        engine = cast("Engine", engine_of(context))
        device = engine.devices.of(context)
        arguments = convert_arrays((args, kwargs))
        return self._specialized(engine, device, arguments, [], []).executable.program

    def _specialized(
        self,
        engine: Engine,
        device: Device,
        arguments: Any,
        tensors: list[Tensor],
        floats: list[float],
    ) -> Specialized:
        """Return the program for (args, kwargs); append the inputs among them to the lists."""
        args, kwargs = arguments
        autocast = current_context().autocast
        key: list[Hashable] = [device] if autocast is None else [device, autocast]
        dynamic = None if self._static_floats else floats
        try:
            append_signature(args, key, tensors, dynamic)
            if kwargs:
                append_signature(kwargs, key, tensors, dynamic)
        except RecursionError:
            tree.flatten(arguments)  # says which container is endless
            raise
        signature = tuple(key)
        known = find(self._known, signature, floats) if floats else self._known.get(signature)
        if known is not None and known.state is engine.registry.state:
            known.used = True
            return known
        with self._lock:
            known = find(self._known, signature, floats)
            if known is not None and known.state is engine.registry.state:
                return known
            for tensor in tensors:
                tensor._live()
            body = Body.of(self._f, args, kwargs, static_floats=self._static_floats)
            donated = self._donation.tensors(args, kwargs) if self._donation else ()
            root = find_root(tensors, "compile")
            request = Request(
                engine, root or device, body, tensors, Floats(floats), donated, root is not None
            )
            try:
                special = self._trace(request, signature)
            except DeviceMismatchError as error:
                if root is not None or not error.device:
                    raise
                # The function uses tensors that were placed there, which decide.
                there = request._replace(device=engine.open(error.device), committed=True)
                special = self._trace(there, signature)
            remember(self._known, signature, floats, special, LIMIT)
            before, self._latest = self._latest, self._describe(device, args, kwargs, special)
            counts = known is None and not special.shared
            self._traced += counts
            many = counts and self._traced == recompiles.MANY + 1
            now = self._latest
        if many:
            recompiles.warn(self._f, before, now)
        return special

    def _describe(
        self, device: Device, args: Any, kwargs: Any, special: Specialized
    ) -> recompiles.Signature:
        # Only the last two before the warning are compared.
        if not recompiles.MANY - 1 <= self._traced <= recompiles.MANY:
            return {}
        read = None if self._static_floats else special.floats.read
        return recompiles.describe(self._f, device, args, kwargs, read)

    def _trace(self, request: Request, signature: tuple[Hashable, ...]) -> Specialized:
        """Trace the function; if it needs data that depend on floats, with all floats static.

        The same if it hands a float to code that takes instances of ``float`` alone, such as
        ``decimal.Decimal``, which then raises a TypeError.
        """

        def trace(request: Request) -> Specialized:
            return self._replay(request, signature) or self._trace_anew(request, signature)

        numbers = request.floats.given
        if numbers:
            try:
                return trace(request)
            except (CompileError, TypeError) as error:
                # The next trace reports any other reason.
                if isinstance(error, TensorplugError) and not isinstance(error, CompileError):
                    raise
        return trace(request._replace(floats=Floats(numbers, static=True)))

    def _trace_anew(self, request: Request, signature: tuple[Hashable, ...]) -> Specialized:
        """Trace the function; keep the trace, if calls with other sizes may use it again."""
        traced = trace_request(request)
        special = Specialized.of(request, traced)
        if may_replay(traced):
            template = Template(traced, request, special)
            key = without_sizes(signature)
            remember(self._templates, key, request.floats.given, template, LIMIT)
        return special

    def _replay(self, request: Request, signature: tuple[Hashable, ...]) -> Specialized | None:
        """Return the program for a call, by a trace at other sizes; None if there is none."""
        if not self._templates:
            return None
        template = find(self._templates, without_sizes(signature), request.floats.given)
        return None if template is None else template.specialize(request)

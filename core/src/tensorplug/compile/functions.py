"""``tensorplug.compile``: tracing functions once and running them as programs."""

from __future__ import annotations

import functools
import inspect
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, cast

from tensorplug.compile.derivatives import run_recorded
from tensorplug.compile.signatures import append_signature
from tensorplug.compile.specialized import Body, Specialized
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.locks import Lock
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tensorplug.compile.programs import Program
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.engine import Engine

__all__ = ["LIMIT", "Compiled", "compile"]

LIMIT: Final = 64
"""The number of programs that one function keeps; the oldest is dropped first."""


def compile(f: Callable[..., Any]) -> Compiled:
    """Compile ``f`` to a program of kernels that runs without Python code between them.

    The first call with arguments of a signature traces ``f``: it calls it once with tensors that
    have a type but no data. The kernel calls, including those of gradients, become a flat
    program without common subexpressions or dead code, which the backend may optimize, for
    example by fusing elementwise kernels. Later calls with that signature run the program.

    Tensors in the arguments (in nested dicts, lists, tuples and dataclasses) are inputs. All
    other values are static and belong to the signature, like the dtypes, shapes and devices of
    the tensors, the structure of the arguments and the active device. Pass numbers that change
    in every call as tensors. A function keeps 64 programs.

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

    Returns:
        A function with the arguments and results of ``f``; ``program(*args, **kwargs)`` returns
        the program.

    Raises:
        ArgumentError: ``f`` is not a function, or is a coroutine or generator function.
        CompileError: in a call: ``f`` does something a program cannot, at the line in the
            message; an argument is neither a tensor nor hashable. Also the errors of ``f``.

    """
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
    return Compiled(f)


class Compiled:
    """A compiled function; see ``compile``."""

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self._f = f
        self._known: dict[Hashable, Specialized] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<compiled {self._f!r}, {len(self._known)} programs>"

    def __get__(self, instance: object, _owner: type | None = None) -> Any:
        """Return the function bound to an object, as a method."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments, tracing the function if there is none yet."""
        context = current_context()
        engine = cast("Engine", engine_of(context))
        device = engine.devices.of(context)
        if device.trace is not None:
            return self._f(*args, **kwargs)
        tensors: list[Tensor] = []
        special = self._specialized(engine, device, (args, kwargs), tensors)
        inputs = special.enter(context, tensors)
        if context.recording is not None and any(tensor._node is not None for tensor in inputs):
            result = run_recorded(special, context, inputs)
        else:
            result = special.run(context, inputs)
        return special.assign_arguments(result, tensors) if special.changed else result

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """Return the program that a call with these arguments runs; print it to see its calls.

        Raises: the same errors as a call.
        """
        context = current_context()
        engine = cast("Engine", engine_of(context))
        device = engine.devices.of(context)
        return self._specialized(engine, device, (args, kwargs), []).executable.program

    def _specialized(
        self, engine: Engine, device: Device, arguments: Any, tensors: list[Tensor]
    ) -> Specialized:
        """Return the program for (args, kwargs); append their tensors to ``tensors``."""
        args, kwargs = arguments
        key: list[Hashable] = [device]
        append_signature(args, key, tensors)
        if kwargs:
            append_signature(kwargs, key, tensors)
        signature = tuple(key)
        found = self._known.get(signature)
        if found is not None and found.state is engine.registry.state:
            return found
        with self._lock:
            found = self._known.get(signature)
            if found is None or found.state is not engine.registry.state:
                for tensor in tensors:
                    tensor._live()
                found = Specialized(engine, device, Body.of(self._f, args, kwargs), tensors)
                self._remember(signature, found)
        return found

    def _remember(self, signature: Hashable, found: Specialized) -> None:
        self._known.pop(signature, None)
        while len(self._known) >= LIMIT:
            del self._known[next(iter(self._known))]
        self._known[signature] = found

"""``tensorplug.compile``: functions that are traced once and then run as programs."""

from __future__ import annotations

import functools
import inspect
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, cast

from tensorplug.compile.derivatives import differentiated
from tensorplug.compile.signatures import signed
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
"""Signatures that one function keeps programs for; the oldest is forgotten first."""


def compile(f: Callable[..., Any]) -> Compiled:
    """Return ``f`` as a function that runs as a program of kernels, without Python in between.

    At the first call with arguments of one signature ``f`` is traced: called once with tensors
    that have a type but no data. The kernels it calls, gradients included, become a flat program,
    in which nothing is computed twice or for nothing, and which the backend may rewrite: chains
    of elementwise kernels run as one. Later calls with that signature run the program.

    Tensors in the arguments (in nested dicts, lists, tuples and dataclasses) are inputs. All else
    is static and belongs to the signature, as do the tensors' dtypes, shapes and devices, the
    structure of the arguments and the active device: a number that changes at every call belongs
    in a tensor. A function keeps 64 programs.

    What ``f`` does beside calling ops (printing, appending to a list, changing objects) happens
    when it is traced only. Tensors that it takes from around it are constants of the program.
    Variables are read and assigned at every call, and generators of random numbers draw anew.
    The data of a tensor that depends on an argument cannot be asked for, by ``float``, ``if``,
    ``item`` or ``numpy``.

    Gradients flow through a compiled function as through ``f``; the backward pass is a program
    too. Where a derivative of that pass is wanted, ``f`` itself is called again: compile the
    function that computes the second derivative instead.

    While observers watch (``profile``, ``debug``, ``trace_dispatch``) the program runs kernel by
    kernel. Inside another compiled function the body is part of that one. (docs/compile.md)

    Args:
        f: a function of tensors, or of trees with tensors in them; it returns such a tree.

    Returns:
        A function with the arguments and results of ``f``; ``program(*args, **kwargs)`` shows
        what would run.

    Raises:
        ArgumentError: ``f`` is no function, or a coroutine or generator function.
        CompileError: when called: ``f`` does what a program cannot, with the line where; an
            argument is neither a tensor nor hashable. Besides, what ``f`` itself raises.

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
        """Return the function bound to an object, whose method it then is."""
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
        given = special.enter(context, tensors)
        if context.recording is not None and any(item._node is not None for item in given):
            result = differentiated(special, context, given)
        else:
            result = special.run(context, given)
        return special.finished(result, tensors) if special.changed else result

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """Return the program that a call with these arguments runs; print it to see the calls.

        Raises: as a call does.
        """
        context = current_context()
        engine = cast("Engine", engine_of(context))
        device = engine.devices.of(context)
        return self._specialized(engine, device, (args, kwargs), []).executable.program

    def _specialized(
        self, engine: Engine, device: Device, given: Any, tensors: list[Tensor]
    ) -> Specialized:
        key: list[Hashable] = [device]
        signed(given[0], key, tensors)
        if given[1]:
            signed(given[1], key, tensors)
        signature = tuple(key)
        found = self._known.get(signature)
        if found is not None and found.state is engine.registry.state:
            return found
        with self._lock:
            found = self._known.get(signature)
            if found is None or found.state is not engine.registry.state:
                for tensor in tensors:
                    tensor._live()
                found = Specialized(engine, device, Body.of(self._f, *given), tensors)
                self._remember(signature, found)
        return found

    def _remember(self, signature: Hashable, found: Specialized) -> None:
        self._known.pop(signature, None)
        while len(self._known) >= LIMIT:
            del self._known[next(iter(self._known))]
        self._known[signature] = found

"""Traces of a compiled function that are used again at other sizes, and their programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.compile.fusion.arrangements import shape_of
from tensorplug.compile.fusion.steps import reads_attributes, sizes_of_step
from tensorplug.compile.specialized import Specialized
from tensorplug.compile.tracing.bodies import find_donated
from tensorplug.compile.tracing.replays import Resizing, replay
from tensorplug.compile.tracing.sizes import Sizes
from tensorplug.compile.tracing.values import Value
from tensorplug.errors import ArgumentError, KernelNotFoundError, KernelRefusedError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorplug.compile.programs.executable import Executable
    from tensorplug.compile.tracing.bodies import Request, Traced


_KEPT: Final = 8  # programs of a trace, which differ in how numbers of elements compare


class _Kept(NamedTuple):
    """A program for certain sizes, and those of which its groups depend."""

    executable: Executable
    sizes: Sizes
    fixed: frozenset[int]


class Template:
    """A trace that may be used again, and the floats that its function read.

    ``used``: whether it was since it was stored.
    """

    used = False

    def __init__(self, traced: Traced, request: Request, special: Specialized) -> None:
        self.device, self.floats = request.device, request.floats
        self._traced = traced
        self._resizing = Resizing(traced, len(request.arguments))
        self._programs: dict[Hashable, _Kept] = {}
        known = Sizes({size: size for size in self._resizing.sizes})
        self._keep(special, known)

    def specialize(self, request: Request) -> Specialized | None:
        """Return the program for another call; None if only a trace of it can tell."""
        if (
            self._traced.state is not request.engine.registry.state
            or self.device is not request.device  # a tensor that the function uses decides
        ):
            return None
        sizes = self._resizing.find(request)
        if sizes is None:
            return None
        self.used = True
        request = request._replace(floats=self.floats)
        try:
            special = self._repeat(request, sizes) or self._replay(request, sizes)
        except (KernelRefusedError, KernelNotFoundError, ArgumentError):
            # A kernel leaves a call of these sizes to its decomposition, or refuses it.
            return None
        special.shared = True
        return special

    def _repeat(self, request: Request, sizes: Sizes) -> Specialized | None:
        """Return a program that was made for other sizes, with kernels for these."""
        traced = self._traced
        if find_donated(traced.inputs, request) != traced.free:
            return None
        for order, kept in self._programs.items():
            there = Sizes({kept.sizes.new[size]: now for size, now in sizes.new.items()})
            fixed = all(there.new[size] == size for size in kept.fixed)
            if fixed and kept.executable.order(there) == order:
                executable = kept.executable.at_sizes(there)
                if executable is None:
                    return None
                wanted = [
                    Value(sizes.place(value.placement))
                    if isinstance(value, Value)
                    else sizes.constant(value)
                    for value in traced.wanted
                ]
                return Specialized(request, traced._replace(wanted=wanted), executable)
        return None

    def _replay(self, request: Request, sizes: Sizes) -> Specialized:
        """Return the program of the calls of the trace."""
        special = Specialized.of(request, replay(self._traced, request, sizes))
        self._keep(special, sizes)
        return special

    def _keep(self, special: Specialized, sizes: Sizes) -> None:
        """Keep a program for calls of other sizes, if all that depends on them is known."""
        if not special.is_general or len(self._programs) == _KEPT:
            return
        calls = special.executable.program.calls
        if any(call.plan.extents and reads_attributes(call.plan) for call in calls):
            return
        fixed = frozenset([size for call in calls for size in sizes_of_step(call.plan)])
        made = {size for call in calls for value in call.outputs for size in shape_of(value)}
        if made.union(fixed).issubset(sizes.new.values()):
            order = special.executable.order()
            self._programs.setdefault(order, _Kept(special.executable, sizes, fixed))

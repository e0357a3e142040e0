"""Whole programs: what a backend compiles gives the same results, in parts and loaded again, too.

Each program runs three times over: with all calls that the backend takes; with gaps, so that parts
follow one another; and with executables that were written and read again. Nothing is read from the
user's cache, or kept there: what is judged is what this backend compiles now.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dispatch, specs
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.checks.programs.compiling import PROGRAMS, compiles, judged
from tensorplug_conformance.comparing.compare import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tensorplug.plugin import programs
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session

Way = Literal["all calls", "with gaps", "loaded"]

_GAP: Final = 3  # of so many calls one is refused
_SIDE: Final = 300  # of matrices of 360 kB, whose memory is worth taking


class _Asked:
    """Stands between the core and the backend. ``parts``: how many programs were compiled."""

    def __init__(self, offered: programs.CompilesPrograms, way: Way) -> None:
        self._programs, self._way = offered, way
        self.compiler = f"{offered.compiler}, asked by the suite"  # so that no program is kept
        self.parts = 0

    def take_calls(
        self, program: programs.TracedProgram, offered: Collection[int]
    ) -> Collection[int]:
        taken = sorted(self._programs.take_calls(program, offered))
        return [at for at in taken if at % _GAP] if self._way == "with gaps" else taken

    def compile_program(self, program: programs.TracedProgram) -> programs.CompiledProgram | None:
        made = self._programs.compile_program(program)
        self.parts += made is not None
        if made is None or self._way != "loaded":
            return made and _Unkept(made)
        content = made.serialize()
        if not content:
            raise NotMeasuredError("programs of the backend cannot be written")
        return _Unkept(self._programs.load_program(program, content))

    def load_program(
        self,
        program: programs.TracedProgram,  # noqa: ARG002  # of the protocol
        content: bytes,  # noqa: ARG002  # of the protocol
    ) -> programs.CompiledProgram:
        raise AssertionError("nothing was kept")


@dataclasses.dataclass
class _Unkept:
    made: programs.CompiledProgram

    def bind(self, constants: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        return self.made.bind(constants)

    def serialize(self) -> bytes:
        return b""


def _asking(session: Session, way: Way, run: Callable[[], None]) -> int:
    """Run something in a session whose programs are asked for in this way; return the parts."""
    device: Any = session.device
    before = device.capabilities
    if before.programs is None:
        raise NotMeasuredError("the backend does not compile programs")
    if not isinstance(before.programs.compiler, str) or not before.programs.compiler:
        raise CheckFailedError(f"compiler is {before.programs.compiler!r}, must be a text")
    asked = _Asked(before.programs, way)
    device.capabilities = dataclasses.replace(before, programs=asked)
    try:
        run()
    finally:
        device.capabilities = before
    return asked.parts


def _whole(way: Way, target: Target, opened: Callable[[], Session]) -> str:
    """Judge all programs, compiled in this way."""
    session, parts = opened(), 0
    for program in PROGRAMS:
        try:
            run = partial(compiles, program, target, lambda: session)
            parts += _asking(session, way, run)
        except CheckFailedError as error:
            raise CheckFailedError(f"{program.name}: {error}") from None
    if not parts:
        raise CheckFailedError("the backend compiles no part of any program")
    return f"{parts} parts of {len(PROGRAMS)} programs"


def _donated(_target: Target, opened: Callable[[], Session]) -> None:
    """A donated argument's memory may be taken, but not where something else sees it."""
    session = opened()

    @tp.compile(donate=0)
    def moved(x: Any, y: Any) -> Any:
        z = x * 2 + y
        return z - 1, tp.sum(z)

    def run() -> None:
        host = np.linspace(-1, 1, _SIDE * _SIDE, dtype=np.float32).reshape(_SIDE, _SIDE)
        exact = host.astype(np.float64)
        meant = [exact * 3 - 1, np.asarray(np.sum(exact * 3))]
        with session.entered():
            for shares in (False, True):
                x, y = tp.asarray(host), tp.asarray(host)
                view = tp.reshape(x, (-1,)) if shares else None
                same = dispatch(specs.IDENTITY, x) if shares else None
                judged([each.numpy() for each in moved(x, y)], meant, "a donated argument", 8)
                for other in (view, same, y):
                    if other is not None and not same_bits(
                        np.reshape(other.numpy(), host.shape), host
                    ):
                        raise CheckFailedError("a program wrote into memory that something shares")

    _asking(session, "all calls", run)


CHECKS: Final = (
    *(Check(4, f"whole programs: {way}", partial(_whole, way)) for way in get_args(Way)),
    Check(4, "whole programs: donated", _donated),
)

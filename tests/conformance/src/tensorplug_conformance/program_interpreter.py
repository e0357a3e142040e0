"""What whole programs mean: an interpreter, which makes one call after the other on the CPU.

It defines ``TracedProgram``, and is what wrong compilers of programs are made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tensorplug.plugin import Tensor
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import programs


@cache
def _session() -> Session:
    return Session(build_engine, "cpu")


@dataclass(frozen=True)
class Interpreted:
    """A ``CompiledProgram`` for buffers of the backend ``cpu``."""

    program: programs.TracedProgram

    def serialize(self) -> bytes:
        """Return something: the program itself is given again when it is loaded."""
        return self.program.digest().encode()

    def bind(self, constants: Sequence[Any]) -> Callable[..., list[Any]]:
        """Return the function that makes the calls."""
        session, program = _session(), self.program

        def tensor(at: int, buffer: Any) -> Tensor:
            return Tensor._of(buffer, session.device.placement(program.types[at]))

        fixed = {at: session.upload(array) for at, array in program.literals.items()}
        fixed |= {at: tensor(at, x) for at, x in zip(program.constants, constants, strict=True)}

        def run(*buffers: Any) -> list[Any]:
            known = dict(fixed)
            known |= {at: tensor(at, x) for at, x in zip(program.inputs, buffers, strict=True)}
            for call in program.calls:
                operands = [
                    [known[each] for each in operand]
                    if isinstance(operand, tuple)
                    else operand
                    if operand is None
                    else known[operand]
                    for operand in call.inputs
                ]
                spec = session.engine.registry.spec(call.kernel)
                made = session.call(spec, operands, call.attributes)
                known |= dict(zip(call.outputs, made, strict=True))
            return [known[at]._buffer for at in program.outputs]

        return run

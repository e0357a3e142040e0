"""Programs as data: what a compiled function calls, for backends that compile whole programs.

The core asks a backend with the optional capability ``CompilesPrograms`` for each compiled
function once: which calls it takes, and then for each *part*, made of calls it took, an
executable. The other calls run as they do without the capability.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import numpy as np

    from tensorplug.contract.spec import TensorType

__all__ = ["CompiledProgram", "CompilesPrograms", "ProgramCall", "TracedProgram"]


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One call of a kernel. Values are identified by their numbers.

    ``kernel``: the name of its spec. ``attributes``: as a kernel gets them. ``inputs``: a number
    for each input; a tuple of them for a variadic one, None for an absent one.
    """

    kernel: str
    attributes: Mapping[str, Any]
    inputs: tuple[int | tuple[int, ...] | None, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TracedProgram:
    """Calls in an order in which they can run; each value is written once.

    ``types``: of the values, by number. ``inputs``: values that each run gets; ``donated``: those
    among them whose memory the run may take for its results. ``constants``: values that are the
    same in each run, such as weights, which ``CompiledProgram.bind`` gets. ``literals``: small
    ones, as arrays on the host. ``outputs``: values to return.
    """

    types: tuple[TensorType, ...]
    inputs: tuple[int, ...]
    constants: tuple[int, ...]
    calls: tuple[ProgramCall, ...]
    outputs: tuple[int, ...]
    literals: Mapping[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    donated: frozenset[int] = frozenset()

    def digest(self, *versions: str) -> str:
        """Return a hexadecimal digest of the program and of what else its code depends on.

        Equal programs have equal digests in all processes. Contents of ``constants`` do not count.
        """
        literals = [(at, array.dtype.str, array.tobytes()) for at, array in self.literals.items()]
        calls = [
            (call.kernel, sorted(call.attributes.items()), call.inputs, call.outputs)
            for call in self.calls
        ]
        numbers = (self.inputs, self.constants, self.outputs, sorted(self.donated))
        text = repr((versions, [str(type_) for type_ in self.types], numbers, literals, calls))
        return hashlib.sha256(text.encode()).hexdigest()


class CompiledProgram(Protocol):
    """What a backend has made of a program."""

    def bind(self, constants: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        """Return the function that runs the program, given the buffers of ``constants``.

        It takes the buffers of ``inputs`` positionally, and returns those of ``outputs``, which
        are new. Several threads may call it at the same time. Constants may be prepared here: they
        live as long as the function, and do not change.
        """

    def serialize(self) -> bytes:
        """Return what ``load_program`` makes the program of; empty if it cannot be kept."""


@runtime_checkable
class CompilesPrograms(Protocol):
    """A backend that compiles whole programs, or large parts of them.

    It has kernels all the same: they run outside of compiled functions, and where observers ask to
    see each call. The core keeps what is compiled in the user's folder for caches.
    """

    @property
    def compiler(self) -> str:
        """Versions of the compiler and of the device's code: a part of the key of what is kept.

        Whatever changes the code belongs here: options, the processor's features.
        """

    def take_calls(self, program: TracedProgram, offered: Collection[int]) -> Collection[int]:
        """Return the places of the calls that ``compile_program`` takes.

        ``offered``: the places of calls of this backend's own kernels, on its own device, with
        known shapes. Others, such as loops and branches, are in ``program`` to be looked at alone.
        """

    def compile_program(self, program: TracedProgram) -> CompiledProgram | None:
        """Return an executable for a part of a program, all of whose calls were taken.

        None declines it; so does ``KernelRefusedError``, whose text says why in the program's
        text. Results are as accurate as those of the backend's kernels.
        """

    def load_program(self, program: TracedProgram, content: bytes) -> CompiledProgram:
        """Return the executable that ``serialize`` has written, perhaps in another process.

        The core has checked that ``content`` is whole, and of this program, compiler and device.

        Raises:
            KernelRefusedError: it is of no use; the program is compiled again.

        """

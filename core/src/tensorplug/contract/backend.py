"""The Backend protocol: what a distribution must offer beside its kernels.

Everything else (shapes, dtypes, promotion, gradients, the tape) is the core's business. A
*buffer* is whatever the backend makes of one; the core never looks inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec, TensorType

__all__ = [
    "Backend",
    "Buffer",
    "Compiles",
    "CountsBuffers",
    "DeviceInfo",
    "ExclusiveBuffer",
    "FlatCall",
    "FlatProgram",
    "Measures",
    "OverwritesBuffers",
    "SharesHostMemory",
    "SurvivesFork",
    "Trims",
]

Buffer = Any


@runtime_checkable
class Backend(Protocol):
    """One device of one backend, opened.

    All methods may be called from several threads at once.
    """

    @property
    def name(self) -> str:
        """The backend's name, the same as its entry point's: ``"cpu"``."""

    @property
    def device(self) -> str:
        """What the hardware is, for people: ``"NumPy 2.4 on x86_64"``."""

    @property
    def dtypes(self) -> frozenset[DType]:
        """The dtypes that tensors may have here."""

    def from_host(self, array: np.ndarray[Any, Any]) -> Buffer:
        """Return a buffer with a copy of ``array``: later writes to it must not be seen.

        Raises:
            BackendMemoryError: when the device has no room for it.

        """

    def to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """Return the contents as a NumPy array of the buffer's shape; nobody writes into it."""

    def describe(self, buffer: Buffer) -> TensorType:
        """Return the dtype and shape that ``buffer`` really has.

        Raises:
            TypeError: when it is not a buffer of this backend.

        """

    def allocation(self, buffer: Buffer) -> tuple[Hashable, int]:
        """Return what names the memory under ``buffer`` (shared by its views), and its bytes."""

    def synchronize(self) -> None:
        """Wait until all work submitted so far is done; raise what it raised."""

    def memory(self) -> Mapping[str, int]:
        """Return the backend's own figures, in bytes or counts, by name; may be empty."""

    def close(self) -> None:
        """Give everything back. Afterwards no other method is called."""


@runtime_checkable
class SurvivesFork(Protocol):
    """A backend that keeps working in a forked child of the process that opened it.

    Without this, or where it is False, the core lets nothing reach the backend in the child:
    tensors there raise ``BackendClosedError``, and so does opening it again.
    """

    @property
    def survives_fork(self) -> bool:
        """Whether buffers and kernels are good in the child, as those in plain memory are."""


@runtime_checkable
class CountsBuffers(Protocol):
    """A backend that can tell how many buffers there are, for the leak check of debug mode.

    Nothing is asked before that check is on, so counting may begin with the first question.
    """

    def live_buffers(self) -> int:
        """Return how many pieces of memory buffers hold now, to the last one.

        Each counts once, however many buffers share it; what a pool keeps for reuse does not.
        """

    def counts(self, buffer: Buffer) -> bool:
        """Return whether the memory under ``buffer`` is among those.

        It is not where there is none, where it was freed, or where another library owns it.
        """

    def stop_counting(self) -> None:
        """Give up what counting costs until the next question, which may not know of all then."""


@runtime_checkable
class Measures(Protocol):
    """A backend whose device takes the time of its work itself, for profiles and ``time``.

    Times taken by waiting before and after include what it costs to hand the work over.
    """

    def measure(self) -> Callable[[], int]:
        """Begin to measure; the function returned ends it.

        That waits for what the calling thread has submitted in between, and returns the
        nanoseconds that the device worked on it. Measurements may overlap and lie in each other.
        """


@runtime_checkable
class Trims(Protocol):
    """A backend that keeps memory for reuse and can give it back."""

    def trim(self) -> int:
        """Give back what no buffer holds; return how many bytes that were."""


@runtime_checkable
class SharesHostMemory(Protocol):
    """A backend whose buffers lie in the host's memory, where others may read them in place.

    Without this, tensors are exchanged with other libraries by copies.
    """

    def share_from_host(self, array: np.ndarray[Any, Any]) -> Buffer:
        """Return a buffer over the very memory of ``array``, which it keeps alive.

        The owner of the memory may write into it later; the tensor then has the new values.
        """

    def share_to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """Return an array over the very memory of ``buffer``, which it keeps alive.

        Read-only where nobody may write there at all. Waits for pending work.
        """


@runtime_checkable
class OverwritesBuffers(Protocol):
    """A backend that can keep memory in which an assignment writes in place.

    Without this, ``x[key] = value`` copies x each time.
    """

    def exclusive(self, buffer: Buffer) -> ExclusiveBuffer | None:
        """Return memory with a copy of ``buffer``, for one tensor alone; None if that cannot be.

        Raises:
            BackendMemoryError: the device has no room for the copy.

        """


class ExclusiveBuffer(Protocol):
    """Memory that one tensor owns. Others see it only through the buffers that it lends."""

    def lend(self) -> Buffer:
        """Return a new buffer over the memory, without a copy.

        It is on loan, and so is every buffer, array or capsule that comes from it and shares the
        memory, for as long as any of them lives.
        """

    def overwrite(self, key: tuple[int | slice | None, ...], value: Buffer) -> bool:
        """Write ``value``, which broadcasts, at ``key``, by NumPy's rules; return True.

        Return False, and write nothing, while a loan other than the newest one lives.
        """


@dataclass(frozen=True, slots=True)
class FlatCall:
    """One call of a flat program. Buffers are named by the numbers of their slots.

    ``inputs`` has one entry per declared input: a slot, a tuple of them, or None for an absent
    one. ``run`` takes the buffers in this form, lists for tuples, and returns one, or if there
    are ``multiple_outputs`` a sequence, also of one. ``spec`` and ``attributes`` say what is
    computed; ``spec`` is None where only ``run`` knows. ``name`` is for people.
    """

    name: str
    spec: KernelSpec | None
    attributes: Mapping[str, Any]
    inputs: tuple[int | tuple[int, ...] | None, ...]
    outputs: tuple[int, ...]
    multiple_outputs: bool
    run: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FlatProgram:
    """Calls in an order in which they can run; each slot is filled once.

    ``types``: what lies in each slot. ``constants``: slots that hold the same buffer at every run.
    ``outputs``: slots that are wanted at the end; what lies in others is dropped after its last
    use.
    """

    calls: Sequence[FlatCall]
    types: Sequence[TensorType]
    constants: Mapping[int, Buffer]
    outputs: frozenset[int]


@runtime_checkable
class Compiles(Protocol):
    """A backend that runs several calls of a compiled program faster together than one by one."""

    def compile_program(self, program: FlatProgram) -> Sequence[FlatCall]:
        """Return calls that do the same, in an order in which they can run.

        They fill the slots in ``program.outputs``, and those others that their own calls read;
        results are the same within the accuracy of the kernels that they replace. Programs run in
        several threads at once. Buffers of others, constants too, are not written into.
        """


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a plugin says of one of its devices before it is opened.

    ``hardware`` and ``driver`` are for people; ``memory`` is in bytes, None where unknown;
    ``dtypes`` are those that tensors may have there, None where only opening it would tell.
    ``refused`` is why the backend does not open it, "" where it does.
    """

    hardware: str
    driver: str = ""
    memory: int | None = None
    dtypes: frozenset[DType] | None = None
    refused: str = ""

"""The Backend protocol and the protocols of optional capabilities.

The core handles everything else (shapes, dtypes, promotion, gradients, the tape). A *buffer* is
an object of the backend, which the core does not inspect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.groups import Group
    from tensorplug.contract.spec import TensorType


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
        """A description of the hardware: ``"NumPy 2.4 on x86_64"``."""

    @property
    def dtypes(self) -> frozenset[DType]:
        """The supported dtypes."""

    def from_host(self, array: np.ndarray[Any, Any]) -> Buffer:
        """Return a buffer with a copy of ``array``, which the caller may change later.

        Raises:
            BackendMemoryError: the device has no room for it.

        """

    def to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """Return the contents as a NumPy array of the buffer's shape; callers only read it.

        Raises:
            DeviceError: what should have made them failed; ``op`` names the kernel.

        """

    def describe(self, buffer: Buffer) -> TensorType:
        """Return the actual dtype and shape of ``buffer``.

        Raises:
            TypeError: it is not a buffer of this backend.

        """

    def allocation(self, buffer: Buffer) -> tuple[Hashable, int]:
        """Return a key of the memory of ``buffer``, which its views share, and its bytes."""

    def synchronize(self) -> None:
        """Wait until all work submitted so far is done.

        Raises:
            DeviceError: some of it failed, and no call has raised that before; each is told once.

        """

    def memory(self) -> Mapping[str, int]:
        """Return the backend's own figures, in bytes or counts, by name; may be empty."""

    def close(self) -> None:
        """Release all resources. No other method is called afterwards."""


@runtime_checkable
class SurvivesFork(Protocol):
    """A backend that keeps working in a forked child of the process that opened it.

    Without this, or if it is False, the core does not call the backend in the child: its tensors
    raise ``BackendClosedError``, and so does opening it again.
    """

    @property
    def survives_fork(self) -> bool:
        """Whether buffers and kernels work in the child, like those in plain memory."""


@runtime_checkable
class CountsBuffers(Protocol):
    """A backend that can count its live buffers, for the leak check of debug mode.

    Only that check calls these methods, so counting may start with the first call.
    """

    def live_buffers(self) -> int:
        """Return the exact number of allocations in use by buffers.

        An allocation counts once, even if several buffers share it; free memory in a pool does
        not count.
        """

    def counts(self, buffer: Buffer) -> bool:
        """Return whether the memory of ``buffer`` is counted.

        It is not if it is empty, was freed, or belongs to another library.
        """

    def stop_counting(self) -> None:
        """Stop counting until the next call, which need not count older buffers."""


@runtime_checkable
class Measures(Protocol):
    """A backend whose device has a clock of its own, for profiles and ``time``.

    Times by the host's clock include the overhead of submitting work.
    """

    def measure(self) -> Callable[[], int]:
        """Start a measurement, and return the function that ends it.

        That function waits for the work that the calling thread has submitted in between, and
        returns its time on the device in nanoseconds. Measurements may overlap and be nested.
        """


@runtime_checkable
class Trims(Protocol):
    """A backend that keeps memory for reuse and can give it back."""

    def trim(self) -> int:
        """Release memory that no buffer uses; return the number of bytes."""


@runtime_checkable
class SharesHostMemory(Protocol):
    """A backend whose buffers are in host memory, so that other libraries can share them.

    Without this, data are copied to and from other libraries.
    """

    def share_from_host(self, array: np.ndarray[Any, Any]) -> Buffer:
        """Return a buffer that shares the memory of ``array`` and keeps it alive.

        If the owner of the memory writes to it later, the tensor has the new values.
        """

    def share_to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """Return an array that shares the memory of ``buffer`` and keeps it alive.

        It is read-only if the memory is read-only. Waits for pending work.
        """


@runtime_checkable
class ExchangesDeviceMemory(Protocol):
    """A backend that shares device memory with other libraries through DLPack, both ways.

    Without this, data of other libraries pass through host memory. A backend on CUDA takes and
    gives PyTorch's, CuPy's and JAX's CUDA tensors in this way.
    """

    def dlpack_device(self) -> tuple[int, int]:
        """Return DLPack's type and number of this device: ``(2, 0)`` for the first CUDA device.

        The same in every call. Not host memory, which is for ``SharesHostMemory``.
        """

    def to_dlpack(
        self,
        buffer: Buffer,
        *,
        stream: Any,
        max_version: tuple[int, int] | None,
        copy: bool | None,
    ) -> Any:
        """Return a capsule of the elements on this device, as ``__dlpack__`` of the standard.

        ``stream``: the consumer's, which must see the finished elements. ``copy``: True for
        memory of its own, None to share the memory if possible.

        Raises:
            CopyNeededError: ``copy`` is False, but the memory cannot be shared.
            BufferError: DLPack cannot express the buffer, or the stream does not fit the device.

        """

    def from_dlpack(self, producer: Any, *, copy: bool | None) -> Buffer:
        """Return a buffer of the data of an object with ``__dlpack__``, which is on this device.

        It keeps the memory alive as long as it shares it. ``copy``: as for ``to_dlpack``.

        Raises:
            DTypeError: the dtype is not supported.
            CopyNeededError: ``copy`` is False, but the memory cannot be shared.

        """


@runtime_checkable
class OverwritesBuffers(Protocol):
    """A backend that supports assignments in place.

    Without this, every ``x[key] = value`` copies x.
    """

    def exclusive(self, buffer: Buffer) -> ExclusiveBuffer | None:
        """Return a copy of ``buffer`` that one tensor owns; None if that is not possible.

        Raises:
            BackendMemoryError: the device has no room for the copy.

        """


class ExclusiveBuffer(Protocol):
    """Memory that one tensor owns. All access is through the buffers that it lends."""

    def lend(self) -> Buffer:
        """Return a new buffer that shares the memory.

        The loan lasts as long as this buffer, or any buffer, array or capsule derived from it
        that shares the memory, is alive.
        """

    def overwrite(self, key: tuple[int | slice | None, ...], value: Buffer) -> bool:
        """Write ``value``, which broadcasts, at ``key``, by NumPy's rules; return True.

        Return False, and write nothing, if a loan other than the newest one lasts.
        """


@runtime_checkable
class ReusesMemory(Protocol):
    """A backend whose groups and kernels may write results into the memory of their inputs.

    Without this, all take new memory: ``GroupOutput.into`` is None, and what an ``InPlace`` kernel
    would write there is not asked for.
    """

    def owns_memory(self, buffer: Buffer) -> bool:
        """Return whether the object ``buffer`` alone gives access to its memory.

        Views, arrays and capsules that share the memory must keep ``buffer`` alive by a reference,
        or make this False, as must memory of another library and memory that is read-only. The
        core makes sure that it holds the only reference to ``buffer`` before anything writes.
        """


@runtime_checkable
class CompilesGroups(Protocol):
    """A backend that runs several kernels, such as a chain of elementwise ones, as one.

    The core finds groups of calls in compiled programs, and forms groups of the steps of single
    large calls. It asks for each group once, and keeps the answer.
    """

    @property
    def least_group(self) -> int:
        """The number of elements from which a group saves time, however few calls it has.

        The core asks for groups over fewer elements only in compiled functions, where such a
        group takes the place of at least four kernel calls.
        """

    @property
    def functions(self) -> frozenset[str]:
        """The elementary functions that the device computes: names in ``expressions.FUNCTIONS``.

        Each is one operation of a group, whether or not there is a kernel for it. The core spells
        out all others by ``expressions.OPERATIONS``, as ``algorithms.elementary.expand`` does.
        """

    def compile_group(self, group: Group) -> Callable[..., Sequence[Buffer]] | None:
        """Return a function that computes a group.

        None declines the group; so does ``KernelRefusedError``, whose text says why in the
        program's text and in ``explain``.

        The function takes the buffers of ``group.inputs`` positionally, and returns buffers for
        ``group.outputs``, which are new; it must not change an input but as ``GroupOutput.into``
        allows. Several threads may call it at the
        same time. Its results are as accurate as those of the backend's kernels. If the backend
        declines, the core asks for parts of the group, or runs the kernels one by one. Whether
        it declines depends on the group alone, so that a program always gives the same bits.
        """


@runtime_checkable
class BindsConstants(Protocol):
    """A backend whose kernels prepare constants of programs, such as the weights of a network.

    Without this, each run prepares them again.
    """

    def bind_constants(
        self, call: Callable[..., Any], constants: Sequence[Any]
    ) -> Callable[..., Any] | None:
        """Return a kernel for inputs of which some are always the same; None to decline.

        The function takes the same arguments as ``call``, gives the same bits, and may keep what
        it made of the constants: they do not change, and live as long as the program.

        Args:
            call: what a kernel of this backend returned when it was prepared, or a kernel.
            constants: one entry per input: its buffer if it is a constant, else None.

        """


@runtime_checkable
class Widens(Protocol):
    """A backend that says which narrow floats and small integers it leaves to the core.

    Without this, these are the dtypes of ``dtypes.WIDENED``: no integers.
    """

    @property
    def widens(self) -> frozenset[DType]:
        """The dtypes for which kernels without ``dtypes=`` are not asked.

        The core computes these calls in a wider dtype, and rounds once: in float32, or in int32
        for int8, int16, uint8 and uint16 (others have no effect). A kernel that is asked may still
        decline a call of a narrow float, to the same effect.
        """


@runtime_checkable
class FlushesSubnormals(Protocol):
    """A backend whose arithmetic replaces subnormal numbers by 0.

    Without this, it keeps them. Copies and kernels that only move elements keep every bit anyway.
    The conformance suite's strict profile demands subnormal results; its vendor profile accepts
    zeros in their place, in these dtypes alone.
    """

    @property
    def flushes_subnormals(self) -> frozenset[DType]:
        """The dtypes in which subnormal operands or results may become 0; never float64.

        A complex dtype follows that of its parts.
        """


@runtime_checkable
class LimitsBuffers(Protocol):
    """A backend whose device limits the size of a single buffer, whatever memory is free.

    Without this, a tensor may take all of the device's memory. The conformance suite leaves out
    the calls with a larger tensor, counts them, and checks the limit.
    """

    @property
    def largest_buffer(self) -> int:
        """The bytes of the largest tensor, as NumPy counts them, of dtypes other than bool.

        A larger one raises ``BackendMemoryError``.
        """


@runtime_checkable
class GuidesAuthors(Protocol):
    """A backend that says where authors of kernels read how its kernels are written.

    Without this, errors of kernels that take a buffer for a NumPy array name "its documentation".
    """

    @property
    def kernel_guide(self) -> str:
        """A module or a page, as it ends a sentence: ``the module acme.kernels``."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A plugin's description of one of its devices before it is opened.

    ``hardware`` and ``driver`` are text for users; ``memory`` is in bytes, None if unknown;
    ``dtypes`` are the supported ones, None if they are unknown before opening. ``refused`` is the
    reason why the backend does not open the device, "" if it does.
    """

    hardware: str
    driver: str = ""
    memory: int | None = None
    dtypes: frozenset[DType] | None = None
    refused: str = ""

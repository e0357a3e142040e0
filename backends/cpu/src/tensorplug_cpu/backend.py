"""The CPU as a backend: its buffers are NumPy arrays."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import BackendMemoryError, DType, Group, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu import gaps, groups
from tensorplug_cpu.constants import bind
from tensorplug_cpu.jit.stepping import bodies
from tensorplug_cpu.memory import tracing as memory_tracing
from tensorplug_cpu.memory.exclusive import ExclusiveArray
from tensorplug_cpu.memory.pool import Lease, pool

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tensorplug.algorithms import loop_bodies
    from tensorplug_cpu.arrays import Array


_references: Final[Callable[[Any], int]] = getattr(sys, "getrefcount", id)


def _count_of_view() -> int:
    view = np.empty(1)[:]
    base = view.base
    return _references(base)


_OF_VIEW: Final = _count_of_view()
"""The number of references to an array that has one view, and is in a local variable."""


class CpuBackend:
    """Buffers are ``numpy.ndarray``, of rank 0 too, with any strides, and never written to."""

    survives_fork = True  # plain memory, and NumPy starts no threads of its own
    functions = frozenset(expressions.FUNCTIONS)

    @property
    def name(self) -> str:
        """The entry point's name."""
        return "cpu"

    @property
    def device(self) -> str:
        """NumPy's version and the kind of processor."""
        return f"NumPy {np.__version__} on {platform.machine() or 'an unknown machine'}"

    @property
    def dtypes(self) -> frozenset[DType]:
        """All of them."""
        return dt.STORED

    def from_host(self, array: Array) -> Array:
        """Return a copy of ``array`` in row-major order.

        Raises:
            BackendMemoryError: when there is no room for it.

        """
        type_ = TensorType(dt.of(array.dtype), array.shape)
        try:
            return np.array(array, dtype=type_.dtype.numpy, order="C", copy=True, subok=False)
        except MemoryError as error:
            raise BackendMemoryError(
                f"cpu: no room for {type_} ({type_.nbytes} bytes): {error}"
            ) from error

    def to_host(self, buffer: Array) -> Array:
        """Return the buffer itself."""
        return buffer

    def share_from_host(self, array: Array) -> Array:
        """Return a view of ``array``; the owner of its memory may change the values."""
        return array.view(np.ndarray)

    def share_to_host(self, buffer: Array) -> Array:
        """Return the buffer itself."""
        return buffer

    def exclusive(self, buffer: Array) -> ExclusiveArray:
        """Return a copy that one tensor owns."""
        return ExclusiveArray(buffer)

    def describe(self, buffer: Any) -> TensorType:
        """Return dtype and shape.

        Raises:
            TypeError: when ``buffer`` is not an array; a NumPy scalar is not one.

        """
        if not isinstance(buffer, np.ndarray):
            raise TypeError(f"a buffer of the cpu backend is a numpy.ndarray, not {buffer!r:.60}")
        return TensorType(dt.of(buffer.dtype), buffer.shape)

    def allocation(self, buffer: Array) -> tuple[Hashable, int]:
        """Return the identity of the memory's owner, and its size in bytes.

        The owner is an array, or an object of another library. If such an object does not tell
        its size, the size is that of the array over it. Text outside the elements of an array of
        strings is counted with the array.
        """
        owner: Any = buffer
        size = buffer.nbytes
        # Between a view and its array there may be an object of another class, with a base too.
        while getattr(owner, "base", None) is not None:
            owner = owner.base
            size = getattr(owner, "nbytes", size)
        if buffer.dtype == dt.string.numpy and isinstance(owner, np.ndarray):
            size += memory_tracing.text_bytes(owner)
        return id(owner), int(size)

    def live_buffers(self) -> int:
        """Return how many arrays hold memory of NumPy's; see ``memory.tracing.live_arrays``."""
        return memory_tracing.live_arrays()

    def counts(self, buffer: Array) -> bool:
        """Return whether the memory is NumPy's own."""
        return memory_tracing.owns_memory(buffer)

    def stop_counting(self) -> None:
        """Stop tracing, if counting started it."""
        memory_tracing.stop()

    @property
    def least_group(self) -> int:
        """The elements from which a group is worth its loops."""
        return groups.least_elements()

    def compile_group(self, group: Group) -> Callable[..., list[Array]] | None:
        """Return a function that computes a group in one pass, or block by block."""
        return gaps.compile_group(group)

    def compile_loop(self, body: loop_bodies.LoopBody) -> Callable[..., list[Array]] | None:
        """Return a function that runs all steps of a loop natively."""
        return bodies.compile_loop(body)

    def bind_constants(
        self, call: Callable[..., Any], constants: Sequence[Array | None]
    ) -> Callable[..., Any] | None:
        """Return a kernel that keeps what it makes of constant inputs."""
        return bind(call, constants)

    def owns_memory(self, buffer: Array) -> bool:
        """Return whether the memory is NumPy's, or a lease of the pool, and can be written to.

        NumPy makes each view, memoryview and capsule refer to the array over such memory. That
        array may be another one, if ``buffer`` is the only view of it.
        """
        base: Any = buffer.base
        if type(base) is np.ndarray and _references(base) == _OF_VIEW:
            base = base.base
        return (base is None or type(base) is Lease) and buffer.flags.carray

    def synchronize(self) -> None:
        """Do nothing: kernels have run when they return."""

    def memory(self) -> Mapping[str, int]:
        """Return the idle memory that is kept for large results."""
        return {"pool_bytes": pool.bytes, "pool_pieces": pool.pieces}

    def trim(self) -> int:
        """Free this memory; return how many bytes it was."""
        return pool.trim()

    def close(self) -> None:
        """Do nothing: the arrays are freed when the last tensor dies."""

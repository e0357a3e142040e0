"""The Backend protocol: what a distribution must offer beside its kernels.

Everything else (shapes, dtypes, promotion, gradients, the tape) is the core's business. A
*buffer* is whatever the backend makes of one; the core never looks inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import numpy as np

    from tensorplug.dtypes import DType
    from tensorplug.spec import TensorType

__all__ = ["Backend", "Buffer"]

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

"""The backend object: copies to and from the device, and what a buffer is."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tensorplug.plugin import BackendMemoryError, DeviceFaultError, OutOfRangeError, TensorType
from tensorplug.plugin import dtypes as dt

from tensorplug_example_minimal.driver import Device, Fault

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

# REPLACE: the driver's errors; programs catch those of tensorplug.
ERRORS: Final = {IndexError: OutOfRangeError, MemoryError: BackendMemoryError}


@contextmanager
def told() -> Iterator[None]:
    """Raise errors of the driver as those of tensorplug."""
    try:
        yield
    except Fault as fault:
        kind, text = fault.args
        error = ERRORS.get(kind, DeviceFaultError)
        raise error(f"minimal: {text}") from fault


class Box:
    """The data of a tensor: a handle of the device's memory, which goes with the box."""

    __slots__ = ("_free", "operand", "type")

    def __init__(self, driver: Device, type: TensorType) -> None:
        try:
            handle = driver.allocate(type.nbytes)
        except MemoryError as error:
            raise BackendMemoryError(f"minimal: {error}") from error
        self.operand = handle, type.dtype.numpy, type.shape
        self.type, self._free = type, driver.free

    def __del__(self) -> None:
        if hasattr(self, "_free"):  # not if there was no memory left
            self._free(self.operand[0])


class MinimalBackend:
    """The members of ``tensorplug.plugin.Backend``."""

    # REPLACE: the device's name, and the dtypes of its tensors: at least bool, int32 and float32.
    name, device = "minimal", f"pretended, NumPy {np.__version__}"
    dtypes = dt.BOOL | dt.INTEGER | {dt.float32, dt.float64}

    def __init__(self) -> None:
        self.driver = Device()

    def from_host(self, array: np.ndarray[Any, Any]) -> Box:
        """Return a copy of ``array`` in a box, or raise ``BackendMemoryError``."""
        box = Box(self.driver, TensorType(dt.of(array.dtype), array.shape))
        self.driver.write(box.operand[0], array.tobytes())
        return box

    def to_host(self, buffer: Box) -> np.ndarray[Any, Any]:
        """Return a copy, or raise the error of the kernel that should have written it."""
        with told():
            array: np.ndarray[Any, Any] = self.driver.read(buffer.operand)
        return array

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` unless the buffer is a box."""
        if not isinstance(buffer, Box):
            raise TypeError(f"{type(buffer).__name__} is not a Box")
        return buffer.type

    def allocation(self, buffer: Box) -> tuple[Hashable, int]:
        """Return the handle and the bytes; buffers that share memory have the same handle."""
        return buffer.operand[0], buffer.type.nbytes

    def synchronize(self) -> None:
        """Wait for the device; raise the error of a kernel that failed since the last time."""
        with told():
            self.driver.synchronize()

    def memory(self) -> Mapping[str, int]:
        """Return the device's own figure."""
        return {"used": self.driver.used()}

    def close(self) -> None:
        """Let go of the device."""
        del self.driver

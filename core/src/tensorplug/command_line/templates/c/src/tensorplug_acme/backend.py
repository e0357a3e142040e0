"""The backend object: a device of the library, and its memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt

from tensorplug_acme.library import (
    DTYPES,
    ERRORS,
    check,
    ffi,
    lib,
    message,
)

Array = np.ndarray[Any, Any]


class Box:
    """The data of a tensor: a handle of memory, which goes with the last box of it."""

    __slots__ = ("handle", "type")

    def __init__(self, handle: Any, type: TensorType) -> None:
        self.handle, self.type = handle, type


def owned(pointer: Any) -> Any:
    """Return the handle that a call has written to ``pointer``; it is freed with its last user."""
    kind = ffi.typeof(pointer).item.item.cname.removeprefix("struct ")
    return ffi.gc(pointer[0], getattr(lib, f"{kind}_free"))


class AcmeBackend:
    """The members of ``tensorplug.plugin.Backend``, and those of three capabilities."""

    name = "acme"
    dtypes = frozenset(DTYPES)

    def __init__(self, number: int = 0) -> None:
        check(lib.tp_device_open(number, opened := ffi.new("tp_device **")))
        self.opened = owned(opened)
        check(lib.tp_queue_new(self.opened, queue := ffi.new("tp_queue **")))
        self.queue = owned(queue)
        self.device = ffi.string(lib.tp_device_name(self.opened)).decode()

    def from_host(self, array: Array) -> Box:
        """Return a copy of ``array`` in a box, or raise ``BackendMemoryError``."""
        data = ffi.from_buffer(np.ascontiguousarray(array))
        made = ffi.new("tp_buffer **")
        check(lib.tp_buffer_new(self.opened, array.nbytes, data, made))
        return Box(owned(made), TensorType(dt.of(array.dtype), array.shape))

    def to_host(self, buffer: Box) -> Array:
        """Return a copy on the host; raise the error of the command that should have made it."""
        array = np.empty(buffer.type.shape, buffer.type.dtype.numpy)
        check(lib.tp_buffer_read(buffer.handle, ffi.from_buffer(array), array.nbytes))
        return array

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` unless the buffer is a box."""
        if not isinstance(buffer, Box):
            raise TypeError(f"{type(buffer).__name__} is not a Box")
        return buffer.type

    def allocation(self, buffer: Box) -> tuple[Hashable, int]:
        """Return the address of what the handle points to, and the bytes."""
        return int(ffi.cast("uintptr_t", buffer.handle)), buffer.type.nbytes

    def synchronize(self) -> None:
        """Wait for the queue; raise the first error that nobody was told."""
        check(lib.tp_synchronize(self.queue))

    def memory(self) -> Mapping[str, int]:
        """Return the bytes in use and the limit."""
        figures = ffi.new("uint64_t[2]")
        lib.tp_device_memory(self.opened, figures, figures + 1)
        return {"used": figures[0], "limit": figures[1]}

    def close(self) -> None:
        """Wait for the queue, and let go of the device."""
        ffi.release(self.queue)
        ffi.release(self.opened)

    def explain_loss(self) -> str:
        """Return why the device is lost, "" while it is not."""
        return message() if lib.tp_device_state(self.opened) else ""

    def inject_fault(self, kind: type[Exception]) -> str:
        """Let the next command fail with this error; return "", or why it cannot."""
        (status,) = (status for status, error in ERRORS.items() if error is kind)
        return message() if lib.tp_device_inject(self.opened, status) else ""

    def measure(self) -> Callable[[], int]:
        """Return a function that returns for how long the queue has computed since, in ns."""
        begin = self._mark()
        return lambda: lib.tp_event_wait(self._mark()) - lib.tp_event_wait(begin)

    def _mark(self) -> Any:
        check(lib.tp_event_new(self.queue, event := ffi.new("tp_event **")))
        return owned(event)

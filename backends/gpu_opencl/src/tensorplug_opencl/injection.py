"""Making a device fail, for tests: as far as a program can, since OpenCL has no call for it.

A command that fails in the queue cannot be had: Intel's driver, the only one tried,
runs what waits for a failed event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyopencl as cl

from tensorplug.plugin import (
    BackendMemoryError,
    DeviceError,
    DeviceFaultError,
    DeviceLostError,
)

if TYPE_CHECKING:
    from tensorplug_opencl.runtime import Runtime

_MADE = "it was made to fail"


def inject(runtime: Runtime, kind: type[DeviceError]) -> str:
    """Make the next call fail with an error of this class; return "", or why that cannot be.

    No room, and a loss, are told by the next allocation. A device that does not answer is a real
    one: its queue waits for an event that comes when the device is closed.
    """
    if kind is DeviceFaultError:
        return "OpenCL loses its context when a command fails"
    if kind in (BackendMemoryError, DeviceLostError):
        runtime.memory.pool = _FailingPool(runtime, lost=kind is DeviceLostError)  # type: ignore[assignment]  # for one call
    else:
        _block(runtime)
    return ""


def _block(runtime: Runtime) -> None:
    """Let the queue wait until the device is closed."""
    never, close = cl.UserEvent(runtime.context), runtime.close
    cl.enqueue_barrier(runtime.queue, [never])

    def release() -> None:
        never.set_status(cl.command_execution_status.COMPLETE)
        close()

    runtime.close = release  # type: ignore[method-assign]  # of this one


class _FailingPool:
    """Takes the place of a runtime's pool until it has failed, with the second try."""

    def __init__(self, runtime: Runtime, *, lost: bool) -> None:
        self._runtime, self._pool, self._lost = runtime, runtime.memory.pool, lost
        self._left = 2

    def allocate(self, _nbytes: int) -> None:
        self._left -= 1
        if self._lost or not self._left:
            self._runtime.memory.pool = self._pool
        if self._lost:
            self._runtime.health.lost = _MADE
            raise DeviceLostError(f"{self._runtime.name} is lost: {_MADE}")
        raise MemoryError(_MADE)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

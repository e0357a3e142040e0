"""What OpenCL's error codes mean for the user: one place for all translation."""

from __future__ import annotations

from typing import Final

import pyopencl as cl

from tensorplug.errors import BackendMemoryError, DeviceLostError, TensorplugError

__all__ = ["BuildError", "build_failure", "is_lost", "is_memory", "translated"]

_code = cl.status_code
MEMORY_CODES: Final = frozenset(
    {
        _code.MEM_OBJECT_ALLOCATION_FAILURE,
        _code.OUT_OF_RESOURCES,
        _code.OUT_OF_HOST_MEMORY,
        _code.INVALID_BUFFER_SIZE,
    }
)
NVIDIA_FAULT: Final = -9999  # outside the standard: a kernel touched memory that is not there
LOST_CODES: Final = frozenset(
    {
        _code.DEVICE_NOT_AVAILABLE,
        _code.INVALID_COMMAND_QUEUE,
        _code.INVALID_CONTEXT,
        _code.INVALID_DEVICE,
        _code.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        NVIDIA_FAULT,
    }
)
LOG_LINES: Final = 20


class BuildError(TensorplugError, RuntimeError):
    """The device's compiler refused a program of ours; the message holds its log."""


def is_memory(error: cl.Error) -> bool:
    """Return whether ``error`` says that memory, on the device or the host, ran out."""
    return error.code in MEMORY_CODES


def is_lost(error: cl.Error) -> bool:
    """Return whether ``error`` says that the device is gone."""
    return error.code in LOST_CODES


def translated(error: cl.Error, device: str, action: str) -> Exception:
    """Return what to raise for ``error``, which came while ``action`` was done on ``device``.

    A code that is neither about memory nor about a lost device is a fault of this package:
    the original error is returned, with a note.
    """
    text = _first_line(error)
    if error.code in LOST_CODES:
        return DeviceLostError(
            f"{device} is lost, and with it all tensors stored there: {action} failed with {text}"
        )
    if error.code in MEMORY_CODES:
        return BackendMemoryError(f"{device} ran out of memory or resources: {action}: {text}")
    error.add_note(f"while {action} on {device}")
    return error


def build_failure(error: cl.Error, device: str, kernel: str) -> BuildError:
    """Return the error for a program that does not build, with the first lines of the log."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    kept = lines[:LOG_LINES]
    if len(lines) > LOG_LINES:
        kept.append(f"... and {len(lines) - LOG_LINES} more lines")
    log = "\n".join(kept)
    return BuildError(f"the compiler of {device} refused program {kernel!r}:\n{log}")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)

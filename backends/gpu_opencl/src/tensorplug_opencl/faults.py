"""The translation of OpenCL's error codes into errors for the user."""

from __future__ import annotations

import re
from typing import Final

import pyopencl as cl

from tensorplug.plugin import (
    BackendMemoryError,
    DeviceLostError,
    KernelRefusedError,
    TensorplugError,
)
from tensorplug_opencl.machine import driver_caches

_code = cl.status_code
MEMORY_CODES: Final = frozenset(
    {
        _code.MEM_OBJECT_ALLOCATION_FAILURE,
        _code.OUT_OF_RESOURCES,
        _code.OUT_OF_HOST_MEMORY,
        _code.INVALID_BUFFER_SIZE,
    }
)
NVIDIA_FAULT: Final = -9999  # not in the standard: a kernel accessed memory out of bounds
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
# The messages of NVIDIA's compiler, and of AMD's and others based on LLVM.
_TOO_MUCH: Final = re.compile(
    r"too much (shared|local) (data|memory)|(local|shared) memory .*exceeds", re.IGNORECASE
)


class BuildError(TensorplugError, RuntimeError):
    """The device's compiler refused one of our programs; the message contains its log."""


def is_memory(error: cl.Error) -> bool:
    """Return whether ``error`` says that memory, on the device or the host, ran out."""
    return error.code in MEMORY_CODES


def is_lost(error: cl.Error) -> bool:
    """Return whether ``error`` says that the device is gone."""
    return error.code in LOST_CODES


class Health:
    """What is known of the health of an opened device; ``lost``: why it is, "" while it is not."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost = ""

    def translate(self, error: cl.Error, action: str) -> Exception:
        """Return the exception to raise for ``error``, which came from ``action``.

        A code that concerns neither memory nor a lost device is a bug in this package: the
        original error is returned, with a note.
        """
        text = _take_first_line(error)
        if error.code in LOST_CODES:
            self.lost = self.lost or f"{action} failed with {text}"
            return DeviceLostError(
                f"{self.name} is lost, and with it all tensors stored there: {action} failed with "
                f"{text}. tp.set_backend opens it anew"
            )
        if error.code in MEMORY_CODES:
            return BackendMemoryError(
                f"{self.name} ran out of memory or resources while {action}: {text}"
            )
        error.add_note(f"while {action} on {self.name}")
        return error


def explain_build_failure(
    error: cl.Error, device: str, kernel: str, platform: str = ""
) -> BuildError | KernelRefusedError:
    """Return the error for a program that does not build, with the first lines of the log.

    Some compilers refuse a program that takes too much local memory; others only report it. Some
    refuse all programs if their own cache is full: ``platform`` says whose.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    kept = lines[:LOG_LINES]
    if len(lines) > LOG_LINES:
        kept.append(f"... and {len(lines) - LOG_LINES} more lines")
    log = "\n".join(kept)
    if _TOO_MUCH.search(str(error)):
        return KernelRefusedError(
            f"program {kernel!r} takes more local memory than {device} has:\n{log}"
        )
    reason = driver_caches.explain(platform)
    cause = f", perhaps because {reason}" if reason else ""
    return BuildError(f"the compiler of {device} refused program {kernel!r}{cause}:\n{log}")


def explain_missing_kernel(device: cl.Device, name: str, program: str) -> BuildError:
    """Return the error for a program that builds, although the driver finds no kernel in it."""
    platform = device.platform.name.strip()
    folder = driver_caches.find_folder(platform)
    place = folder or f"the folder in which the driver of {platform} keeps programs"
    return BuildError(
        f"the compiler of {name} built program {program!r} without a kernel. A killed process may "
        f"have left a broken file in the driver's own cache: delete {place}"
    )


def _take_first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)

"""The exceptions and warnings of tensorplug, one class per kind of failure.

Each exception also derives from the built-in class that a Python programmer expects, so that
``except ValueError`` works.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "ArgumentError",
    "BackendClosedError",
    "BackendMemoryError",
    "BackendNotInstalledError",
    "BackendUnavailableError",
    "BackendWarning",
    "CompileError",
    "CopyNeededError",
    "DLPackNotSupportedError",
    "DTypeError",
    "DataNeededError",
    "DeviceError",
    "DeviceFaultError",
    "DeviceLostError",
    "DeviceMismatchError",
    "DeviceTimeoutError",
    "DisposedError",
    "FallbackWarning",
    "FileFormatError",
    "GradientError",
    "GradientNotFoundError",
    "InterchangeError",
    "KernelNotFoundError",
    "KernelOutputError",
    "KernelRefusedError",
    "LeakError",
    "LinAlgError",
    "NonFiniteError",
    "NotConnectedError",
    "OutOfRangeError",
    "PackageNotInstalledError",
    "PluginCollisionError",
    "PluginLoadError",
    "PluginVersionError",
    "PluginWarning",
    "RecompileWarning",
    "RegistrationError",
    "SettingsError",
    "SettingsWarning",
    "ShapeError",
    "SubscriptError",
    "TensorplugError",
    "UncheckedWarning",
]


class TensorplugError(Exception):
    """Base class of all exceptions of tensorplug."""


# Arguments ------------------------------------------------------------------------------


class ArgumentError(TensorplugError, ValueError):
    """An argument or attribute has a value that the op does not allow."""


class ShapeError(ArgumentError):
    """Shapes do not fit: a wrong rank, no broadcast, ragged nesting."""


class OutOfRangeError(ShapeError, IndexError):
    """An index or an axis is out of range, or there are too many indices."""


class SubscriptError(ArgumentError, IndexError):
    """The subscript of a tensor cannot be one: a float, text, a second ellipsis."""


class DeviceMismatchError(ArgumentError):
    """The program has placed tensors of one call on different devices.

    ``device``: the name of the second one.
    """

    def __init__(self, message: str, device: str = "") -> None:
        super().__init__(message)
        self.device = device


class DTypeError(TensorplugError, TypeError):
    """A dtype is unknown, cannot be promoted, or is not accepted by an op or a backend."""


class LinAlgError(TensorplugError, np.linalg.LinAlgError):
    """A matrix is singular or not positive definite, or an algorithm did not converge."""


class DisposedError(TensorplugError, RuntimeError):
    """A tensor was used after it had been disposed."""


# Other libraries and files ---------------------------------------------------------------


class InterchangeError(TensorplugError, BufferError):
    """Data cannot be exchanged: it is not in host memory, or DLPack has no such dtype."""


class CopyNeededError(InterchangeError, ArgumentError):
    """``copy=False`` was passed, but the data cannot be shared.

    The array API standard requires ``BufferError`` in one case and ``ValueError`` in another.
    """


class DLPackNotSupportedError(InterchangeError, AttributeError):
    """An object has no ``__dlpack__`` and ``__dlpack_device__``, which an import needs."""


class FileFormatError(TensorplugError, ValueError):
    """A file is truncated, corrupt, or of another format."""


class PackageNotInstalledError(TensorplugError, ImportError):
    """A function needs an optional package that is not installed."""


# Backends and their plugins -------------------------------------------------------------


class BackendNotInstalledError(TensorplugError, LookupError):
    """No installed distribution provides the requested backend."""


class BackendUnavailableError(TensorplugError, RuntimeError):
    """A backend is installed, but its hardware or driver is missing."""


class BackendClosedError(TensorplugError, RuntimeError):
    """A backend, or that of a tensor, has been closed."""


class DeviceError(TensorplugError):
    """Base class of what devices report, at the call or later.

    ``op``: the kernel that failed, ``"Sqrt"``; ``backend`` and ``device``: their names,
    ``"opencl"`` and ``"opencl:1"``. Each is "" where it is not known. A backend gives the op; the
    core gives the others, and the op of an error that comes with its call.
    """

    def __init__(self, *args: object, op: str = "") -> None:
        super().__init__(*args)
        self.op = op
        self.backend = ""
        self.device = ""


class BackendMemoryError(DeviceError, MemoryError):
    """A device could not allocate memory for a kernel or a transfer.

    The device goes on. One with a queue may find this out later, as with ``DeviceFaultError``.
    """


class DeviceFaultError(DeviceError, RuntimeError):
    """Work that a device had accepted failed there; its results hold no data.

    The device goes on: other tensors keep their data. A backend with a queue raises it where the
    error arrives, when a result is read or in ``synchronize``. ``tensorplug.debug`` waits for each
    kernel, so that the error names its call.
    """


class DeviceLostError(DeviceError, RuntimeError):
    """A device is gone, and with it all its data; ``tensorplug.set_backend`` opens it anew."""


class DeviceTimeoutError(DeviceLostError, TimeoutError):
    """A device did not answer within the time limit for waiting, and counts as lost."""


class PluginLoadError(TensorplugError, ImportError):
    """A plugin distribution raised an error in its import or its hooks."""


class PluginVersionError(TensorplugError, ImportError):
    """A plugin distribution requires another version of tensorplug."""


class PluginCollisionError(TensorplugError, LookupError):
    """Two installed distributions claim one plugin name."""


class RegistrationError(TensorplugError, ValueError):
    """A kernel, gradient rule, decomposition or hook is invalid, or registered twice."""


# Kernels and gradients ------------------------------------------------------------------


class KernelNotFoundError(TensorplugError, NotImplementedError):
    """A call has no native kernel, no decomposition and no fallback."""


class KernelRefusedError(TensorplugError, NotImplementedError):
    """Raised by a backend to decline a call or a group, with the reason.

    By a kernel's preparation, or by ``compile_group``.
    """


class KernelOutputError(TensorplugError, RuntimeError):
    """A kernel returned buffers without the types that its spec infers."""


class CompileError(TensorplugError, RuntimeError):
    """A function does something that cannot be part of a compiled program."""


class DataNeededError(CompileError):
    """A traced function needs the data of a tensor that has none; ``reason``: in a few words."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class LeakError(TensorplugError, RuntimeError):
    """A kernel call leaked buffers, or freed buffers that it did not allocate."""


class NonFiniteError(TensorplugError, FloatingPointError):
    """In debug mode: a kernel made a NaN or an infinity from inputs without one."""


class GradientError(TensorplugError, RuntimeError):
    """A gradient could not be computed, or a rule returned a wrong type."""


class GradientNotFoundError(GradientError, NotImplementedError):
    """A kernel on the differentiated path has no gradient rule for an input."""


class NotConnectedError(GradientError):
    """No differentiable path leads from the result back to the input."""


# Settings -------------------------------------------------------------------------------


class SettingsError(TensorplugError, ValueError):
    """An environment variable of tensorplug has a value that is not allowed."""


class SettingsWarning(UserWarning):
    """An environment variable has the prefix of tensorplug, but is unknown."""


class PluginWarning(UserWarning):
    """An extension, or a distribution's metadata, is broken; it is ignored."""


class BackendWarning(UserWarning):
    """A backend cannot do everything that was requested; the program continues.

    A preferred backend does not open, a removed one cannot return its tensors, a device or a
    kernel is not used because it crashed, or the cache on disk cannot be used.
    """


class FallbackWarning(UserWarning):
    """A kernel ran on another backend because the active one cannot run it."""


class RecompileWarning(UserWarning):
    """A compiled function was traced for many signatures, because an argument keeps changing."""


class UncheckedWarning(UserWarning):
    """A backend does not support an active check."""

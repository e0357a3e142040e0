"""Every exception that tensorplug raises on purpose, one class per kind of failure.

Each class also derives from the built-in exception that a Python programmer would
expect, so ``except ValueError`` keeps working for people who do not know us.
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
    "DeviceLostError",
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
    "RegistrationError",
    "SettingsError",
    "SettingsWarning",
    "ShapeError",
    "TensorplugError",
    "UncheckedWarning",
]


class TensorplugError(Exception):
    """Base class: ``except TensorplugError`` catches everything raised on purpose."""


# What a caller passed -------------------------------------------------------------------


class ArgumentError(TensorplugError, ValueError):
    """An argument or attribute has a value that the op does not allow."""


class ShapeError(ArgumentError):
    """Shapes do not fit: wrong rank, no broadcast, ragged nesting."""


class OutOfRangeError(ShapeError, IndexError):
    """An index lies outside of its axis, an axis outside of a shape; or too many indices."""


class DTypeError(TensorplugError, TypeError):
    """A dtype is unknown, cannot be promoted, or is not accepted by an op or a backend."""


class LinAlgError(TensorplugError, np.linalg.LinAlgError):
    """A matrix is singular or not positive definite, or its values were not found."""


class DisposedError(TensorplugError, RuntimeError):
    """A tensor was used after it had been disposed."""


# Other libraries and files ---------------------------------------------------------------


class InterchangeError(TensorplugError, BufferError):
    """Data cannot be handed over: it is not in the host's memory, or DLPack has no such dtype."""


class CopyNeededError(InterchangeError, ArgumentError):
    """``copy=False`` was said, but the data cannot be shared.

    The array API standard has ``BufferError`` for it in one place and ``ValueError`` in another.
    """


class DLPackNotSupportedError(InterchangeError, AttributeError):
    """An object has no ``__dlpack__`` and ``__dlpack_device__``, by which to import its data."""


class FileFormatError(TensorplugError, ValueError):
    """A file is not what its format says: truncated, corrupt, or of another format."""


class PackageNotInstalledError(TensorplugError, ImportError):
    """An optional package is not installed, without which a function cannot do its work."""


# Backends and their plugins -------------------------------------------------------------


class BackendNotInstalledError(TensorplugError, LookupError):
    """No installed distribution offers the backend that was asked for."""


class BackendUnavailableError(TensorplugError, RuntimeError):
    """A backend is installed, but its hardware or driver is not here."""


class BackendClosedError(TensorplugError, RuntimeError):
    """A tensor lives on a backend that has been closed."""


class BackendMemoryError(TensorplugError, MemoryError):
    """A device could not allocate what a kernel or a transfer needs."""


class DeviceLostError(TensorplugError, RuntimeError):
    """A device stopped answering; what was stored on it is gone."""


class PluginLoadError(TensorplugError, ImportError):
    """A plugin distribution raised while it was imported or while its hooks ran."""


class PluginVersionError(TensorplugError, ImportError):
    """A plugin distribution requires another version of tensorplug."""


class PluginCollisionError(TensorplugError, LookupError):
    """Two installed distributions claim one plugin name."""


class RegistrationError(TensorplugError, ValueError):
    """A kernel, gradient rule, decomposition or hook does not fit what it is registered for."""


# Kernels and gradients ------------------------------------------------------------------


class KernelNotFoundError(TensorplugError, NotImplementedError):
    """No way leads to a kernel: neither native nor decomposed nor by fallback."""


class KernelRefusedError(TensorplugError, NotImplementedError):
    """Raised by a kernel's preparation to decline these types or attributes, with the reason."""


class KernelOutputError(TensorplugError, RuntimeError):
    """A kernel returned buffers that are not what its spec infers."""


class CompileError(TensorplugError, RuntimeError):
    """A function does something that cannot be part of a compiled program."""


class LeakError(TensorplugError, RuntimeError):
    """A kernel call left buffers behind, or freed some that were not its own to free."""


class NonFiniteError(TensorplugError, FloatingPointError):
    """In debug mode: a kernel made a NaN or an infinity of inputs that have none."""


class GradientError(TensorplugError, RuntimeError):
    """A gradient could not be computed, or a rule returned something of a wrong type."""


class GradientNotFoundError(GradientError, NotImplementedError):
    """A kernel on the differentiated path has no rule for the input that needs one."""


class NotConnectedError(GradientError):
    """No differentiable path leads from the result back to the input."""


# Settings -------------------------------------------------------------------------------


class SettingsError(TensorplugError, ValueError):
    """An environment variable of ours holds a value that it does not allow."""


class SettingsWarning(UserWarning):
    """An environment variable looks like one of ours, but is not."""


class PluginWarning(UserWarning):
    """An extension, or a distribution's metadata, is broken; it was left out."""


class BackendWarning(UserWarning):
    """A backend does less than was asked of it, and the program goes on.

    A preferred one does not open, one that is removed cannot give its tensors back, a device or a
    kernel is left out because it crashed, or nothing can be kept on disk.
    """


class FallbackWarning(UserWarning):
    """A kernel ran on another backend because the active one has no way to run it."""


class UncheckedWarning(UserWarning):
    """A check that was switched on cannot be made on some backend."""

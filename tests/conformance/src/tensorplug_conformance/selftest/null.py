"""Backends that do nothing, and must fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.owner import Owner
from tensorplug.engine.engine import Engine, Opened
from tensorplug.plugin import KernelEntry, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugins.assembly import core_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from tensorplug.plugin import DType, KernelSpec, KernelTable
    from tensorplug_conformance.case import Array


NULL = "null"


class NullBackend:
    """Accepts everything, and keeps only dtype and shape."""

    name = NULL
    device = "nothing at all"
    dtypes: frozenset[DType] = dt.FIXED

    def from_host(self, array: Array) -> TensorType:
        """Forget the elements."""
        return TensorType(dt.of(array.dtype), array.shape)

    def to_host(self, buffer: TensorType) -> Array:
        """Return zeros."""
        return np.zeros(buffer.shape, dtype=buffer.dtype.numpy)

    def describe(self, buffer: Any) -> TensorType:
        """Return the type itself."""
        if not isinstance(buffer, TensorType):
            raise TypeError(f"{buffer!r} is not a buffer of the null backend")
        return buffer

    def allocation(self, buffer: TensorType) -> tuple[Hashable, int]:
        """Return the type's identity."""
        return id(buffer), buffer.nbytes

    def synchronize(self) -> None:
        """Do nothing."""

    def memory(self) -> Mapping[str, int]:
        """Return nothing."""
        return {}

    def close(self) -> None:
        """Do nothing."""


class _Kernels:
    """A table with an entry for every spec: one function prepares them all."""

    def __init__(self, specs: Sequence[KernelSpec], prepare: Callable[..., Any]) -> None:
        self._entries = [KernelEntry(spec, prepare, True, None, ("out",)) for spec in specs]

    def __iter__(self) -> Iterator[KernelEntry]:
        return iter(self._entries)


class _Source:
    """The null backend, opened without a plugin."""

    def __init__(self, kernels: _Kernels) -> None:
        self._kernels = kernels

    def names(self) -> list[str]:
        """Return its name."""
        return [NULL]

    def explain_unknown(self, name: str) -> str:
        """Return "": it opens under any name."""
        del name
        return ""

    def devices(self, name: str) -> None:
        """Return None: ``open`` decides."""

    def open(self, name: str, device: str | None) -> Opened:
        """Open it under any name."""
        del name, device
        owner = Owner("null", "0")
        table: KernelTable = self._kernels  # type: ignore[assignment]  # iterates over entries
        return Opened(NullBackend(), owner, ((owner, table),))


def _engine(prepare: Callable[..., Any]) -> Engine:
    registry = core_registry()
    specs = list(registry.state.specs.values())
    return Engine(_Source(_Kernels(specs, prepare)), registry, fallback="error")


def zeros() -> Engine:
    """Return an engine whose kernels return zeros of the right type."""

    def prepare(*_types: Any, out: Any) -> Callable[..., Any]:
        return lambda *_buffers: out

    return _engine(prepare)


def nothing() -> Engine:
    """Return an engine whose kernels return nothing."""

    def prepare(*_types: Any, out: Any) -> Callable[..., Any]:
        del out
        return lambda *_buffers: None

    return _engine(prepare)

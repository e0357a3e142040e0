"""Freeing tensors early, and seeing what is held.

Nothing here is needed for correctness: a buffer is freed when its last tensor dies. ``tidy``
frees at the end of a scope what Python would keep a little longer.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tensorplug import dispatch as seam
from tensorplug.errors import ArgumentError
from tensorplug.tensor import Tensor
from tensorplug.tree import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.device import Device

__all__ = ["DeviceMemory", "dispose", "keep", "memory", "tidy"]


class Scope:
    """The tensors made while a ``tidy`` was the innermost one."""

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self._members: dict[int, weakref.ref[Tensor]] = {}

    def adopt(self, tensor: Tensor) -> None:
        """Make ``tensor`` end with this scope."""
        self._members[id(tensor)] = weakref.ref(tensor)

    def release(self, tensor: Tensor) -> bool:
        """Let ``tensor`` outlive this scope; return whether it belonged to it."""
        member = self._members.get(id(tensor))
        # An id may have been used again; the reference tells.
        if member is None or member() is not tensor:
            return False
        del self._members[id(tensor)]
        return True

    def close(self) -> None:
        """Dispose of what still belongs to this scope."""
        for member in self._members.values():
            tensor = member()
            if tensor is not None:
                tensor.dispose()
        self._members.clear()


class _Tidy:
    """The context manager form of ``tidy``."""

    def __init__(self) -> None:
        self._entered = seam.Entrance("tidy")

    def __enter__(self) -> Self:
        frame = seam.current()
        scope = Scope(frame.scope)
        self._entered.enter(frame.replace(scope=scope))
        self._scope = scope
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.leave()
        self._scope.close()

    def hand_over(self, result: Any) -> None:
        """Give the tensors of ``result`` to the scope around this one."""
        for leaf in leaves(result):
            if isinstance(leaf, Tensor) and self._scope.release(leaf) and self._scope.parent:
                self._scope.parent.adopt(leaf)


def tidy(function: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
    """Free at the end what was made in between, except the result.

    ``tidy(f, *args)`` returns ``f(*args)``; the tensors in it (in nested dicts, lists, tuples
    and dataclasses) live on, and so do those given to ``keep``. ``with tidy():`` frees all that
    was not given to ``keep``. An exception inside frees everything made.

    Raises:
        ArgumentError: ``function`` is no function.
        RuntimeError: when one scope is entered again before it was left.

    """
    scope = _Tidy()
    if function is None:
        return scope
    if not callable(function):
        raise ArgumentError(f"tidy: needs a function, got {type(function).__name__}")
    with scope:
        result = function(*args, **kwargs)
        scope.hand_over(result)
    return result


def keep(tensor: Tensor) -> Tensor:
    """Let ``tensor`` outlive every ``tidy`` around this call; return it.

    Raises:
        ArgumentError: when it is no tensor.
        DisposedError: when it was disposed.

    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"keep: needs a tensor, got {type(tensor).__name__}")
    tensor._live()
    scope = seam.current().scope
    while scope is not None:
        scope.release(tensor)
        scope = scope.parent
    return tensor


def dispose(tree: Any) -> None:
    """Dispose of every tensor in nested dicts, lists, tuples and dataclasses."""
    for leaf in leaves(tree):
        if isinstance(leaf, Tensor):
            leaf.dispose()


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What tensors hold on one device.

    ``buffers`` and ``bytes`` count each allocation once, however many tensors share it.
    ``backend`` is what the backend says of itself (a pool's reserve, for example).
    ``transfers`` counts tensors brought here because a kernel ran here, ``fallbacks`` kernels
    that ran elsewhere, by name.
    """

    tensors: int
    buffers: int
    bytes: int
    backend: Mapping[str, int]
    transfers: int
    fallbacks: Mapping[str, int]


def memory() -> dict[str, DeviceMemory]:
    """Return what is held, by device name.

    It looks through the interpreter's live objects, so that no op pays for the accounting.
    """
    engine: Any = seam.runner(seam.current())
    return {device.name: _held(device) for device in engine.devices()}


def _held(device: Device) -> DeviceMemory:
    # Other threads may be at work: they add constants, and make and dispose of tensors.
    constants = {id(each) for each in list(device.constants.values())}
    allocations: dict[Any, int] = {}
    tensors = 0
    for each in gc.get_objects():
        if type(each) is not Tensor or id(each) in constants:
            continue
        buffer = getattr(each, "_buffer", None)
        placement = getattr(each, "_placement", None)  # absent while it is being made
        if buffer is None or placement is None or placement.device is not device:
            continue
        tensors += 1
        key, size = device.backend.allocation(buffer)
        allocations[key] = size
    return DeviceMemory(
        tensors=tensors,
        buffers=len(allocations),
        bytes=sum(allocations.values()),
        backend=dict(device.backend.memory()),
        transfers=device.counters.transfers_in,
        fallbacks=dict(device.counters.fallbacks),
    )

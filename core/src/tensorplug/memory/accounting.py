"""How much memory tensors hold: counted when somebody asks, so that no op pays for it."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.tape import CallNode
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from tensorplug.autodiff.tape import Saved
    from tensorplug.dispatch.device import Device

__all__ = ["DeviceMemory", "Memory", "memory"]


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What is held on one device.

    ``tensors`` are those alive; a variable is one, and so is what the function that ``vjp``
    returned keeps. ``buffers`` and ``bytes`` count each allocation under tensors and under
    values saved on a tape once, however many share it; ``taped`` of these buffers are held by a
    tape alone. ``constants``, not in the figures before, is the number of Python numbers that
    the engine keeps here as tensors. ``backend`` is what the backend says of itself (a pool's
    reserve, for example). ``transfers`` counts tensors brought here because a kernel ran here,
    ``fallbacks`` kernels that ran elsewhere, by name.
    """

    tensors: int
    buffers: int
    bytes: int
    taped: int
    constants: int
    backend: Mapping[str, int]
    transfers: int
    fallbacks: Mapping[str, int]


class Memory(dict[str, DeviceMemory]):
    """What is held, by device name, with totals over all devices."""

    @property
    def tensors(self) -> int:
        """Live tensors."""
        return sum(item.tensors for item in self.values())

    @property
    def buffers(self) -> int:
        """Allocations under tensors and under what tapes have saved."""
        return sum(item.buffers for item in self.values())

    @property
    def bytes(self) -> int:
        """Bytes of these allocations."""
        return sum(item.bytes for item in self.values())

    @property
    def taped(self) -> int:
        """Those of the allocations that only a tape holds."""
        return sum(item.taped for item in self.values())


def memory() -> Memory:
    """Return what is held, by device name; its attributes are totals.

    It looks through the interpreter's live objects (all but those in ``gc.freeze``'s permanent
    generation), which takes milliseconds. Other threads may go on meanwhile; what they make or
    drop at that moment is counted or not. Tensors whose backend was removed are on ``"host"``.
    """
    engine: Any = engine_of(current_context())
    counts = {
        id(device): _Count(device) for device in (*engine.devices.listed(), engine.devices.host)
    }
    for found in gc.get_objects():
        kind = type(found)
        if kind is Tensor:  # variables hold such a one
            _count_tensor(counts, found)
        elif kind is CallNode:
            _count_saved(counts, found)
    return Memory(
        (count.device.name, count.summed())
        for count in counts.values()
        if count.device is not engine.devices.host or count.tensors or count.saved
    )


class _Count:
    """The tensors and saved values of one device, while they are being found."""

    def __init__(self, device: Device) -> None:
        self.device = device
        constants = list(device.constants.values())  # other threads may add some
        self.constants = {id(constant): constant._buffer for constant in constants}
        self.tensors: list[Any] = []  # their buffers
        self.saved: list[Any] = []

    def summed(self) -> DeviceMemory:
        """Return the figures, each allocation counted once."""
        held = self._allocations(self.tensors)
        saved = self._allocations(self.saved)
        for key in self._allocations(self.constants.values()):
            saved.pop(key, None)  # tapes save numbers too
        sizes = held | saved
        counters = self.device.counters
        return DeviceMemory(
            tensors=len(self.tensors),
            buffers=len(sizes),
            bytes=sum(sizes.values()),
            taped=len(saved.keys() - held.keys()),
            constants=len(self.constants),
            backend=dict(self.device.backend.memory()),
            transfers=counters.transfers_in,
            fallbacks=dict(counters.fallbacks),
        )

    def _allocations(self, buffers: Iterable[Any]) -> dict[Hashable, int]:
        return dict(map(self.device.backend.allocation, buffers))


def _count_tensor(counts: Mapping[int, _Count], tensor: Tensor) -> None:
    buffer = getattr(tensor, "_buffer", None)
    placement = getattr(tensor, "_placement", None)  # absent while it is being made
    count = None if placement is None else counts.get(id(placement.device))
    if buffer is not None and count is not None and id(tensor) not in count.constants:
        count.tensors.append(buffer)


def _count_saved(counts: Mapping[int, _Count], node: CallNode) -> None:
    saved = [getattr(node, name, None) for name in ("saved_inputs", "saved_outputs")]
    for buffer, placement, *_ in _values(saved):
        count = counts.get(id(placement.device))
        if count is not None:
            count.saved.append(buffer)


def _values(saved: Iterable[Saved]) -> Iterator[Any]:
    """Yield (buffer, placement, ...) of what a call has saved, lists flattened."""
    for item in saved:
        if isinstance(item, list):
            yield from _values(item)
        elif item is not None:
            yield item

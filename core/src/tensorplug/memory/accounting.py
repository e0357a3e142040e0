"""How much memory tensors use. It is counted on request, at no cost for ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.tape import CallNode
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.memory.live_objects import live_objects

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from tensorplug.dispatch.device import Device


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The memory in use on one device.

    ``tensors`` are the live ones, including variables and those kept by the function that ``vjp``
    returned. ``buffers`` and ``bytes`` count each allocation of tensors and of values saved on a
    tape once, even if several share it; ``taped`` counts the buffers that only a tape holds.
    ``constants``, which the other figures exclude, is the number of Python numbers cached as
    tensors. ``backend`` are the backend's own figures (a pool's reserve, for example).
    ``transfers`` counts tensors copied to this device for its kernels, ``fallbacks`` the kernels
    that another backend ran, by name.
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
    """The memory in use, by device name, with totals over all devices."""

    @property
    def tensors(self) -> int:
        """Live tensors."""
        return sum(device.tensors for device in self.values())

    @property
    def buffers(self) -> int:
        """Allocations of tensors and of values saved on tapes."""
        return sum(device.buffers for device in self.values())

    @property
    def bytes(self) -> int:
        """Bytes of these allocations."""
        return sum(device.bytes for device in self.values())

    @property
    def taped(self) -> int:
        """The number of these allocations that only a tape holds."""
        return sum(device.taped for device in self.values())


def memory() -> Memory:
    """Return the memory in use, by device name; its attributes are totals.

    It visits all live objects of the interpreter (except those frozen by ``gc.freeze``), which
    takes milliseconds; no other thread runs meanwhile. Tensors that other threads create or free
    before or after may or may not be counted. Tensors of removed backends are on ``"host"``.

    Examples:
        >>> x = tp.ones((256, 256))
        >>> tp.memory()["cpu"].bytes >= x.nbytes
        True

    """
    engine: Any = engine_of(current_context())
    counts = {
        id(device): _Count(device) for device in (*engine.devices.listed(), engine.devices.host)
    }
    for tensor in live_objects(Tensor):  # also those of variables
        _count_tensor(counts, tensor)
    for node in live_objects(CallNode):
        _count_saved(counts, node)
    return Memory(
        (count.device.name, count.summed())
        for count in counts.values()
        if count.device is not engine.devices.host or count.tensors or count.saved
    )


class _Count:
    """The tensors and saved values found so far on one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        constants = list(device.constants.values())  # other threads may add some
        self.constants = {id(constant): constant._buffer for constant in constants}
        self.tensors: list[Any] = []  # their buffers
        self.saved: list[Any] = []

    def summed(self) -> DeviceMemory:
        """Return the figures, with each allocation counted once."""
        live = self._allocations(self.tensors)
        saved = self._allocations(self.saved)
        for key in self._allocations(self.constants.values()):
            saved.pop(key, None)  # tapes save constants, too
        sizes = live | saved
        counters = self.device.counters
        return DeviceMemory(
            tensors=len(self.tensors),
            buffers=len(sizes),
            bytes=sum(sizes.values()),
            taped=len(saved.keys() - live.keys()),
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
    for buffer, placement in node.values():
        count = counts.get(id(placement.device))
        if count is not None:
            count.saved.append(buffer)

"""Taking a backend away without losing what is stored on it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.autodiff.tape import CallNode
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import notices
from tensorplug.engine.devices import split_name
from tensorplug.errors import BackendWarning

if TYPE_CHECKING:
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.engine import Engine

__all__ = ["remove"]


def remove(engine: Engine, name: str) -> list[str]:
    """Close the devices of backend ``name``, or the one device so called; return their names.

    Its live tensors, and what a tape has saved, are moved to the host's memory first. They stay
    readable, and kernels take them as those of any other device.

    Raises:
        ArgumentError: ``name`` ends with a colon, or names a device that is not open.

    """
    devices = engine.devices.find_open(name)
    for device in devices:
        engine.devices.unlist(device)
        device.forget_plans()
        move = _Move(device, engine.devices.host)
        move.everything()
        device.retire(REMOVED)
        move.everything()  # what kernels that were running meanwhile have made
        engine.devices.finish(device, REMOVED)
        move.report()
    backend_name = split_name(name)[0]
    if not engine.devices.find_open(backend_name):
        engine.devices.unregister(backend_name)
    return [item.name for item in devices]


REMOVED = "was removed"


class _Move:
    """Brings what lives on one device to another in the host's memory.

    Tensors that share a buffer share it afterwards too.
    """

    def __init__(self, source: Device, target: Device) -> None:
        self._source = source
        self._target = target
        self._moved: dict[int, tuple[Any, Any]] = {}  # by identity: old buffer, kept alive; new
        self._failures: dict[int, BaseException] = {}

    def everything(self) -> None:
        """Move all live tensors and saved values; those that cannot be read stay."""
        for get_object_ in gc.get_objects():
            kind = type(get_object_)
            if kind is Tensor:  # variables hold such a one
                placement = getattr(
                    get_object_, "_placement", None
                )  # absent while it is being made
                if placement is not None and placement.device is self._source:
                    saved = self._saved(get_object_._buffer, placement)
                    if saved is not None:
                        get_object_._buffer, get_object_._placement = saved
            elif kind is CallNode:
                get_object_.replace_saved(self._saved_again)

    def report(self) -> None:
        """Warn of what could not be read back."""
        if self._failures:
            cause = next(iter(self._failures.values()))
            notices.warn(
                f"{len(self._failures)} buffers on {self._source.name!r} are lost, because they "
                f"could not be read back before it was removed: {cause}",
                BackendWarning,
            )

    def _saved_again(self, buffer: Any, placement: Placement) -> tuple[Any, Placement] | None:
        return self._saved(buffer, placement) if placement.device is self._source else None

    def _saved(self, buffer: Any, placement: Placement) -> tuple[Any, Placement] | None:
        if buffer is None or id(buffer) in self._failures:
            return None
        found = self._moved.get(id(buffer))
        if found is None:
            try:
                array = self._source.backend.to_host(buffer)
            except Exception as error:  # noqa: BLE001  # reported; the rest can still be saved
                self._failures[id(buffer)] = error
                return None
            # An array that owns its elements outlives the backend; a view might not.
            own = array if array.flags.owndata else np.array(array)
            found = self._moved[id(buffer)] = (buffer, own)
        return found[1], self._target.placement(placement.type)

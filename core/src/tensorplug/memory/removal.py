"""Removing a backend without losing its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.autodiff.tape import CallNode
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.devices import split_name
from tensorplug.errors import BackendWarning
from tensorplug.memory.live_objects import live_objects
from tensorplug.system import notices
from tensorplug.system.foreign_text import cause_of

if TYPE_CHECKING:
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.engine import Engine


REMOVED = "was removed"


def remove(engine: Engine, name: str, fate: str = REMOVED) -> list[str]:
    """Close the devices of backend ``name``, or the device of that name; return their names.

    First move the live tensors and the values saved on tapes to host memory. They remain readable,
    and kernels accept them like those of any other device. If closing a device raises, it is
    removed all the same, with a ``BackendWarning`` that names it. In a forked child, devices of
    the parent process are forgotten, so that the backend can be opened anew. ``fate``: what errors
    say of tensors that stay there.

    Raises:
        ArgumentError: ``name`` ends with a colon, or names a device that is not open.

    """
    backend_name, selector = split_name(name)
    parents = engine.devices.forget_parents(backend_name)
    if parents and selector:
        return parents
    devices = engine.devices.find_open(name)
    unclean: list[str] = []
    for device in devices:
        engine.devices.unlist(device)
        device.forget_plans()
        move = _Move(device, engine.devices.host)
        move.move_all()
        device.retire(fate)
        move.move_all()  # the results of kernels that were running meanwhile
        try:
            engine.devices.finish(device, fate)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the driver may be gone
            unclean.append(
                f"backend {device.name!r} of {device.owner} was removed, but closing it raised "
                f"{cause_of(error)}"
            )
        move.report()
    if not engine.devices.find_open(backend_name):
        engine.devices.unregister(backend_name)
    for message in unclean:
        notices.warn(message, BackendWarning)
    return [*parents, *(device.name for device in devices)]


def open_usable(engine: Engine, name: str) -> Device:
    """Return the device called ``name``; open another one in the place of one that is lost.

    Raises: as ``Devices.open``.
    """
    device = engine.devices.open(name)
    explain = device.capabilities.explain_loss
    cause = device.silent or (explain() if explain else "")
    if not cause:
        return device
    remove(engine, device.name, f"was lost ({cause})")
    return engine.devices.open(name)


class _Move:
    """Moves the tensors and saved values of one device to the host.

    Tensors that share a buffer still share it afterwards.
    """

    def __init__(self, source: Device, target: Device) -> None:
        self._source = source
        self._target = target
        self._moved: dict[int, tuple[Any, Any]] = {}  # by identity: (old buffer, new buffer)
        self._failures: dict[int, BaseException] = {}

    def move_all(self) -> None:
        """Move all live tensors and saved values, except those that cannot be read."""
        for tensor in live_objects(Tensor):  # also those of variables
            placement = getattr(tensor, "_placement", None)  # absent in a new tensor
            if placement is not None and placement.device is self._source:
                moved = self._move(tensor._buffer, placement)
                if moved is not None:
                    tensor._buffer, tensor._placement = moved
        for node in live_objects(CallNode):
            node.replace_saved(self._move_saved)

    def report(self) -> None:
        """Warn of buffers that could not be read back."""
        if self._failures:
            cause = next(iter(self._failures.values()))
            notices.warn(
                f"{len(self._failures)} buffers on {self._source.name!r} are lost, because they "
                f"could not be read back before it was removed: {cause}",
                BackendWarning,
            )

    def _move_saved(self, buffer: Any, placement: Placement) -> tuple[Any, Placement] | None:
        return self._move(buffer, placement) if placement.device is self._source else None

    def _move(self, buffer: Any, placement: Placement) -> tuple[Any, Placement] | None:
        if buffer is None or id(buffer) in self._failures:
            return None
        moved = self._moved.get(id(buffer))
        if moved is None:
            try:
                array = self._source.read(buffer, placement.type)
            except Exception as error:  # noqa: BLE001  # reported; move the others
                self._failures[id(buffer)] = error
                return None
            # An array that owns its elements outlives the backend; a view might not.
            copy = array if array.flags.owndata else np.array(array)
            moved = self._moved[id(buffer)] = (buffer, copy)
        return moved[1], self._target.placement(placement.type)

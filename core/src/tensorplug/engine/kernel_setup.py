"""The set-up and tear-down functions of kernels, which run once per device.

A kernel's ``setup`` runs when the device is opened, or when the kernel is registered for an open
device. Its ``teardown`` runs when the device is closed or the kernel removed. An overridden
kernel stays set up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.system.foreign_text import cause_of

if TYPE_CHECKING:
    from tensorplug.contract.entries import KernelEntry
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.registry import State


def update(device: Device, state: State) -> None:
    """Set up newly registered kernels of ``device``; tear down removed ones.

    Raises: the error of a function, with a note that names it. If a set-up fails, the kernels
        that this call has set up are torn down.
    """
    registered = {
        id(owned.entry): owned.entry
        for (_, backend_name), stack in state.kernels.items()
        if backend_name == device.backend_name
        for owned in stack
        if owned.entry.setup or owned.entry.teardown
    }
    with device.lock:
        removed = [entry for key, entry in device.installed.items() if key not in registered]
        new = [entry for key, entry in registered.items() if key not in device.installed]
        _tear_down(device, removed)
        for at, entry in enumerate(new):
            try:
                _set_up(device, entry)
            except BaseException:
                _tear_down(device, new[:at])
                raise


def clear(device: Device) -> None:
    """Tear down everything that is set up on ``device``."""
    with device.lock:
        _tear_down(device, list(device.installed.values()))


def _set_up(device: Device, entry: KernelEntry) -> None:
    if entry.setup is not None:
        try:
            entry.setup(device.backend)
        except BaseException as error:
            error.add_note(f"in the set-up of kernel {entry.spec.name!r} on {device.name!r}")
            raise
    device.installed[id(entry)] = entry


def _tear_down(device: Device, entries: list[KernelEntry]) -> None:
    """Tear all of them down, even if one raises; raise the first such error at the end."""
    first: BaseException | None = None
    for entry in reversed(entries):
        del device.installed[id(entry)]
        if entry.teardown is None:
            continue
        try:
            entry.teardown(device.backend)
        except BaseException as error:  # noqa: BLE001  # tear down the others, too
            error.add_note(f"in the tear-down of kernel {entry.spec.name!r} on {device.name!r}")
            if first is None:
                first = error
            else:
                first.add_note(f"and then {cause_of(error)}")
    if first is not None:
        raise first

"""An opened device, and where and what a tensor is.

A ``Placement`` is a tensor type on one device. There is one object for each (interned), so
that the plan for a call is found by identity, without comparing shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tensorplug.contract import capabilities
from tensorplug.contract.dtypes import string
from tensorplug.dispatch.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.owner import Owner
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.contract.tables import KernelEntry

__all__ = ["PLAN_LIMIT", "Counters", "Device", "Placement", "device_name"]

PLAN_LIMIT = 8192  # plans per device; docs/adr/0004 says how the number was chosen


class Placement:
    """A tensor type on one device."""

    __slots__ = ("__weakref__", "device", "type")

    def __init__(self, device: Device, type_: TensorType) -> None:
        self.device = device
        self.type = type_

    def __repr__(self) -> str:
        return f"{self.type} on {self.device.name}"


class Counters:
    """What happened on a device that a user may want to know of."""

    __slots__ = ("fallbacks", "transfers_in")

    def __init__(self) -> None:
        self.transfers_in = 0  # tensors moved here because a kernel ran here
        self.fallbacks: dict[str, int] = {}  # kernel name -> times it ran elsewhere


class Device:
    """One opened device of one backend: its plans, placements and constants.

    ``plans`` holds native plans by key (read without a lock on every call); ``slow_plans`` what
    else a key may lead to: a promotion, a decomposition, a fallback. ``installed``: the kernels
    whose set-up has run here. ``closed`` says that it is closed, ``fate`` why. ``host`` holds
    the strings of a device that has none. ``capabilities``: what the backend offers beside the
    protocol. ``trace``: what notes the calls made here, where none is run; None on a real device.
    """

    __slots__ = (
        "_placements",
        "backend",
        "backend_name",
        "capabilities",
        "closed",
        "constants",
        "counters",
        "fate",
        "host",
        "installed",
        "lock",
        "name",
        "owner",
        "plans",
        "slow_plans",
        "trace",
    )

    def __init__(
        self,
        name: str,
        backend_name: str,
        backend: Backend,
        owner: Owner,
        host: Device | None = None,
    ) -> None:
        self.host = host
        self.name = name
        self.backend_name = backend_name
        self.backend = backend
        self.capabilities = capabilities.of(backend)
        self.owner = owner
        self.plans: dict[Hashable, Any] = {}
        self.slow_plans: dict[Hashable, Any] = {}
        self.constants: dict[Hashable, Any] = {}
        self.counters = Counters()
        self.installed: dict[int, KernelEntry] = {}  # by identity
        self.lock = Lock()
        self.closed = False
        self.fate = ""
        self.trace: Any = None
        self._placements: WeakValueDictionary[tuple[DType, Shape], Placement] = (
            WeakValueDictionary()
        )

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.backend.device}>"

    def placement(self, type_: TensorType) -> Placement:
        """Return the one placement of ``type_`` on this device."""
        key = (type_.dtype, type_.shape)
        found = self._placements.get(key)
        if found is None:
            with self.lock:
                found = self._placements.setdefault(key, Placement(self, type_))
        return found

    def home(self, dtype: DType) -> Device | None:
        """Return where tensors of ``dtype`` live that are made or used here.

        Strings live in the host's memory where the device has none; of other dtypes that it
        lacks there are no tensors.
        """
        if dtype in self.backend.dtypes:
            return self
        return self.host if dtype is string else None

    def can_use(self, placement: Placement) -> bool:
        """Return whether a tensor with this placement can be used here as it is."""
        there = placement.device
        return there is self or (there is self.host and self.home(placement.type.dtype) is there)

    def remember(self, cache: dict[Hashable, Any], key: Hashable, value: object) -> None:
        """Put ``value`` into one of the caches, forgetting the oldest quarter when full."""
        with self.lock:
            if len(cache) >= PLAN_LIMIT:
                for old in list(cache)[: PLAN_LIMIT // 4]:
                    del cache[old]
            cache[key] = value

    def add_key(self, key: Hashable, plan: Any, known: Hashable, model: Any) -> None:
        """Let ``plan`` be found under ``key``, if ``model`` is still found under ``known``.

        Both are native plans. What is registered may have changed since the model was found; then
        the cache was cleared, and the plan must not enter it.
        """
        with self.lock:
            if self.plans.get(known) is model:
                self.remember(self.plans, key, plan)

    def retire(self, fate: str) -> None:
        """Mark it closed, for the reason ``fate``; nothing runs here from now on."""
        self.closed, self.fate = True, fate
        self.forget_plans()

    def forget_plans(self) -> None:
        """Forget every plan, because what is registered has changed."""
        with self.lock:
            self.plans.clear()
            self.slow_plans.clear()


def device_name(backend_name: str, number: int | str | None) -> str:
    """Return what a device is called; number 0 (or None) bears the backend's name."""
    return f"{backend_name}:{number}" if number else backend_name

"""Open devices, and placements of tensors on them.

A ``Placement`` is a tensor type on one device. Placements are interned, so that the plan for a
call is found by identity, without comparing shapes.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import capabilities
from tensorplug.contract.dtypes import string
from tensorplug.contract.tensor_types import unwatched
from tensorplug.dispatch.eager import EAGER
from tensorplug.dispatch.locks import Lock
from tensorplug.dispatch.waiting import Waited
from tensorplug.dispatch.weak import WeakValues

if TYPE_CHECKING:
    from collections.abc import Hashable
    from threading import RLock

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.capabilities import Capabilities
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.entries import KernelEntry
    from tensorplug.contract.owner import Owner
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType


PLAN_LIMIT = 8192  # plans per device; docs/adr/0004 gives the reason
PROGRAM_LIMIT = 1024  # of these, plans that run programs or groups: tens of kilobytes each

now: Final = count(1).__next__
"""Returns a larger number each time."""


class Placement:
    """A tensor type on one device.

    ``committed``: the program placed the tensor there, or an input of the call that computed it.
    Calls then run there, whichever device is current (``dispatch.commitment``).
    """

    __slots__ = ("__weakref__", "_free", "committed", "device", "type")

    def __init__(self, device: Device, type_: TensorType, free: Placement | None = None) -> None:
        self.device: Device = device
        self.type: TensorType = type_
        self.committed: bool = free is not None
        self._free = free  # kept, so that both have one type object

    def as_committed(self, committed: bool) -> Placement:  # noqa: FBT001  # the one argument
        """Return the placement of the same type there that is committed, or that is not."""
        return self.device.placement(self.type, committed=committed)

    def __repr__(self) -> str:
        return f"{self.type} on {self.device.name}"


class Usage:
    """When something in a cache was last used: ``last`` grows from use to use, of whatever."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: int = now()


class Counters:
    """Counts of events on a device."""

    __slots__ = ("fallbacks", "transfers_in")

    def __init__(self) -> None:
        self.transfers_in: int = 0  # tensors copied to this device for its kernels
        self.fallbacks: dict[str, int] = {}  # kernel name -> how often another backend ran it


class Device(Waited):
    """One opened device of one backend: its plans, placements and constants.

    ``plans`` holds the native plans by key, which every call reads without a lock; ``slow_plans``
    holds promotions, decompositions and fallbacks; ``programs`` those of backward passes, by what
    their tapes look like, and ``recent`` the last one of all that look alike at a glance;
    ``compiled`` those of the plans that run programs or groups, of which fewer are kept;
    ``structures`` the groups of programs that differ in sizes alone;
    ``rulings`` what dtypes decide of calls (``engine.resolution``);
    ``autocast`` those of calls inside ``engine.autocast``, by its dtype.
    ``installed``: the kernels whose set-up has run on this device. ``fate``: why the device is
    ``closed``. ``host`` holds the strings of a device that does not support them.
    ``capabilities``: the optional methods of the backend; ``dtypes``: those of its buffers;
    ``least``: see ``least_group``. ``interpreter``: decides what becomes of
    calls (``dispatch.eager``). ``interpreters``: those of the tensors here,
    by kind (``engine.interpreters``). ``root``: the real device below those that
    replace it; ``is_real``: whether it is that one, so that kernels run on buffers of the backend.
    ``wait_limit`` and ``silent``: see ``Waited``.
    """

    __slots__ = (
        "_placements",
        "autocast",
        "backend",
        "backend_name",
        "capabilities",
        "closed",
        "compiled",
        "constants",
        "counters",
        "dtypes",
        "fate",
        "host",
        "installed",
        "interpreter",
        "interpreters",
        "is_real",
        "least",
        "lock",
        "name",
        "owner",
        "plans",
        "programs",
        "recent",
        "root",
        "rulings",
        "slow_plans",
        "structures",
    )

    def __init__(
        self,
        name: str,
        backend_name: str,
        backend: Backend,
        owner: Owner,
        host: Device | None = None,
    ) -> None:
        self.host: Device | None = host
        self.root: Device = self
        self.is_real: bool = True
        self.name: str = name
        self.backend_name: str = backend_name
        self.backend: Backend = backend
        self.capabilities: Capabilities = capabilities.of(backend)
        self.dtypes: frozenset[DType] = frozenset(backend.dtypes)
        self.least: int | None = None
        self.owner: Owner = owner
        self.plans: dict[Hashable, Any] = {}
        self.slow_plans: dict[Hashable, Any] = {}
        self.programs: dict[Hashable, Any] = {}
        self.recent: dict[Hashable, Any] = {}
        self.compiled: dict[Hashable, Any] = {}
        self.structures: dict[Hashable, Any] = {}
        self.rulings: dict[Hashable, Any] = {}
        self.autocast: dict[DType, tuple[dict[Hashable, Any], dict[Hashable, Any]]] = {}
        self.constants: dict[Hashable, Any] = {}
        self.counters: Counters = Counters()
        self.installed: dict[int, KernelEntry] = {}  # by identity
        self.lock: RLock = Lock()
        self.interpreters: dict[Hashable, Any] = {}
        self.closed: bool = False
        self.fate: str = ""
        self.silent: str = ""
        self.wait_limit: float | None = None
        self.interpreter: Any = EAGER
        self._placements: WeakValues[tuple[DType, Shape, bool], Placement] = WeakValues()

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.backend.device}>"

    def placement(self, type_: TensorType, *, committed: bool = False) -> Placement:
        """Return the one placement of ``type_`` on this device, or the one of committed tensors.

        No tensor is committed to host memory, where no kernel runs.
        """
        committed = committed and self.host is not None
        key = (type_.dtype, type_.shape, committed)
        known = self._placements.get(key)
        if known is None:
            free = self.placement(type_) if committed else None
            # Again, under the lock: placements are compared by identity, so there is one of each.
            with self.lock:
                known = self._placements.get(key)
                if known is None:
                    type_ = unwatched(type_) if free is None else free.type
                    known = self._placements[key] = Placement(self, type_, free)
        return known

    def home(self, dtype: DType) -> Device | None:
        """Return the device that holds this device's tensors of ``dtype``; None if unsupported.

        It is the host for strings, if the backend does not support them.
        """
        if dtype in self.dtypes:
            return self
        return self.host if dtype is string else None

    def least_group(self) -> int | None:
        """Return the elements from which the backend compiles groups; None: it compiles none.

        The backend is asked once, at the first call rather than when it is opened: its answer may
        need the import of a compiler, for which a program that only moves data need not wait.
        """
        groups = self.capabilities.groups
        if self.least is None and groups is not None:
            self.least = groups.least_group
        return self.least

    def storage(self) -> Device:
        """Return the device that gets the data uploaded here."""
        return self

    def beside(self, device: Device) -> Device:
        """Return what ``device`` is for functions of this one's tensors: itself."""
        return device

    def commit(self, tensor: Any) -> Any:
        """Return a tensor of this device as one that the program has placed here."""
        placement = self.placement(tensor._placement.type, committed=True)
        return type(tensor)._of(tensor._buffer, placement, tensor._node)

    def carry(self, tensor: Any, device: Device) -> Any:  # noqa: ARG002  # see below
        """Return a tensor of this device on ``device``; None if its data must be copied.

        Interpreters copy what carries the tensor.
        """
        return None

    def can_use(self, placement: Placement) -> bool:
        """Return whether kernels of this device accept a tensor with this placement."""
        device = placement.device
        return device is self or (
            device is self.host and self.home(placement.type.dtype) is device
        )

    def remember(
        self, cache: dict[Hashable, Any], key: Hashable, value: object, limit: int | None = None
    ) -> None:
        """Put ``value`` into one of the caches; drop a quarter of a full cache.

        These are the oldest ones, or for values with ``usage`` those least recently used.
        """
        limit = PLAN_LIMIT if limit is None else limit
        with self.lock:
            if len(cache) >= limit:
                _drop(cache, limit // 4)
            cache[key] = value

    def keep_compiled(self, key: Hashable, plan: Any) -> None:
        """Count a cached plan among those that run programs or groups; drop others if need be."""
        with self.lock:
            # Programs hold compiled code and their constants; a plan holds next to nothing.
            if len(self.compiled) >= PROGRAM_LIMIT:
                for old in _drop(self.compiled, PROGRAM_LIMIT // 4):
                    for cache in (self.plans, self.slow_plans, *self._autocast_plans()):
                        cache.pop(old, None)
            self.compiled[key] = plan

    def caches(self, autocast: DType | None) -> tuple[dict[Hashable, Any], dict[Hashable, Any]]:
        """Return the caches like ``plans`` and ``slow_plans`` for calls inside ``autocast``.

        With None, they are these themselves.
        """
        if autocast is None:
            return self.plans, self.slow_plans
        both = self.autocast.get(autocast)
        if both is None:
            with self.lock:
                both = self.autocast.setdefault(autocast, ({}, {}))
        return both

    def add_key(self, key: Hashable, plan: Any, known: Hashable, model: Any) -> None:
        """Cache ``plan`` under ``key`` if ``model`` is still cached under ``known``.

        Both are native plans. If the registry has changed since the model was found, the cache
        was cleared, and the plan must not enter it.
        """
        with self.lock:
            if self.plans.get(known) is model:
                self.remember(self.plans, key, plan)

    def _autocast_plans(self) -> list[dict[Hashable, Any]]:
        return [plans for plans, _ in self.autocast.values()]

    def retire(self, fate: str) -> None:
        """Mark the device closed, for the reason ``fate``, and drop its plans."""
        # First, so that no other thread fills the caches again that are cleared below.
        self.closed, self.fate = True, fate
        for interpreter in list(self.interpreters.values()):
            interpreter.device.retire(fate)
        self.forget_plans()

    def forget_plans(self) -> None:
        """Drop every plan, because the registry has changed."""
        with self.lock:
            self.plans.clear()
            self.slow_plans.clear()
            self.programs.clear()
            self.recent.clear()
            self.compiled.clear()
            self.structures.clear()
            self.rulings.clear()
            for caches in self.autocast.values():  # contexts refer to them
                for cache in caches:
                    cache.clear()
            self.interpreters.clear()


def _drop(cache: dict[Hashable, Any], number: int) -> list[Hashable]:
    """Drop the oldest values without ``usage``, then those least recently used; return keys."""

    def last(key: Hashable) -> int:
        usage: Usage | None = getattr(cache[key], "usage", None)
        return 0 if usage is None else usage.last

    # Several at once: to sort a full cache for each new plan would cost more than the plan.
    dropped = sorted(cache, key=last)[:number]
    for key in dropped:
        del cache[key]
    return dropped


def device_name(backend_name: str, number: int | str | None) -> str:
    """Return the name of a device; number 0 (or None) has the backend's name."""
    return f"{backend_name}:{number}" if number else backend_name


def least_group(x: Any) -> int | None:
    """Return ``Device.least_group`` of the real device that has ``x``, also in a trace."""
    device: Device = x._placement.device.root
    return device.least_group()

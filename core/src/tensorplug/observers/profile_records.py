"""What a profile holds, for those who show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug.contract.spec import TensorType
    from tensorplug.engine.plans import How
    from tensorplug.observers.callsite import CallSite

__all__ = ["KernelRecord", "ProfileFigures", "Types"]

Types = tuple["TensorType | tuple[TensorType, ...] | None", ...]


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One kernel call that a profile saw from beginning to end.

    ``inputs`` has a type per input of the spec: a tuple of types for a list, None for an absent
    one. ``how`` is native, decomposed or fallback; ``owner`` the distribution whose code ran,
    ``device`` where it was asked for. ``depth`` counts the decompositions and fallbacks around
    it. ``start`` is in seconds after the profile's beginning. ``seconds`` is until the device
    was done, ``self_seconds`` without what calls inside it took, ``device_seconds`` what the
    device worked on it by its own clock, None where it has none. ``new_bytes`` is the memory
    under its outputs that was not there before it, ``live_bytes`` what was held after it of all
    that was made during the profile. ``site`` is the line of Python, ``thread`` the thread's
    identifier.
    """

    name: str
    inputs: Types
    outputs: tuple[TensorType, ...]
    attributes: Mapping[str, Any]
    how: How
    backend: str
    device: str
    owner: str
    depth: int
    start: float
    seconds: float
    self_seconds: float
    new_bytes: int
    live_bytes: int
    site: CallSite | None
    thread: int
    device_seconds: float | None = None


class ProfileFigures(Protocol):
    """What tables and traces show of a ``Profile``."""

    kernels: list[KernelRecord]
    uploads: int
    transfers: int
    threads: dict[int, str]

    @property
    def seconds(self) -> float:
        """The time from beginning to end, in seconds."""

    @property
    def kernel_seconds(self) -> float:
        """The time spent in kernels, in seconds."""

    @property
    def device_seconds(self) -> float | None:
        """The time that devices worked by their own clocks; None where none has one."""

    @property
    def new_bytes(self) -> int:
        """The bytes made during the profile and held at its end."""

    @property
    def peak_bytes(self) -> int:
        """The most bytes that were held at a time of those made during the profile."""

"""The records and figures of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug.contract.spec import TensorType
    from tensorplug.engine.plans import How
    from tensorplug.observers.callsite import CallSite


Types = tuple["TensorType | tuple[TensorType, ...] | None", ...]


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One kernel call of a profile.

    ``inputs`` has a type per input of the spec: a tuple of types for a list, None for an absent
    one. ``how`` is native, decomposed or fallback; ``owner`` the distribution whose code ran,
    ``device`` that of the context. ``depth`` counts the enclosing decompositions and fallbacks.
    ``start`` is in seconds since the start of the profile. ``seconds`` is the time until the
    device has finished, ``self_seconds`` the same without inner calls, ``device_seconds`` the
    time by the device's own clock, None if it has none. ``new_bytes`` is the newly allocated
    memory of its outputs, ``live_bytes`` the memory allocated during the profile and still in use
    after the call. ``site`` is the line of Python, ``thread`` the thread's identifier.
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
    """The members of a ``Profile`` that tables and traces use."""

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
        """The time by the devices' own clocks, in seconds; None if none has one."""

    @property
    def new_bytes(self) -> int:
        """The bytes allocated during the profile and in use at its end."""

    @property
    def peak_bytes(self) -> int:
        """The maximum number of bytes allocated during the profile and in use at one time."""

"""The time that a kernel call takes, and that a function takes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorplug.contract import shapes
from tensorplug.engine.current import current_engine
from tensorplug.errors import ArgumentError
from tensorplug.observers.observation import Observation, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan

__all__ = ["Timing", "time", "timed"]


class Timed(NamedTuple):
    """What a call gave, and its begin and end in nanoseconds of the clock.

    ``busy`` is how long the device worked on it by its own clock; None where it has none.
    """

    outputs: list[Tensor]
    start: int
    end: int
    busy: int | None


def timed(device: Device, run: Callable[[], list[Tensor]]) -> Timed:
    """Run and wait."""
    backend = device.backend
    backend.synchronize()
    measure = device.capabilities.measure
    measured = None if measure is None else measure()
    busy = None
    start = perf_counter_ns()
    try:
        outputs = run()
        backend.synchronize()
        end = perf_counter_ns()
    finally:
        if measured is not None:
            busy = measured()
    return Timed(outputs, start, end, busy)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a function takes, in milliseconds: medians of ``repeat`` calls.

    ``wall_ms`` is from the call until the devices have finished, ``kernel_ms`` the part spent
    in kernels, measured in calls of its own in which each kernel is waited for, ``device_ms``
    what the device worked in these by its own clock; None where it has none.
    """

    wall_ms: float
    kernel_ms: float
    repeat: int
    device_ms: float | None = None

    def __str__(self) -> str:
        inside = f"{self.kernel_ms:.3f} ms in kernels"
        if self.device_ms is not None:
            inside += f", {self.device_ms:.3f} ms on the device"
        return f"{self.wall_ms:.3f} ms, {inside} (median of {self.repeat})"


def time(function: Callable[..., Any], /, *args: Any, repeat: int = 5, **kwargs: Any) -> Timing:
    """Return how long ``function(*args, **kwargs)`` takes.

    It is called ``2 * repeat + 1`` times: once to prepare what is prepared once, then
    ``repeat`` times for the wall time and as often for the time in kernels.

    Args:
        function: what to call.
        args: its arguments.
        repeat: how many calls the medians are of.
        kwargs: its keyword arguments.

    Raises:
        ArgumentError: ``function`` is no function, or a coroutine function; ``repeat`` is no
            positive integer.

    """
    if shapes.index(repeat, "time: repeat") < 1:
        raise ArgumentError(f"time: repeat must be positive, got {repeat}")
    _wall(function, args, kwargs)
    walls = [_wall(function, args, kwargs) for _ in range(repeat)]
    inside = [_in_kernels(function, args, kwargs) for _ in range(repeat)]
    busy = [item.busy for item in inside if item.measured]
    return Timing(
        float(np.median(walls)) / 1e6,
        float(np.median([item.total for item in inside])) / 1e6,
        repeat,
        float(np.median(busy)) / 1e6 if busy else None,
    )


def _wall(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    _wait()
    start = perf_counter_ns()
    observe("time", function, args, kwargs)
    _wait()
    return perf_counter_ns() - start


def _wait() -> None:
    for device in current_engine().devices.listed():
        device.backend.synchronize()


def _in_kernels(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> _Clock:
    clock, observation = _Clock(), Observation("time")
    observation.start([clock])
    try:
        observe("time", function, args, kwargs)
    finally:
        observation.stop()
    return clock


class _Clock(threading.local):
    """An observer that adds up the time of kernel calls, inner ones once.

    ``busy`` is what devices that measure it worked; ``measured``: there was such a one.
    """

    def __init__(self) -> None:
        self.total = 0
        self.busy = 0
        self.measured = False
        self._inside = False

    def around(
        self, plan: Plan, _inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run, and add the time unless it is part of another call's."""
        if self._inside:
            return run()
        self._inside = True
        try:
            call = timed(plan.device, run)
        finally:
            self._inside = False
        self.total += call.end - call.start
        if call.busy is not None:
            self.busy += call.busy
            self.measured = True
        return call.outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Let it pass: uploads belong to the wall time."""

"""The time that a kernel call takes, and that a function takes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import shapes
from tensorplug.current import in_use
from tensorplug.errors import ArgumentError
from tensorplug.observation import Observation, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.device import Device
    from tensorplug.plans import Plan
    from tensorplug.tensor import Tensor

__all__ = ["Timing", "time", "timed"]


def timed(device: Device, run: Callable[[], list[Tensor]]) -> tuple[list[Tensor], int, int]:
    """Run and wait; return what came with the begin and end in nanoseconds of the clock."""
    wait = device.backend.synchronize
    wait()
    start = perf_counter_ns()
    outputs = run()
    wait()
    return outputs, start, perf_counter_ns()


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a function takes, in milliseconds: medians of ``repeat`` calls.

    ``wall_ms`` is from the call until the devices have finished, ``kernel_ms`` the part spent
    in kernels, measured in calls of its own in which each kernel is waited for.
    """

    wall_ms: float
    kernel_ms: float
    repeat: int

    def __str__(self) -> str:
        inside = f"{self.kernel_ms:.3f} ms in kernels"
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
    return Timing(float(np.median(walls)) / 1e6, float(np.median(inside)) / 1e6, repeat)


def _wall(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    _wait()
    start = perf_counter_ns()
    observe("time", function, args, kwargs)
    _wait()
    return perf_counter_ns() - start


def _wait() -> None:
    for device in in_use().devices():
        device.backend.synchronize()


def _in_kernels(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> int:
    clock, observation = _Clock(), Observation("time")
    observation.start([clock])
    try:
        observe("time", function, args, kwargs)
    finally:
        observation.stop()
    return clock.total


class _Clock(threading.local):
    """An observer that adds up the time of kernel calls, inner ones once."""

    def __init__(self) -> None:
        self.total = 0
        self._inside = False

    def around(
        self, plan: Plan, _inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run, and add the time unless it is part of another call's."""
        if self._inside:
            return run()
        self._inside = True
        try:
            outputs, start, end = timed(plan.device, run)
        finally:
            self._inside = False
        self.total += end - start
        return outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Let it pass: uploads belong to the wall time."""

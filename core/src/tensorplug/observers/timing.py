"""Measuring the time of kernel calls and of functions."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Self

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


class Measurement(NamedTuple):
    """The outputs of a call, and its start and end in nanoseconds of the clock.

    ``busy`` is the time by the device's own clock, None if it has none.
    """

    outputs: list[Tensor]
    start: int
    end: int
    busy: int | None


def measure(device: Device, run: Callable[[], list[Tensor]]) -> Measurement:
    """Call ``run``, wait for the device, and return the outputs and times."""
    device.synchronize()
    start_device_clock = device.capabilities.measure
    stop_device_clock = None if start_device_clock is None else start_device_clock()
    busy = None
    start = perf_counter_ns()
    try:
        outputs = run()
        device.synchronize()
        end = perf_counter_ns()
    finally:
        if stop_device_clock is not None:
            busy = stop_device_clock()
    return Measurement(outputs, start, end, busy)


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of a function in milliseconds: medians of ``repeat`` calls.

    ``wall_ms`` is the time until the devices have finished, ``kernel_ms`` the time in kernels,
    measured in separate calls that wait for each kernel, ``device_ms`` the time in these by the
    device's own clock, None if it has none.
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
    """Measure the time of ``function(*args, **kwargs)``.

    It is called ``2 * repeat + 1`` times: once to warm up, then ``repeat`` times for the wall
    time and ``repeat`` times for the time in kernels.

    Args:
        function: the function to measure.
        args: its arguments.
        repeat: the number of calls for each median; there is no limit.
        kwargs: its keyword arguments.

    Raises:
        ArgumentError: ``function`` is not a function, or is a coroutine function; ``repeat`` is
            not a positive integer.

    Examples:
        >>> timing = tp.time(tp.sin, tp.ones((100, 100)), repeat=3)
        >>> timing.repeat, timing.wall_ms > 0
        (3, True)

    """
    if shapes.index(repeat, "time: repeat") < 1:
        raise ArgumentError(f"time: repeat must be positive, got {repeat}")
    _measure_wall(function, args, kwargs)
    walls = [_measure_wall(function, args, kwargs) for _ in range(repeat)]
    clocks = [_measure_kernels(function, args, kwargs) for _ in range(repeat)]
    busy = [clock.busy for clock in clocks if clock.measured]
    return Timing(
        float(np.median(walls)) / 1e6,
        float(np.median([clock.total for clock in clocks])) / 1e6,
        repeat,
        float(np.median(busy)) / 1e6 if busy else None,
    )


def _measure_wall(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> int:
    _wait()
    start = perf_counter_ns()
    observe("time", function, args, kwargs)
    _wait()
    return perf_counter_ns() - start


def _wait() -> None:
    for device in current_engine().devices.listed():
        device.synchronize()


def _measure_kernels(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> _Clock:
    clock = _Clock()
    with _Timing(clock):
        observe("time", function, args, kwargs)
    return clock


class _Timing(Observation):
    """Shows the kernel calls of a block to a clock."""

    def __init__(self, clock: _Clock) -> None:
        super().__init__("time")
        self._clock = clock

    def __enter__(self) -> Self:
        return self._start([self._clock])


class _Clock(threading.local):
    """An observer that adds up the time of kernel calls, without inner ones.

    ``busy`` is the time by the devices' own clocks; ``measured``: whether one has a clock.
    """

    def __init__(self) -> None:
        self.total = 0
        self.busy = 0
        self.measured = False
        self._inside = False

    def around(
        self, plan: Plan, _inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run, and add the time unless the call is part of another."""
        if self._inside:
            return run()
        self._inside = True
        try:
            call = measure(plan.device, run)
        finally:
            self._inside = False
        self.total += call.end - call.start
        if call.busy is not None:
            self.busy += call.busy
            self.measured = True
        return call.outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Do nothing: uploads belong to the wall time."""

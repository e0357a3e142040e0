"""The device's own times, taken from the events of enqueued work.

A queue with profiling makes every launch slower, so there are two queues. During a measurement,
all work goes to the second one. Both are in order, and each waits for earlier work in the other.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import pyopencl as cl

if TYPE_CHECKING:
    from collections.abc import Callable


class MeasuredRuntime(Protocol):
    """What measurements need of the runtime.

    They replace its ``queue``, and ``measuring`` tells it to pass on events.
    """

    context: cl.Context
    device: cl.Device
    queue: cl.CommandQueue
    last: cl.Event | None
    lock: threading.RLock
    measuring: bool

    def translate(self, action: str, function: Callable[..., None], *args: Any) -> None:
        """Call ``function``, and translate OpenCL's errors."""


class _Open(threading.local):
    """The events of each measurement that this thread has begun, the innermost last."""

    def __init__(self) -> None:
        self.events: list[list[cl.Event]] = []


class Measurements:
    """The measurements on one runtime, by all of its threads."""

    def __init__(self, runtime: MeasuredRuntime) -> None:
        self._runtime = runtime
        self._plain = runtime.queue
        self._timed: cl.CommandQueue | None = None
        self._count = 0
        self._open = _Open()

    def begin(self) -> Callable[[], int]:
        """Start a measurement; the returned function ends it and returns nanoseconds.

        This is the device's time for the work that this thread has enqueued in between. The
        function waits for that work.
        """
        events: list[cl.Event] = []
        runtime = self._runtime
        with runtime.lock:
            self._count += 1
            try:
                self._follow_count()
            except BaseException:
                self._count -= 1
                raise
        mine = self._open.events  # this thread's, even if another one ends it
        mine.append(events)

        def end() -> int:
            mine[:] = [other for other in mine if other is not events]
            with runtime.lock:
                self._count -= 1
                self._follow_count()
            took = [0]
            runtime.translate(
                "reading times of events", lambda: took.append(_add_up_times(events))
            )
            return sum(took)

        return end

    def record(self, event: cl.Event) -> None:
        """Add ``event``, which this thread has enqueued, to the thread's measurements.

        It has no times if its queue was one without profiling, which a signal handler has replaced
        since.
        """
        if event.command_queue == self._timed:
            for events in self._open.events:
                events.append(event)

    def _follow_count(self) -> None:
        """Use the queue that the count asks for; a signal handler may change it meanwhile."""
        runtime = self._runtime
        while runtime.measuring != (self._count > 0):
            if self._count:
                runtime.translate("creating a queue with profiling", self._start)
            else:
                runtime.translate("returning to the queue without profiling", self._stop)

    def _start(self) -> None:
        if self._timed is None:
            runtime = self._runtime
            self._timed = cl.CommandQueue(
                runtime.context,
                runtime.device,
                properties=cl.command_queue_properties.PROFILING_ENABLE,
            )
        self._switch_to(self._timed)
        self._runtime.measuring = True

    def _stop(self) -> None:
        self._switch_to(self._plain)
        self._runtime.measuring = False

    def _switch_to(self, queue: cl.CommandQueue) -> None:
        """Send all further work to ``queue``, after the work in the other queue."""
        runtime = self._runtime
        before, last = runtime.queue, runtime.last
        self.order(before, queue)
        runtime.queue = queue
        if runtime.last is not last:  # a signal handler has enqueued more
            self.order(before, queue)

    def order(self, before: cl.CommandQueue, after: cl.CommandQueue) -> None:
        """Make all further work in ``after`` wait for the work in ``before``."""
        done = cl.enqueue_marker(before)
        before.flush()  # otherwise the driver might not start it
        cl.enqueue_barrier(after, wait_for=[done])


def _add_up_times(events: list[cl.Event]) -> int:
    if events:
        cl.wait_for_events(events)
    return sum(event.profile.end - event.profile.start for event in events)

"""How long a graph of tasks takes on more workers than there are: list scheduling, simulated.

The model: one scheduler sends out one task after the other, each of which takes it a fixed time.
It knows the order ahead, so that a worker which is busy does not wait for it. An idle worker takes
the task with the longest way to the end whose inputs are there; of several workers, the one that
can begin it first gets it. A worker runs one task at a time. Before that it fetches the inputs
that others hold, over a connection of its own.

The model leaves out what workers share (a network, the memory's bandwidth), limits of memory, and
that workers fetch while they compute.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


@dataclass(frozen=True, slots=True)
class Task:
    """A task: how long it runs, how large its result is, and whose results it reads."""

    seconds: float
    nbytes: int = 0
    inputs: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """What comes on top of the tasks.

    ``dispatch``: seconds of the scheduler for each task. ``bandwidth``: bytes per second that a
    worker receives. ``latency``: seconds for each input that it fetches.
    """

    dispatch: float = 0.0
    bandwidth: float = float("inf")
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What came out: the time from the first task to the last, and seconds spent on fetching.

    ``path``: the time that no number of workers can go below, ``work``: the sum of all tasks;
    ``dispatching``: the scheduler's time for all of them.
    """

    seconds: float
    fetching: float
    path: float
    work: float
    dispatching: float


def critical_path(tasks: Mapping[Hashable, Task]) -> dict[Hashable, float]:
    """Return, for each task, the seconds from its begin to the end of what needs it.

    Raises:
        ValueError: a task reads what is not there, or tasks wait for one another.

    """
    readers: dict[Hashable, list[Hashable]] = {key: [] for key in tasks}
    for key, task in tasks.items():
        for name in task.inputs:
            if name not in readers:
                raise ValueError(f"task {key!r} reads {name!r}, which no task makes")
            readers[name].append(key)
    left = {key: len(found) for key, found in readers.items()}
    ready = [key for key, count in left.items() if not count]
    found: dict[Hashable, float] = {}
    while ready:
        key = ready.pop()
        found[key] = tasks[key].seconds + max((found[one] for one in readers[key]), default=0.0)
        for name in tasks[key].inputs:
            left[name] -= 1
            if not left[name]:
                ready.append(name)
    if len(found) < len(tasks):
        raise ValueError("tasks wait for one another")
    return found


def simulate(tasks: Mapping[Hashable, Task], workers: int, costs: Costs = Costs()) -> Plan:
    """Return what list scheduling makes of a graph on so many workers."""
    ranks = critical_path(tasks)
    order = {key: index for index, key in enumerate(tasks)}  # among equals the first one
    waits = {key: len(set(task.inputs)) for key, task in tasks.items()}
    readers: dict[Hashable, list[Hashable]] = {key: [] for key in tasks}
    for key, task in tasks.items():
        for name in set(task.inputs):
            readers[name].append(key)
    ready = [(-ranks[key], order[key], key) for key, count in waits.items() if not count]
    heapq.heapify(ready)
    free = [0.0] * workers  # when each worker has nothing more to do
    homes: dict[Hashable, set[int]] = {}  # the workers that hold a result
    running: list[tuple[float, int, Hashable]] = []  # when what ends
    known: dict[Hashable, float] = {}  # when the inputs of a task were there
    now = sent = fetching = 0.0
    while ready or running:
        # What ends now makes tasks ready that may be more urgent than those that are.
        if (running and running[0][0] <= now) or not ready or min(free) > now:
            now, _, key = heapq.heappop(running)
            for reader in readers[key]:
                waits[reader] -= 1
                if not waits[reader]:
                    known[reader] = now
                    heapq.heappush(ready, (-ranks[reader], order[reader], reader))
            continue
        key = heapq.heappop(ready)[2]
        task = tasks[key]
        sent = max(sent, known.get(key, 0.0)) + costs.dispatch
        missing = [
            [name for name in task.inputs if at not in homes[name]] for at in range(workers)
        ]
        delays = [
            sum(costs.latency + tasks[name].nbytes / costs.bandwidth for name in names)
            for names in missing
        ]
        at = min(range(workers), key=lambda one: (max(free[one], sent) + delays[one], one))
        for name in missing[at]:
            homes[name].add(at)
        fetching += delays[at]
        free[at] = max(free[at], sent) + delays[at] + task.seconds
        homes[key] = {at}
        heapq.heappush(running, (free[at], order[key], key))
    work = sum(task.seconds for task in tasks.values())
    dispatching = costs.dispatch * len(tasks)
    return Plan(max(free), fetching, max(ranks.values()), work, dispatching)

"""A cluster of processes on this machine, and the loss of one of them while it computes."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def local_cluster(workers: int) -> Iterator[LocalCluster]:
    """Start a scheduler and worker processes of one thread each; Dask computes on them.

    The dashboard is on a port that is free, so that several clusters can run side by side.
    """
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        yield cluster


@contextmanager
def client_of(address: str) -> Iterator[None]:
    """Let Dask compute on the cluster whose scheduler listens at an address."""
    with Client(address):
        yield


class WorkerKiller(SchedulerPlugin):  # type: ignore[misc]  # distributed has no types here
    """Kills one worker process, as the system does when memory is short.

    The scheduler calls it after each task. When ``after`` tasks are done, it kills the first
    worker that holds a result while it has more to do: both the result and the task are lost.

    Attributes:
        killed: what was killed, for people; empty before.
        address: of the worker that was killed.

    """

    def __init__(self, cluster: LocalCluster, after: int) -> None:
        self.name = "worker-killer"
        self.killed = self.address = ""
        self._cluster = cluster
        self._left = after

    def transition(self, *change: Any, **_more: Any) -> None:
        """Kill a worker if there is one to kill. Runs in the scheduler's thread."""
        _key, _before, state = change[:3]
        self._left -= state == "memory"
        if self.killed or self._left >= 0:
            return
        for nanny in self._cluster.workers.values():
            worker = self._cluster.scheduler.workers.get(nanny.worker_address)
            if worker and worker.has_what and worker.processing:
                done, left = len(worker.has_what), len(worker.processing)
                self.address = worker.address
                self.killed = f"process {nanny.pid}, with {done} results and {left} tasks to do"
                os.kill(nanny.pid, signal.SIGKILL)
                return


@contextmanager
def one_worker_killed(cluster: LocalCluster, after: int = 1) -> Iterator[WorkerKiller]:
    """Kill a worker while what is in the ``with`` block computes, after so many tasks.

    Raises:
        RuntimeError: the program ended before any worker held a result and had more to do.

    """
    killer = WorkerKiller(cluster, after)
    cluster.scheduler.add_plugin(killer)
    try:
        yield killer
    finally:
        cluster.scheduler.remove_plugin(killer.name)
    if not killer.killed:
        raise RuntimeError("no worker was killed: there was too little to do")

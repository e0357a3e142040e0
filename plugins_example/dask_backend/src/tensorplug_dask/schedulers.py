"""Execution of graphs by Dask's threads, by this thread or by a distributed scheduler."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import dask
from dask.base import get_scheduler

from tensorplug.plugin import (
    BackendMemoryError,
    BackendUnavailableError,
    DeviceLostError,
    pip_install,
)
from tensorplug_dask.blocks import concrete, values_of
from tensorplug_dask.settings import SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import dask.array as da
    import numpy as np


_SECONDS: Final = 5  # to wait for a scheduler
_FETCHED: Final = 1 << 20  # bytes of a small result that leaves the cluster, see ``_held``
_HERE: Final = ("threads", "threading", "sync", "synchronous", "single-threaded", None)


class Executor:
    """Computes arrays as one setting says.

    Args:
        scheduler: ``"threads"``, ``"synchronous"``, an address, or None: what Dask itself would
            take at that moment, which is the active ``Client`` where there is one.

    Raises:
        BackendUnavailableError: distributed is not installed, or no scheduler answers.

    """

    def __init__(self, scheduler: str | None) -> None:
        remote = scheduler is not None and "://" in scheduler
        self._address = str(scheduler)
        self._client: Any = _connected(self._address) if remote else None
        self._scheduler = self._client or scheduler

    def describe(self) -> str:
        """Return the name of the scheduler, for people."""
        if self._client is not None:
            return f"the scheduler at {self._address}"
        return {None: "Dask's default scheduler", "threads": "threads"}.get(
            self._scheduler, f"the {self._scheduler} scheduler"
        )

    def persist(self, arrays: Sequence[da.Array]) -> Sequence[da.Array]:
        """Return the same arrays, computed.

        Raises:
            BackendMemoryError: there is no room for a block.
            DeviceLostError: the cluster cannot compute them, because its workers die of it, or
                because the scheduler is gone.

        """
        with _translated():
            if self._here() and all(array.npartitions == 1 for array in arrays):
                return [concrete(array) for array in self._in_one_go(arrays)]
            self._check()
            kept: tuple[da.Array, ...] = dask.persist(*arrays, scheduler=self._scheduler)
            return self._held(kept)

    def compute(self, array: da.Array) -> np.ndarray[Any, Any]:
        """Return the elements. Raises as ``persist``.

        What is in this process already needs no scheduler, and can be read without a cluster.
        """
        there = values_of(array)
        if there is not None:
            return there
        found: Sequence[Any]
        with _translated():
            if self._here() and array.npartitions == 1:
                found = self._in_one_go([array])
            else:
                self._check()
                found = dask.compute(array, scheduler=self._scheduler)
        values: np.ndarray[Any, Any] = found[0]
        return values

    def explain_loss(self) -> str:
        """Return that the scheduler of the setting is gone; "" while it is not.

        Dask's own default is looked up anew for each computation, so it is never lost for good.
        """
        return f"{self.describe()} is gone" if _is_closed(self._client) else ""

    def close(self) -> None:
        """Disconnect from the scheduler, if this object connected to it."""
        if self._client is not None:
            self._client.close()

    def _here(self) -> bool:
        """Return whether this process executes the graphs."""
        name = self._scheduler or dask.config.get("scheduler", None)
        return isinstance(name, str | None) and name in _HERE

    def _in_one_go(self, arrays: Sequence[da.Array]) -> Sequence[Any]:
        """Return the elements of arrays of one block each.

        Where nothing in their graphs has several blocks, there is nothing to run at once: then
        this thread does it, without the threads and optimizations that cost more than they gain.
        """
        graph: dict[Any, Any] = {}
        for array in arrays:
            graph.update(array.__dask_graph__().to_dict())
        keys = [(array.name, *(0,) * array.ndim) for array in arrays]
        if any(key[1:] != (0,) * (len(key) - 1) for key in graph if isinstance(key, tuple)):
            several: Sequence[Any] = dask.compute(*arrays, scheduler=self._scheduler)
            return several
        alone: Sequence[Any] = dask.get(graph, keys)
        return alone

    def _cluster(self) -> Any:
        """Return the client of distributed that executes the graphs, or None."""
        return getattr(get_scheduler(scheduler=self._scheduler), "__self__", None)

    def _check(self) -> None:
        """Refuse a client that has lost its scheduler: it would wait for ever."""
        client = None if self._here() else self._cluster()
        if _is_closed(client):
            raise DeviceLostError("dask: the scheduler is gone; connect to another one")

    def _held(self, arrays: Sequence[da.Array]) -> Sequence[da.Array]:
        """Wait for submitted work, raise its errors, and bring small results here.

        A result on the cluster keeps on the scheduler how it was computed, back to the data. In
        a loop, such as training, this would grow with each step, and the loss of the worker that
        holds the weights would repeat all steps before.
        """
        client = self._cluster()
        if client is None:
            return arrays
        from distributed import futures_of, wait  # a client is there, so this is installed

        futures = [future for array in arrays for future in futures_of(array)]
        with client.as_current():
            wait(futures)
        for future in futures:
            if future.status != "finished":
                future.result()  # raises, or waits for what a worker lost since
        small = {
            index: futures_of(item)[0]
            for index, item in enumerate(arrays)
            if item.npartitions == 1 and item.nbytes <= _FETCHED
        }
        values = client.gather(small)
        return [
            concrete(values[index]) if index in small else item
            for index, item in enumerate(arrays)
        ]


def _is_closed(client: Any) -> bool:
    return client is not None and client.status in ("closing", "closed")


@contextmanager
def _translated() -> Iterator[None]:
    """Raise errors of tensorplug in place of those of Python and distributed."""
    try:
        yield
    except MemoryError as error:
        raise BackendMemoryError(f"dask: {error}") from error
    except _losses() as error:
        raise DeviceLostError(f"dask: {error}") from error


def _losses() -> tuple[type[Exception], ...]:
    """Return the errors of a cluster whose workers die, or whose scheduler is gone."""
    if "distributed" not in sys.modules:
        return ()
    from distributed import CancelledError
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    return CancelledError, ClosedClientError, CommClosedError, KilledWorker


def _connected(address: str) -> Any:
    """Return a client of the scheduler at an address; it does not become Dask's own default."""
    try:
        from distributed import Client
    except ImportError as error:
        cure = pip_install("tensorplug-dask[distributed]")
        raise BackendUnavailableError(
            f"{SCHEDULER}={address} needs distributed: {cure}"
        ) from error
    try:
        return Client(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise BackendUnavailableError(
            f"no scheduler answers at {SCHEDULER}={address}: {error}"
        ) from error

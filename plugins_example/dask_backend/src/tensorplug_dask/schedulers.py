"""Execution of graphs by Dask's threads, by this thread or by a distributed scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import dask
from dask.base import get_scheduler

from tensorplug.plugin import BackendMemoryError, BackendUnavailableError
from tensorplug_dask.blocks import concrete
from tensorplug_dask.settings import SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dask.array as da
    import numpy as np

__all__ = ["Executor"]

_SECONDS: Final = 5  # to wait for a scheduler
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
        self._client: Any = _connected(str(scheduler)) if remote else None
        self._scheduler = self._client or scheduler

    def describe(self) -> str:
        """Return the name of the scheduler, for people."""
        if self._client is not None:
            return f"the scheduler at {self._client.scheduler.address}"
        return {None: "Dask's default scheduler", "threads": "threads"}.get(
            self._scheduler, f"the {self._scheduler} scheduler"
        )

    def persist(self, arrays: Sequence[da.Array]) -> Sequence[da.Array]:
        """Return the same arrays, computed.

        Raises:
            BackendMemoryError: there is no room for a block.

        """
        try:
            if self._here() and all(array.npartitions == 1 for array in arrays):
                return [concrete(array) for array in self._in_one_go(arrays)]
            kept: tuple[da.Array, ...] = dask.persist(*arrays, scheduler=self._scheduler)
        except MemoryError as error:
            raise BackendMemoryError(f"dask: {error}") from error
        self._wait(kept)
        return kept

    def compute(self, array: da.Array) -> np.ndarray[Any, Any]:
        """Return the elements. Raises as ``persist``."""
        try:
            found: Sequence[Any]
            if self._here() and array.npartitions == 1:
                found = self._in_one_go([array])
            else:
                found = dask.compute(array, scheduler=self._scheduler)
        except MemoryError as error:
            raise BackendMemoryError(f"dask: {error}") from error
        values: np.ndarray[Any, Any] = found[0]
        return values

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

    def _wait(self, arrays: Sequence[da.Array]) -> None:
        """Wait for submitted work, and raise its errors."""
        client = getattr(get_scheduler(scheduler=self._scheduler), "__self__", None)
        if client is None:
            return
        from distributed import futures_of, wait  # a client is there, so this is installed

        futures = [future for array in arrays for future in futures_of(array)]
        with client.as_current():
            wait(futures)
        for future in futures:
            if future.status != "finished":
                future.result()  # raises


def _connected(address: str) -> Any:
    """Return a client of the scheduler at an address; it does not become Dask's own default."""
    try:
        from distributed import Client
    except ImportError as error:
        raise BackendUnavailableError(
            f"{SCHEDULER}={address} needs distributed: pip install tensorplug-dask[distributed]"
        ) from error
    try:
        return Client(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise BackendUnavailableError(
            f"no scheduler answers at {SCHEDULER}={address}: {error}"
        ) from error

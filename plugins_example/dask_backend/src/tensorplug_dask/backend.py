"""The backend object: copies to and from Dask, and what a buffer is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np

from tensorplug.plugin import BackendMemoryError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_dask.blocks import chunks_of, concrete, fresh, meta
from tensorplug_dask.lazy import Lazy, Pending, Source
from tensorplug_dask.schedulers import Executor

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from tensorplug_dask.settings import Settings


Array = np.ndarray[Any, Any]


class DaskBackend:
    """Buffers are ``Lazy``: Dask arrays. Strings stay on the host."""

    name = "dask"
    dtypes = dt.FIXED

    def __init__(self, settings: Settings) -> None:
        self.chunk_bytes = settings.chunk_bytes
        self._executor = Executor(settings.scheduler)
        self.pending = Pending(self._executor.persist, settings.max_layers)

    @property
    def device(self) -> str:
        """The version of Dask, the scheduler and the chunk size."""
        size = dask.utils.format_bytes(self.chunk_bytes)
        return f"Dask {dask.__version__} arrays on {self._executor.describe()}, chunks of {size}"

    def from_host(self, array: Array) -> Lazy:
        """Return a copy of ``array``, in chunks if it is larger than one.

        Raises:
            BackendMemoryError: there is no room for it.

        """
        type_ = TensorType(dt.of(array.dtype), array.shape)
        try:
            own = np.array(array, type_.dtype.numpy, order="C", copy=True, subok=False)
        except MemoryError as error:
            raise BackendMemoryError(f"dask: no room for {type_}: {error}") from error
        if own.nbytes <= self.chunk_bytes:
            return Lazy(concrete(own))
        chunks = chunks_of(own.shape, own.dtype, self.chunk_bytes)
        cut = da.from_array(own, chunks, name=fresh("host"), meta=meta(own.dtype, own.ndim))
        return Lazy(cut, frozenset({Source.of(cut)}))

    def to_host(self, buffer: Lazy) -> Array:
        """Compute the elements; a result of at most one chunk is kept."""
        if buffer.small:
            self.pending.settle(buffer)
        elif buffer.array.nbytes <= self.chunk_bytes:
            self.pending.compute([buffer])
        return np.asarray(self._executor.compute(buffer.array))

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` unless it is a buffer of this backend."""
        if not isinstance(buffer, Lazy):
            raise TypeError(f"{type(buffer).__name__} is not a Lazy array")
        return TensorType(dt.of(buffer.array.dtype), buffer.array.shape)

    def allocation(self, buffer: Lazy) -> tuple[Hashable, int]:
        """Return the buffer's identity, and the bytes of its elements, computed or not."""
        return id(buffer), int(buffer.array.nbytes)

    def persist(self, buffers: Sequence[Lazy]) -> None:
        """Compute buffers together, and keep the results in memory (or on the cluster)."""
        self.pending.compute(buffers)

    def synchronize(self) -> None:
        """Compute all pending small results; larger ones stay pending."""
        self.pending.finish()

    def memory(self) -> Mapping[str, int]:
        """Return how many small results are pending."""
        return {"pending": len(self.pending)}

    def explain_loss(self) -> str:
        """Return why the scheduler to which this object connected is gone; "" while it is not."""
        return self._executor.explain_loss()

    def close(self) -> None:
        """Leave the scheduler."""
        self._executor.close()

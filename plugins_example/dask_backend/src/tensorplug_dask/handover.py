"""Dask arrays as tensors, tensors as Dask arrays, and computing several tensors at once."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

import tensorplug as tp
from tensorplug.plugin import ArgumentError, Tensor, tensor_from_buffer
from tensorplug.plugin import dtypes as dt
from tensorplug_dask.backend import DaskBackend
from tensorplug_dask.lazy import Lazy, Source


def from_dask(array: da.Array) -> Tensor:
    """Return a Dask array as a tensor on backend ``dask``, without computing anything.

    The tensor has the chunks of ``array``. The graph of the array runs again for every pass over
    it; ``persist`` the tensor if there is room for it.

    Args:
        array: of any shape, with blocks of NumPy's and a dtype that tensorplug has.

    Raises:
        ArgumentError: it is another object, or chunk sizes are unknown (``compute_chunk_sizes``).
        DTypeError: tensorplug has no such dtype.

    """
    if not isinstance(array, da.Array) or type(array._meta) is not np.ndarray:
        raise ArgumentError(f"from_dask takes a dask.array of NumPy's blocks, not {array!r:.80}")
    if np.isnan(array.size):
        raise ArgumentError("from_dask: chunk sizes are unknown; call compute_chunk_sizes() first")
    dt.of(array.dtype, "from_dask")
    with tp.use_backend("dask"):  # which raises where it cannot be opened
        backend = tp.find_backend("dask")
    assert isinstance(backend, DaskBackend)
    # Even an array of one block may depend on many blocks.
    source = Lazy(array, frozenset({Source.of(array)}))
    return tensor_from_buffer(backend.pending.result(array, [source]), "dask")


def to_dask(tensor: Tensor) -> da.Array:
    """Return a tensor as a Dask array; one of another backend is copied to the host.

    Raises:
        DisposedError, BackendClosedError: the data is gone.

    """
    if isinstance(_backend(tensor), DaskBackend):
        array: da.Array = tensor._buffer.array
        return array
    values = tensor.numpy()
    return da.from_array(values, name=False)


def persist(*tensors: Tensor) -> None:
    """Compute tensors in one pass over their data, and keep the results, however large.

    With a scheduler of distributed they are kept on the cluster. Tensors of other backends are
    left as they are, so that the same program runs there.
    """
    waiting: dict[int, tuple[DaskBackend, list[Any]]] = {}
    for tensor in tensors:
        backend = _backend(tensor)
        if isinstance(backend, DaskBackend):
            waiting.setdefault(id(backend), (backend, []))[1].append(tensor._buffer)
    for backend, buffers in waiting.values():
        backend.persist(buffers)


def _backend(tensor: Tensor) -> Any:
    return None if tensor.device == "host" else tp.find_backend(tensor.device)

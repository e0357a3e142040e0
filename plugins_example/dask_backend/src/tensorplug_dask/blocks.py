"""Arrays made block by block: of one block by hand, of several by ``dask.array.blockwise``.

A function that works on blocks gets NumPy arrays and never writes into one.
"""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask.base import normalize_token
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import TensorType

    Chunks = tuple[tuple[int, ...], ...]


Array = np.ndarray[Any, Any]


class WithoutWarnings:
    """A function of blocks, run without NumPy's warnings: 1/0 is infinite on every backend.

    The thread or process that runs a block has floating-point settings of its own. The result
    is an array also where the rank is 0, for which NumPy's functions give scalars.
    """

    __slots__ = ("__name__", "function")

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        bare = function.func if isinstance(function, functools.partial) else function
        self.function = function
        self.__name__ = name or getattr(bare, "__name__", "block").strip("_")

    def __call__(self, *blocks: Any, **options: Any) -> Any:
        """Run the function."""
        with np.errstate(all="ignore"):
            return np.asarray(self.function(*blocks, **options))

    def __dask_tokenize__(self) -> object:
        """Return what tells this function from others: Dask names its results after that."""
        return normalize_token(self.function)


def fresh(word: str) -> str:
    """Return a name for an array that no other one has, also not on a shared scheduler."""
    return f"{word}-{uuid.uuid4().hex}"


def meta(dtype: np.dtype[Any], rank: int) -> Array:
    """Return the empty array that tells Dask the dtype and the rank of the blocks."""
    return np.empty((0,) * rank, dtype)


def concrete(values: Array) -> da.Array:
    """Return an array of one block that is there already."""
    name = fresh("concrete")
    chunks = tuple((size,) for size in values.shape)
    empty = meta(values.dtype, values.ndim)
    return da.Array({(name, *(0,) * values.ndim): values}, name, chunks, meta=empty)


def values_of(array: da.Array) -> Array | None:
    """Return the elements of an array that is there already as one block; None for any other."""
    if array.npartitions > 1 or len(array.dask.layers) > 1:
        return None
    (layer,) = array.dask.layers.values()
    values = layer.mapping.get(_key(array)) if isinstance(layer, MaterializedLayer) else None
    return values if isinstance(values, np.ndarray) else None


def one_block(
    function: Callable[..., Any], inputs: Sequence[da.Array | list[da.Array]], out: TensorType
) -> da.Array:
    """Return the array of one block that ``function`` makes of the only blocks of ``inputs``."""
    call = WithoutWarnings(function)
    name = fresh(call.__name__)
    flat = [
        one for operand in inputs for one in (operand if isinstance(operand, list) else [operand])
    ]
    task = (call, *map(_key, inputs))
    graph = HighLevelGraph.from_collections(name, {(name, *(0,) * out.rank): task}, flat)
    chunks = tuple((size,) for size in out.shape)
    return da.Array(graph, name, chunks, meta=meta(out.dtype.numpy, out.rank))


def _key(arrays: Any) -> Any:
    """Return the graph key of an array's block, or the keys for a list of arrays."""
    if isinstance(arrays, list):
        return [_key(array) for array in arrays]
    return (arrays.name, *(0,) * arrays.ndim)


def pattern(rank: int) -> tuple[int, ...]:
    """Return the letters of an array's axes for ``blockwise``, the last axis being 0.

    So axes of arrays of different ranks have the same letter where they broadcast.
    """
    return tuple(range(rank))[::-1]


def elementwise(
    function: Callable[..., Any], inputs: Sequence[da.Array], out: TensorType, limit: int
) -> da.Array:
    """Return what ``function`` makes of blocks that broadcast; blocks hold ``limit`` bytes."""
    pairs = [(item, pattern(item.ndim)) for item in _fitted(inputs, out, limit)]
    return blockwise(WithoutWarnings(function), pattern(out.rank), pairs, out.dtype.numpy)


def blockwise(
    function: WithoutWarnings,
    letters: tuple[int, ...],
    inputs: Sequence[tuple[da.Array, tuple[int, ...]]],
    dtype: np.dtype[Any],
    sizes: Mapping[int, int] | None = None,
) -> da.Array:
    """Return ``dask.array.blockwise`` of arrays whose blocks are made to fit, without a warning.

    Dask's, that there are many more blocks than before, is for those who chose the blocks; here
    it was done to keep them small. ``sizes``: of the blocks that come out, along some axes.
    """
    pairs = [part for pair in inputs for part in pair]
    chunks, arrays = da.core.unify_chunks(*pairs, warn=False)
    return da.blockwise(
        function,
        letters,
        *(part for pair in zip(arrays, pairs[1::2], strict=True) for part in pair),
        name=fresh(function.__name__),
        align_arrays=False,
        adjust_chunks={**chunks, **(sizes or {})},
        dtype=dtype,
        meta=meta(dtype, len(letters)),
    )


def _fitted(inputs: Sequence[da.Array], out: TensorType, limit: int) -> list[da.Array]:
    """Return the inputs in smaller chunks where blocks of the result would be too large.

    That happens when axes of some inputs are stretched: a column plus a row is a matrix.
    """
    longest = 1
    for axis, size in enumerate(out.shape, -out.rank):
        found = [max(operand.chunks[axis]) for operand in inputs if operand.ndim >= -axis]
        fitting = [one for one in found if one > 1 or size == 1]
        longest *= min(fitting, default=size)
    if longest * out.dtype.itemsize <= 2 * limit:
        return list(inputs)
    chunks = chunks_of(out.shape, out.dtype.numpy, limit)
    return [
        operand.rechunk(
            {
                axis: chunks[axis - operand.ndim]
                for axis, size in enumerate(operand.shape)
                if size == out.shape[axis - operand.ndim]
            }
        )
        for operand in inputs
    ]


def chunks_of(shape: Any, dtype: np.dtype[Any], limit: int, wanted: Any = "auto") -> Chunks:
    """Return chunks of at most about ``limit`` bytes; ``wanted`` may fix those of some axes."""
    room = max(limit, dtype.itemsize)
    found: Chunks = da.core.normalize_chunks(wanted, shape, limit=room, dtype=dtype)
    return found


def full(value: Array, out: TensorType, limit: int) -> da.Array:
    """Return an array with one value everywhere, in blocks of ``limit`` bytes."""
    chunks = chunks_of(out.shape, value.dtype, limit)
    return da.full(out.shape, value, dtype=value.dtype, chunks=chunks)


def starts_of(chunks: tuple[int, ...]) -> da.Array:
    """Return where each block of an axis begins, one number to a block."""
    return da.from_array(np.cumsum([0, *chunks[:-1]]), 1, name=fresh("starts"))

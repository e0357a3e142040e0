"""Batching of binary searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.batching import BatchingTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import in_front, to_shape
from tensorplug.ops import searching as ops

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()


def _search(
    spec: KernelSpec,
    sequences: Tensor,
    values: Tensor,
    batched: frozenset[str],
    size: int,
    **attributes: str,
) -> Tensor:
    if "sorted_sequence" not in batched and sequences.ndim == 1:
        return dispatch(spec, sequences, values, **attributes)
    sequences = in_front(sequences, "sorted_sequence" in batched, size)
    values = in_front(values, "values" in batched, size)
    if sequences.ndim > 2:
        return dispatch(spec, sequences, values, **attributes)
    rows = to_shape(values, (size, values.size // size if size else 0))
    return to_shape(dispatch(spec, sequences, rows, **attributes), values.shape)


@batching.of(ops.SEARCH_SORTED)
def search_sorted(
    sorted_sequence: Tensor, values: Tensor, *, side: str, batched: frozenset[str], size: int
) -> Tensor:
    return _search(ops.SEARCH_SORTED, sorted_sequence, values, batched, size, side=side)


@batching.of(ops.LOWER_BOUND)
def lower_bound(
    sorted_sequence: Tensor, values: Tensor, *, batched: frozenset[str], size: int
) -> Tensor:
    return _search(ops.LOWER_BOUND, sorted_sequence, values, batched, size)


@batching.of(ops.UPPER_BOUND)
def upper_bound(
    sorted_sequence: Tensor, values: Tensor, *, batched: frozenset[str], size: int
) -> Tensor:
    return _search(ops.UPPER_BOUND, sorted_sequence, values, batched, size)

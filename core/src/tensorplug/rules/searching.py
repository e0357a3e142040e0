"""Positions in sorted sequences are constant between jumps, so they have no gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import in_front, to_shape
from tensorplug.ops import searching as ops

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.SEARCH_SORTED, because="gives places: whole numbers")
rules.stop(ops.LOWER_BOUND, because="gives places: whole numbers")
rules.stop(ops.UPPER_BOUND, because="gives places: whole numbers")


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


rules.batch(ops.SEARCH_SORTED)(
    lambda sorted_sequence, values, *, side, batched, size: _search(
        ops.SEARCH_SORTED, sorted_sequence, values, batched, size, side=side
    )
)
rules.batch(ops.LOWER_BOUND)(
    lambda sorted_sequence, values, *, batched, size: _search(
        ops.LOWER_BOUND, sorted_sequence, values, batched, size
    )
)
rules.batch(ops.UPPER_BOUND)(
    lambda sorted_sequence, values, *, batched, size: _search(
        ops.UPPER_BOUND, sorted_sequence, values, batched, size
    )
)

"""``padded_batches``: sequences of different lengths in batches of few shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, arguments, host_values, shapes
from tensorplug_train.data import trees
from tensorplug_train.data.batches import Batches, at_least
from tensorplug_train.data.sources import Columns, Rows, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.typing import KeyLike

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Sequences:
    """Columns of sequences, other columns beside them, and the length to which each is padded."""

    sequences: Columns
    others: Columns | None
    lengths: Array
    bounds: Array
    value: float

    def count(self, size: int, *, drop_last: bool) -> int:
        """Return the number of batches: each bucket fills its own."""
        _, members = np.unique(self.bounds, return_counts=True)
        filled = members // size if drop_last else -(-members // size)
        return int(filled.sum())

    def groups(self, size: int, key: KeyLike | None, *, drop_last: bool) -> Iterator[Array]:
        """Yield the numbers of the examples of a batch when its bucket has enough of them."""
        waiting: dict[int, list[int]] = {}
        for number in self.sequences.order(key).tolist():
            bucket = waiting.setdefault(int(self.bounds[number]), [])
            bucket.append(number)
            if len(bucket) == size:
                yield np.array(bucket)
                bucket.clear()
        if not drop_last:
            yield from (np.array(bucket) for bucket in waiting.values() if bucket)

    def read(self, group: Array) -> Rows:
        """Return ``(sequences, lengths)``, or ``((sequences, lengths), others)``."""
        bound = int(self.bounds[group[0]])
        numbers, rows = self.sequences.read(group)
        padded = trees.mapped(lambda column: _padded(column, bound, self.value), rows)
        columns: Any = (padded, self.lengths[group])
        if self.others is not None:
            columns = (columns, self.others.read(group).columns)
        return Rows(numbers, columns)


def padded_batches(
    sequences: Any,
    size: int,
    labels: Any = None,
    *,
    buckets: int | Sequence[int] = 4,
    value: float = 0,
    key: KeyLike | None = None,
    epochs: int = 1,
    drop_last: bool = False,
    prefetch: int = 2,
    device: str | None = None,
) -> Batches:
    """Return sequences of different lengths in batches that are padded to a few lengths.

    A batch has sequences of one bucket, and is padded to the bucket's bound. So a compiled
    function meets as many shapes as there are buckets, or twice as many without ``drop_last``,
    since the last batch of a bucket may have fewer examples.

    Args:
        sequences: a list of arrays ``[length, ...]`` or lists of numbers; or a tree of such lists,
            in which the sequences of an example have one length.
        size: sequences in a batch.
        labels: a tree of columns, as in ``batches``, that are not padded.
        buckets: the bounds of the buckets, the greatest lengths in them, in rising order; or how
            many there are, with bounds such that about as many sequences are in each.
        value: what is padded with, behind the end.
        key: shuffles the sequences; then batches of all buckets are mixed.
        epochs: see ``batches``.
        drop_last: leave out, in each bucket, the sequences that do not fill a batch.
        prefetch: see ``batches``.
        device: see ``batches``.

    Returns:
        ``Batches`` of ``(sequences, lengths)``: arrays ``[size, bound, ...]``, and the lengths
        before padding, int32. With labels, ``((sequences, lengths), labels)``. The attribute
        ``padding`` is the share of padding.

    Raises:
        ArgumentError: bounds that do not rise, or a sequence that is longer than all of them.
        ShapeError: the sequences of an example have different lengths, or one has no axis.

    Examples:
        >>> data = tp.train.padded_batches([[1, 2, 3], [4], [5, 6], [7]], 2, buckets=[2, 4])
        >>> for sequences, lengths in data:
        ...     print(sequences.tolist(), lengths.tolist())
        [[4, 0], [5, 6]] [1, 2]
        [[1, 2, 3, 0]] [3]
        [[7, 0]] [1]
        >>> data.padding
        0.3

    """
    columns = columns_of(sequences, "padded_batches: sequences")
    others = None
    if labels is not None:
        others = columns_of(labels, "padded_batches: labels")
        if others.length != columns.length:
            raise ShapeError(
                f"padded_batches: there are {columns.length} sequences, but {others.length} labels"
            )
    lengths = _lengths(columns)
    bounds = _bounds(buckets, lengths)
    too_long = np.flatnonzero(lengths > bounds[-1])
    if too_long.size:
        raise ArgumentError(
            f"padded_batches: sequence {too_long[0]} has length {lengths[too_long[0]]}, but the "
            f"last bucket ends at {bounds[-1]}; there are {too_long.size} such sequences"
        )
    own = bounds[np.searchsorted(bounds, lengths)]
    source = _Sequences(columns, others, lengths, own, value)
    padding = int((own - lengths).sum()) / max(int(own.sum()), 1)
    options: dict[str, Any] = {"prefetch": prefetch, "device": device, "padding": padding}
    return Batches(source, size, key, epochs, drop_last, **options)


def _lengths(columns: Columns) -> Array:
    found: list[Array] = []

    def note(column: Any) -> None:
        found.append(np.array([_length(column[at], at) for at in range(len(column))], np.int32))

    trees.mapped(note, columns.tree)
    for other in found[1:]:
        differing = np.flatnonzero(other != found[0])
        if differing.size:
            at = differing[0]
            raise ShapeError(
                f"padded_batches: the sequences of example {at} have lengths {found[0][at]} and "
                f"{other[at]}"
            )
    return found[0]


def _length(sequence: Any, at: int) -> int:
    if not hasattr(sequence, "__len__") or getattr(sequence, "shape", None) == ():
        raise ShapeError(
            f"padded_batches: sequence {at} must be an array [length, ...] or a list, got "
            f"{arguments.quoted(sequence)}"
        )
    return len(sequence)


def _bounds(buckets: int | Sequence[int], lengths: Array) -> Array:
    if isinstance(buckets, int):
        number = at_least(1, buckets, "padded_batches: buckets")
        shares = np.arange(1, number + 1) / number
        return np.unique(np.quantile(lengths, shares, method="higher"))
    bounds = [shapes.index(bound, "padded_batches: buckets") for bound in buckets]
    if not bounds or bounds[0] < 1 or sorted(set(bounds)) != bounds:
        raise ArgumentError(
            "padded_batches: buckets must be positive lengths in rising order, got "
            f"{arguments.quoted(buckets)}"
        )
    return np.array(bounds)


def _padded(column: Any, bound: int, value: float) -> Array:
    rows = [host_values.as_array(row) for row in column]
    shape, dtype = rows[0].shape[1:], np.result_type(*rows)
    result = np.full((len(rows), bound, *shape), value, dtype)
    for padded, row in zip(result, rows, strict=True):
        if row.shape[1:] != shape:
            raise ShapeError(
                f"padded_batches: elements of sequences must have one shape, got {shape} and "
                f"{row.shape[1:]}"
            )
        padded[: len(row)] = row
    return result

"""What batches are read from: columns that can be read at any place, and streams of examples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

import tensorplug as tp
from tensorplug.plugin import ArgumentError, ShapeError, arguments, tree
from tensorplug_train.data import trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tensorplug import Tensor
    from tensorplug.typing import KeyLike

_WORDS = 1024
"""How many random numbers or keys are drawn at once."""


class Rows(NamedTuple):
    """The examples of one batch: their numbers in the data, and a tree of columns."""

    numbers: Sequence[int]
    columns: Any


class Source(Protocol):
    """What ``Batches`` reads. A group is what ``read`` needs to read one batch."""

    def count(self, size: int, *, drop_last: bool) -> int | None:
        """Return the number of batches; None if it is not known."""

    def groups(self, size: int, key: KeyLike | None, *, drop_last: bool) -> Iterator[Any]:
        """Yield the groups of an epoch, in an order that depends on ``key`` alone."""

    def read(self, group: Any) -> Rows:
        """Return the examples of a group."""


@dataclass(frozen=True)
class Columns:
    """A tree of columns of the same length: arrays, lists, and what is indexed like them."""

    tree: Any
    length: int

    def count(self, size: int, *, drop_last: bool) -> int:
        """Return the number of batches."""
        return self.length // size if drop_last else -(-self.length // size)

    def order(self, key: KeyLike | None) -> np.ndarray[Any, Any]:
        """Return the numbers of all examples in the order of an epoch."""
        if key is None:
            return np.arange(self.length)
        return np.asarray(tp.random.permutation(key, self.length))

    def groups(
        self, size: int, key: KeyLike | None, *, drop_last: bool
    ) -> Iterator[np.ndarray[Any, Any]]:
        """Yield the numbers of the examples of each batch."""
        order = self.order(key)
        for at in range(self.count(size, drop_last=drop_last)):
            yield order[at * size : (at + 1) * size]

    def read(self, group: np.ndarray[Any, Any]) -> Rows:
        """Return the rows with these numbers."""
        return Rows(group.tolist(), trees.mapped(lambda column: _rows(column, group), self.tree))


@dataclass(frozen=True)
class Stream:
    """Examples in the order in which ``restart()`` gives them, or shuffled within a buffer."""

    restart: Callable[[], Iterable[Any]]
    buffer: int

    def count(self, size: int, *, drop_last: bool) -> None:
        """Return None: the length is known at the end."""

    def groups(
        self, size: int, key: KeyLike | None, *, drop_last: bool
    ) -> Iterator[list[tuple[int, Any]]]:
        """Yield the examples of each batch with their numbers in the stream."""
        numbered: Iterator[tuple[int, Any]] = enumerate(self.restart())
        if self.buffer > 1 and key is not None:
            numbered = _shuffled(numbered, self.buffer, key)
        while group := list(islice(numbered, size)):
            if len(group) == size or not drop_last:
                yield group

    def read(self, group: list[tuple[int, Any]]) -> Rows:
        """Return the examples of the group as a column."""
        return Rows([number for number, _ in group], [example for _, example in group])


def source_of(data: Any, buffer: int | None, key: KeyLike | None) -> Columns | Stream:
    """Return what ``batches`` reads ``data`` from.

    Raises:
        ArgumentError: ``data`` can be iterated only once, or needs a buffer to be shuffled; or
            there are no examples.
        ShapeError: columns have different lengths, or one has no axis.

    """
    if not _is_stream(data):
        if buffer is not None:
            raise ArgumentError("batches: buffer is for data of unknown length, leave it out")
        return columns_of(data, "batches: arrays")
    if not callable(data) and iter(data) is data:
        raise ArgumentError(
            "batches: arrays can be iterated only once; give a function that returns an iterator: "
            "batches(lambda: read(path), size)"
        )
    if key is not None and buffer is None:
        raise ArgumentError(
            "batches: the data has no length, so its order is shuffled within a buffer: give "
            "buffer=number of examples; buffer=1 keeps the order"
        )
    return Stream(data if callable(data) else lambda: data, buffer or 1)


def columns_of(data: Any, what: str) -> Columns:
    """Return a tree of arrays, tables and lists as columns; ``what`` names it in messages."""
    lengths: dict[str, int] = {}
    columns = _read_columns(data, what, lengths)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{where} has {length}" for where, length in lengths.items())
        raise ShapeError(f"{what} must have one length, but {listed}")
    length = next(iter(lengths.values()), 0)
    if not length:
        raise ArgumentError(f"{what} holds no examples")
    return Columns(columns, length)


def example_keys(key: KeyLike) -> Callable[[int], np.ndarray[Any, Any]]:
    """Return a function that gives the example of each number a key of its own."""

    @cache
    def drawn(block: int) -> np.ndarray[Any, Any]:
        return np.asarray(tp.random.split(tp.random.fold_in(key, block), _WORDS))

    return lambda number: drawn(number // _WORDS)[number % _WORDS]


def _is_stream(data: Any) -> bool:
    if isinstance(data, list) or _is_table(data) or trees.opened(data) is not None:
        return False
    return callable(data) or (hasattr(data, "__iter__") and not hasattr(data, "__getitem__"))


def _is_table(value: Any) -> bool:
    """Return whether ``value`` is a table, of pandas, Arrow, Polars or another library."""
    exchanges = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")
    return exchanges and hasattr(value, "columns")


def _read_columns(value: Any, where: str, lengths: dict[str, int]) -> Any:
    if _is_table(value):
        value = _columns_of_table(value, where)
    parts = trees.opened(value)
    if parts is not None:
        children = [
            _read_columns(child, f"{where}[{key!r}]", lengths) for key, child in parts.items()
        ]
        return tree.with_children(value, children)
    if hasattr(value, "_placement"):
        value = value.numpy()
    if isinstance(value, str | bytes) or not hasattr(value, "__getitem__"):
        raise ArgumentError(
            f"{where} must be an array, a list, a table or a tree of them, got "
            f"{arguments.quoted(value)}"
        )
    if getattr(value, "shape", None) == ():
        raise ShapeError(f"{where} must have an axis of examples, but has rank 0")
    lengths[where] = len(value)
    return value


def _columns_of_table(table: Any, where: str) -> dict[str, Any]:
    names = list(getattr(table, "column_names", table.columns))
    if len(set(names)) < len(names):
        raise ArgumentError(f"{where} has columns of the same name: {names}")
    return {str(name): np.asarray(table[name]) for name in names}


def _rows(column: Any, numbers: np.ndarray[Any, Any]) -> Any:
    """Return the rows with these numbers, in memory of their own."""
    if not hasattr(column, "shape"):
        return [column[number] for number in numbers.tolist()]
    if type(column) is np.ndarray:
        return column.take(numbers, axis=0)
    # A file is read fastest from its beginning to its end, and h5py reads in no other order.
    order = np.argsort(numbers)
    found = column[numbers[order]]
    rows = np.empty_like(found, subok=False)
    rows[order] = found
    return rows


def _shuffled(
    numbered: Iterator[tuple[int, Any]], buffer: int, key: KeyLike
) -> Iterator[tuple[int, Any]]:
    """Yield examples in random order, each from the ``buffer`` that were read last or waited."""
    for_places, for_rest = tp.random.split(key)
    kept = list(islice(numbered, buffer))
    for example, place in zip(numbered, _places(for_places, len(kept)), strict=False):
        yield kept[place]
        kept[place] = example
    if kept:
        rest: Tensor = tp.random.permutation(for_rest, len(kept))
        yield from (kept[place] for place in rest.tolist())


def _places(key: KeyLike, most: int) -> Iterator[int]:
    for block in count():
        own = tp.random.fold_in(key, block)
        yield from tp.random.integers(own, (_WORDS,), low=0, high=max(most, 1)).tolist()

"""``batches``: data in batches, in an order that a key decides."""

from __future__ import annotations

import inspect
import multiprocessing
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import tensorplug as tp
from tensorplug.plugin import ArgumentError, arguments, shapes
from tensorplug_train.data import trees
from tensorplug_train.data.ordered import ordered
from tensorplug_train.data.sources import Rows, example_keys, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from contextvars import Context

    from tensorplug import Tensor
    from tensorplug.typing import KeyLike
    from tensorplug_train.data.sources import Source

State: TypeAlias = dict[str, int]
_END: Final = object()


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches of data, for any number of epochs: what ``batches`` and ``padded_batches`` return.

    ``len(data)`` is the number of batches of an epoch, a TypeError if the data has no length.
    Iterating goes over all epochs. Nothing is kept between iterations: the order of an epoch
    depends on the key and on the number of the epoch alone.

    ``source``: what the batches are read from; ``padding``: the share of padding in all batches of
    an epoch, from 0 to 1; ``size``, ``key``, ``epochs``, ``drop_last``, ``map``, ``map_batches``,
    ``workers``, ``processes``, ``prefetch``, ``device``: the arguments of ``batches``.

    Examples:
        >>> data = tp.train.batches(np.arange(5), 2, epochs=2)
        >>> len(data), [batch.tolist() for batch in data.epoch(1)]
        (3, [[0, 1], [2, 3], [4]])

    """

    source: Source
    size: int
    key: KeyLike | None
    epochs: int
    drop_last: bool
    map: Callable[..., Any] | None = None
    map_batches: Callable[[Any], Any] | None = None
    workers: int = 0
    processes: bool = False
    prefetch: int = 2
    device: str | None = None
    padding: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("epochs", 1), ("prefetch", 0), ("workers", 0)):
            at_least(least, getattr(self, name), f"batches: {name}")
        for name in ("drop_last", "processes"):
            arguments.flag(getattr(self, name), f"batches: {name}")
        if self.count == 0:
            raise ArgumentError(
                f"batches: drop_last leaves no batch: the data has fewer than {self.size} examples"
            )
        if self.needs_key and self.key is None:
            raise ArgumentError("batches: map has a parameter key, so batches needs key=")
        if self.processes and not self.workers:
            raise ArgumentError("batches: processes=True needs workers, the number of processes")

    @property
    def count(self) -> int | None:
        """The number of batches of an epoch, or None; see ``len``."""
        return self.source.count(self.size, drop_last=self.drop_last)

    @property
    def needs_key(self) -> bool:
        """Whether ``map`` has a parameter ``key``."""
        if self.map is None:
            return False
        try:
            return "key" in inspect.signature(self.map).parameters
        except ValueError:  # a function in C that does not name its parameters, such as int
            return False

    def __len__(self) -> int:
        if self.count is None:
            raise TypeError("the number of batches is not known: the data has no length")
        return self.count

    def __iter__(self) -> Iteration:
        return self.resume({"epoch": 0, "batch": 0})

    def epoch(self, number: int, first: int = 0) -> Iteration:
        """Return an iterator over the batches of one epoch, from batch ``first``.

        Raises:
            ArgumentError: a number is negative, or not an integer.

        Examples:
            >>> data = tp.train.batches(np.arange(6), 2, key=tp.random.key(0))
            >>> again = [batch.tolist() for batch in data.epoch(7)]
            >>> [batch.tolist() for batch in data.epoch(7, first=1)] == again[1:]
            True

        """
        state = {"epoch": number, "batch": first}
        return Iteration(self, _read_state(self, state), number + 1)

    def resume(self, state: Mapping[str, int]) -> Iteration:
        """Return an iterator over the batches that an iterator with this ``state`` had left.

        Raises:
            ArgumentError: ``state`` is not ``{"epoch": int, "batch": int}``.

        Examples:
            >>> data = tp.train.batches(np.arange(6), 2, key=tp.random.key(0), epochs=3)
            >>> running = iter(data)
            >>> first = next(running)
            >>> rest = [batch.tolist() for batch in data.resume(running.state)]
            >>> rest == [batch.tolist() for batch in running]
            True

        """
        return Iteration(self, _read_state(self, state), self.epochs)


class Iteration:
    """An iterator over batches, whose ``state`` says which batch is the next one.

    Threads and processes that work ahead end with the last batch, with an error, when the
    iterator is closed, and when nothing refers to it.
    """

    def __init__(self, data: Batches, state: State, end: int) -> None:
        self._state = state
        self._made = _run(data, state, end, copy_context())

    @property
    def state(self) -> State:
        """``{"epoch": int, "batch": int}``: the next batch, for ``Batches.resume``."""
        return dict(self._state)

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        self._state, batch = next(self._made)
        return batch

    def close(self) -> None:
        """End the iteration, and the threads and processes that work ahead."""
        self._made.close()


class _Task(NamedTuple):
    """One batch that is to be made; ``state``: of the iteration after it."""

    state: State
    rows: Rows
    keys: list[Any] | None


def batches(
    arrays: Any,
    size: int,
    *,
    key: KeyLike | None = None,
    epochs: int = 1,
    drop_last: bool = False,
    buffer: int | None = None,
    map: Callable[..., Any] | None = None,
    map_batches: Callable[[Any], Any] | None = None,
    workers: int = 0,
    processes: bool = False,
    prefetch: int = 2,
    device: str | None = None,
) -> Batches:
    """Return the examples of ``arrays`` in batches of tensors.

    Args:
        arrays: a tree, such as ``(x, labels)``, of arrays ``[examples, ...]`` (NumPy's, also
            memory-mapped ones, tensors, and what is indexed like them) and lists of examples; a
            table (pandas, Arrow, Polars), which becomes a dict of its columns; an iterable of
            examples that can be iterated again; or a function that returns an iterator of them.
        size: examples in a batch; the last batch of an epoch may have fewer.
        key: shuffles the examples, in another order in each epoch. By default the order is that
            of the data.
        epochs: how many epochs an iteration over the result has.
        drop_last: leave out the examples that do not fill a batch.
        buffer: for data of unknown length, among how many examples is shuffled.
        map: a function of one example, which returns a tree of arrays and numbers, such as one
            that reads the file of this name. If it has a parameter ``key``, it gets a key of its
            own for each example and epoch: an array, for ``tp.random`` and for
            ``np.random.default_rng``.
        map_batches: a function of one batch, a tree of NumPy arrays, after ``map``.
        workers: how many threads call ``map`` and ``map_batches``; 0 means that they are called
            where batches are prefetched. The order is the same for any number.
        processes: whether workers are processes. Then functions and examples are pickled.
        prefetch: how many batches a thread makes and moves to the device ahead; 0 means none.
        device: of the tensors; by default the active device.

    Raises:
        ArgumentError: a number out of range, a key that is needed, or data without examples.
        ShapeError: arrays have different lengths.

    Examples:
        >>> x, labels = np.arange(6.0).reshape(3, 2), [7, 8, 9]
        >>> for batch in tp.train.batches((x, labels), 2, map=lambda pair: (pair[0] / 5, pair[1])):
        ...     print(batch[0].shape, batch[1])
        (2, 2) Tensor([7, 8], dtype=int32, device='cpu')
        (1, 2) Tensor([9], dtype=int32, device='cpu')

    """
    if buffer is not None:
        at_least(1, buffer, "batches: buffer")
    source, making = source_of(arrays, buffer, key), (map, map_batches, workers, processes)
    return Batches(source, size, key, epochs, drop_last, *making, prefetch, device)


def _run(data: Batches, state: State, end: int, context: Context) -> Generator[tuple[State, Any]]:
    """Yield the batches from ``state`` up to epoch ``end``, each with the state after it.

    ``context``: where the iteration began. Batches that are made ahead belong to it, not to a tape
    or a scope that is open when they are asked for.
    """
    placed = _placed(data, _built(data, state, end))
    if not data.prefetch:
        yield from placed
        return
    pool = ThreadPoolExecutor(1, "tensorplug-prefetch")
    following = (partial(context.run, next, placed), _END)
    with closing(placed), closing(ordered(pool, repeat(following), data.prefetch)) as ahead:
        for item in ahead:
            if item is _END:
                return
            yield item


def _placed(data: Batches, built: Generator[tuple[State, Any]]) -> Generator[tuple[State, Any]]:
    """Yield batches as tensors, which share the memory of arrays that nobody else knows."""
    own = data.map_batches is None
    with closing(built):
        for state, batch in built:
            yield state, trees.mapped(lambda array: _tensor(array, data.device, own=own), batch)


def _tensor(array: Any, device: str | None, *, own: bool) -> Tensor:
    if own and array.dtype.kind in "biufc":
        return tp.from_dlpack(array, device=device)
    return tp.asarray(array, device=device)


def _built(data: Batches, state: State, end: int) -> Generator[tuple[State, Any]]:
    """Yield batches as arrays."""
    make = partial(_make, data.map, data.map_batches)
    with closing(_tasks(data, state, end)) as tasks:
        if not data.workers:
            yield from map(make, tasks)
            return
        calls = ((make if data.processes else _here(make), task) for task in tasks)
        with closing(ordered(_pool(data), calls, 2 * data.workers)) as results:
            yield from results


def _pool(data: Batches) -> Executor:
    """Return the threads or processes that make batches."""
    if not data.processes:
        return ThreadPoolExecutor(data.workers, "tensorplug-batches")
    # A forked copy of a program with threads can hang; Python 3.14 has this default, too.
    known = multiprocessing.get_all_start_methods()
    method = "forkserver" if "forkserver" in known else "spawn"
    return ProcessPoolExecutor(data.workers, multiprocessing.get_context(method))


def _tasks(data: Batches, state: State, end: int) -> Generator[_Task]:
    """Yield what is to be made: the examples of each batch."""
    first, count = state["batch"], data.count
    for epoch in range(state["epoch"], end):
        for_order = keys = None
        if data.key is not None:
            for_order, for_map = tp.random.split(tp.random.fold_in(data.key, epoch))
            keys = example_keys(for_map) if data.needs_key else None
        groups = data.source.groups(data.size, for_order, drop_last=data.drop_last)
        for number, group in enumerate(islice(groups, first, None), first + 1):
            after = (epoch + 1, 0) if number == count else (epoch, number)
            rows = data.source.read(group)
            own = None if keys is None else [keys(number) for number in rows.numbers]
            yield _Task({"epoch": after[0], "batch": after[1]}, rows, own)
        first = 0


def _here(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that runs in the context of this call: on its device, in any thread."""
    context = copy_context()
    return lambda argument: context.run(function, argument)


def _make(
    function: Callable[..., Any] | None, of_batches: Callable[[Any], Any] | None, task: _Task
) -> tuple[State, Any]:
    """Return the batch of a task, as arrays."""
    state, rows, keys = task
    if function is None:
        batch = trees.mapped(_stacked, rows.columns)
    else:
        examples = []
        for at, number in enumerate(rows.numbers):
            example = trees.mapped(itemgetter(at), rows.columns)
            own = {} if keys is None else {"key": keys[at]}
            try:
                examples.append(function(example, **own))
            except Exception as error:
                error.add_note(f"batches: map was called with example {number}")
                raise
        batch = trees.stacked(examples, "batches: map")
    return state, batch if of_batches is None else of_batches(batch)


def _stacked(column: Any) -> Any:
    return trees.stacked(column, "batches") if isinstance(column, list) else column


def at_least(least: int, value: object, what: str) -> int:
    """Return an integer that is not smaller; ``what`` names it in messages."""
    number = shapes.index(value, what)
    if number < least:
        raise ArgumentError(f"{what} must be at least {least}, got {number}")
    return number


def _read_state(data: Batches, state: Mapping[str, int]) -> State:
    if set(state) != {"epoch", "batch"}:
        raise ArgumentError(
            f'batches: state must be {{"epoch": int, "batch": int}}, got {arguments.quoted(state)}'
        )
    read = {name: at_least(0, state[name], f"batches: {name}") for name in ("epoch", "batch")}
    if data.count is not None and read["batch"] > data.count:
        raise ArgumentError(
            f"batches: an epoch has {data.count} batches, but batch is {read['batch']}"
        )
    return read

"""Work on large arrays in several threads, and ufuncs that write into recycled memory.

NumPy's loops release the interpreter. Handing a part to another thread costs a microsecond, and
the thread begins some 12 microseconds later, so only long loops are shared out: those that compute
much per element sooner than those that wait for memory.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.memory.pool import LARGE, allocator, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array, Call


_LIGHT: Final = 1 << 21  # elements from which a loop that waits for memory is shared out
_HEAVY: Final = 1 << 19  # likewise, one that computes
_PARTS: Final = 4  # for each thread: where one is late, the others have less to wait for
_MOST: Final = 8  # threads; more wait for the same memory

_LIGHT_FUNCTIONS: Final = frozenset(
    {
        *(np.add, np.subtract, np.multiply, np.negative, np.absolute, np.maximum, np.minimum),
        *(np.square, np.floor, np.ceil, np.trunc, np.rint, np.conjugate, np.sign, np.copysign),
        *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
        *(np.logical_and, np.logical_or, np.logical_not, np.logical_xor, np.isnan, np.isinf),
        *(np.isfinite, np.signbit, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert),
        *(np.left_shift, np.right_shift),
    }
)


def thread_count() -> int:
    """Return how many threads share a loop: one per processor that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    count = len(allowed(0)) if allowed else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdigit() and int(limit):
        count = min(count, int(limit))
    return min(count, _MOST)


class _Workers:
    """The threads beside the calling one, started for the first long loop."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start with no threads: a forked child does not have its parent's."""
        self._count = thread_count() - 1
        self._tasks: SimpleQueue[_Task] | None = None

    @property
    def count(self) -> int:
        """The largest number of these threads."""
        return self._count

    def submit(self, call: Callable[[], Any]) -> _Task:
        """Run ``call`` in one of the threads."""
        tasks = self._tasks
        if tasks is None:
            tasks = self._tasks = SimpleQueue()
            for _ in range(self._count):
                Thread(target=_serve, args=(tasks,), name="tensorplug-cpu", daemon=True).start()
        task = _Task(call)
        tasks.put(task)
        return task


def _serve(tasks: SimpleQueue[_Task]) -> None:
    while True:
        tasks.get().run()


class _Task:
    """A call for another thread; it holds what the call works on until the end of that."""

    __slots__ = ("_end", "_error", "_held")

    def __init__(self, call: Callable[[], Any]) -> None:
        self._held = [call]
        self._error: BaseException | None = None
        self._end = Lock()
        self._end.acquire()

    def run(self) -> None:
        """Make the call, unless it was cancelled."""
        try:
            call = self._held.pop()
        except IndexError:
            return
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # raised where the end is waited for
            self._error = error
        finally:
            del call
            self._end.release()

    def wait(self) -> BaseException | None:
        """Return the error of the call, after its end."""
        with self._end:
            error, self._error = self._error, None  # whose traceback leads here
        return error

    def cancel(self) -> bool:
        """Return whether the call had not started, and will not."""
        try:
            self._held.pop()
        except IndexError:
            return False
        return True


_workers: Final = _Workers()
if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_workers.forget)


def is_large(out: TensorType) -> bool:
    """Return whether results of this type lie in recycled memory."""
    return out.nbytes >= LARGE and out.dtype.itemsize > 0


def ufunc_kernel(function: np.ufunc, out: TensorType) -> Call:
    """Return the callable of a plan for a ufunc whose result has the large type ``out``."""
    shape, dtype = out.shape, out.dtype.numpy
    shared = out.size >= (_LIGHT if function in _LIGHT_FUNCTIONS else _HEAVY)
    allocate = allocator(shape, dtype)

    def call(*inputs: Array) -> Array:
        first = inputs[0]
        plain = first.flags.c_contiguous and first.shape == shape
        result = allocate() if plain else _like(inputs, shape, dtype)
        if shared:
            share_out(partial(_into, function), inputs, result)
        else:
            function(*inputs, out=result)
        return result

    return call


def _into(function: np.ufunc, result: Array, *inputs: Array) -> None:
    function(*inputs, out=result)


def _like(inputs: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an empty array with the layout of the inputs, to be filled in memory order."""
    full = [array for array in inputs if array.shape == shape]
    if not full or any(array.flags.c_contiguous for array in full):
        return empty(shape, dtype)
    strides = full[0].strides
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    dense = empty(tuple(shape[axis] for axis in order), dtype)
    return dense.transpose(np.argsort(order))


def share_out(
    work: Callable[..., Any], inputs: Sequence[Array], result: Array, *, parts: int | None = None
) -> None:
    """Call ``work(result, *inputs)`` in several threads, each on its part of the longest axis.

    Inputs broadcast to ``result``. An error of one part is raised after all parts have ended.
    """
    count = min(parts or _workers.count + 1, _workers.count + 1)
    axis = max(range(result.ndim), key=result.shape.__getitem__)
    length = result.shape[axis]
    if count < 2 or length < count:
        work(result, *inputs)
        return
    edges = [length * part // count for part in range(count + 1)]
    calls = [
        partial(
            work,
            _part(result, axis - result.ndim, start, stop),
            *[_part(array, axis - result.ndim, start, stop) for array in inputs],
        )
        for start, stop in pairwise(edges)
    ]
    _run([calls[0], *[partial(_without_warnings, call) for call in calls[1:]]])


def in_parts(work: Callable[[int, int], Any], count: int, *, shared: bool = True) -> None:
    """Call ``work(start, stop)`` on parts of ``range(count)``, in several threads.

    A thread that is ready takes the next part. ``shared``: False for one call in this thread. An
    error of one part is raised after all parts have ended.
    """
    parts = min(_PARTS * (_workers.count + 1), count) if shared and _workers.count else 1
    if parts < 2:
        work(0, count)
        return
    ranges = iter([(count * part // parts, count * (part + 1) // parts) for part in range(parts)])

    def take() -> None:
        for start, stop in ranges:  # one step of the interpreter: no two threads get the same
            work(start, stop)

    together(take)


def together(work: Callable[[], Any]) -> None:
    """Call ``work`` in several threads, which share what there is to do among themselves.

    A thread that has not started when this one has ended is not waited for. An error of one
    thread is raised after all have ended.
    """
    pending = [_workers.submit(work) for _ in range(_workers.count)]
    try:
        work()
    finally:
        raised = [task.wait() for task in pending if not task.cancel()]
    for error in raised:
        if error is not None:
            raise error


def _run(calls: Sequence[Callable[[], Any]]) -> None:
    """Make the first call in this thread, each of the others in one of its own."""
    pending = [_workers.submit(call) for call in calls[1:]]
    try:
        calls[0]()
    finally:
        raised = [task.wait() for task in pending]
    for error in raised:
        if error is not None:
            raise error


def _without_warnings(call: Callable[[], Any]) -> None:
    """Run without floating-point warnings, which are still on in this thread."""
    with np.errstate(all="ignore"):
        call()


def _part(array: Array, axis: int, start: int, stop: int) -> Array:
    """Return a part of an axis, counted from the end; the whole array if it broadcasts there."""
    if array.ndim < -axis or array.shape[axis] == 1:
        return array
    index = [slice(None)] * array.ndim
    index[axis] = slice(start, stop)
    return array[tuple(index)]

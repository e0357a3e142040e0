"""For distributions that bring CPU kernels for ops of their own: the module to import.

A kernel needs none of it: buffers are NumPy arrays, and any function of arrays will do. What is
here makes kernels of several steps fast. ``elementwise`` has them work on as much at a time as a
cache holds, in several threads, and their results lie in recycled memory; it is called where a
kernel is prepared (``KernelTable.prepare``), with the ``out`` that the kernel asks for.
``share_out`` is for any other kernel that can be cut into independent pieces, products of
matrices among them; it is called where there is work to do.

    >>> import numpy as np
    >>> import tensorplug as tp
    >>> from tensorplug.dispatch import dispatch_several
    >>> from tensorplug.contract.spec import KernelSpec
    >>> POLAR = KernelSpec("Polar", ("x", "y"), lambda x, y: (x, x), outputs=("radius", "angle"))
    >>> def work(results, inputs):
    ...     (radius, angle), (x, y) = results, inputs
    ...     np.hypot(x, y, out=radius)
    ...     np.arctan2(y, x, out=angle)
    >>> def polar(x, y, *, out):
    ...     return elementwise(work, out)
    >>> with tp.use_backend("cpu"), tp.register_kernel(POLAR, "cpu", polar, prepares=True):
    ...     radius, angle = dispatch_several(POLAR, tp.asarray([3.0, 1.0]), tp.asarray([4.0, 0.0]))
    ...     radius.tolist(), [round(each, 3) for each in angle.tolist()]
    ([5.0, 1.0], [0.927, 0.0])

    >>> def squares(matrices):
    ...     results = np.empty_like(matrices)
    ...     def work(number):
    ...         np.matmul(matrices[number], matrices[number], out=results[number])
    ...     share_out(work, len(matrices))
    ...     return results
    >>> squares(np.array([[[1.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])).tolist()
    [[[1.0, 2.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu import large
from tensorplug_cpu.blas import one_thread_each
from tensorplug_cpu.filling import blank
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array, Call

__all__ = ["elementwise", "share_out"]

_BLOCK: Final = 1 << 16  # elements that few calls of NumPy take, and a cache holds
_SHARED: Final = 1 << 19  # elements from which several threads are worth their hand-over


def elementwise(
    work: Callable[[Sequence[Array], Sequence[Any]], None], outs: Sequence[TensorType]
) -> Call:
    """Return a callable of arrays that has ``work`` compute several results, block by block.

    ``work(results, inputs)`` gets parts of the arrays as vectors of one length, and fills those
    of the results; it may use them for what comes in between, but writes into no input. NumPy's
    warnings are off. Inputs of one element are given whole, as arrays of rank 0; None as None.

    Args:
        work: called for one block after the other, perhaps in several threads.
        outs: the types of the results, all of one shape.

    Raises:
        ValueError: the results have several shapes; when called, an input has another one.

    """
    shapes = {output.shape for output in outs}
    if len(shapes) != 1:
        raise ValueError(f"elementwise: results must have one shape, got {list(map(str, outs))}")
    (shape,) = shapes
    size = outs[0].size
    makers = [blank(output) for output in outs]
    blocks = np.arange(-(-size // _BLOCK))

    def run(*inputs: Array | None) -> list[Array]:
        results = [make() for make in makers]
        into = [result.reshape(-1) for result in results]
        given = [_flat(operand, shape) for operand in inputs]
        if size <= _BLOCK:
            if size:
                work(into, given)
            return results

        def several(numbers: Array) -> None:
            for first in range(int(numbers[0]) * _BLOCK, (int(numbers[-1]) + 1) * _BLOCK, _BLOCK):
                part = slice(first, first + _BLOCK)
                parts = [item if item is None or not item.ndim else item[part] for item in given]
                work([item[part] for item in into], parts)

        if size >= _SHARED:
            large.share_out(several, (), blocks)
        else:
            several(blocks)
        return results

    return quietly(run)


def _flat(array: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Return an array as a vector in row-major order, of one element as one of rank 0."""
    if array is None:
        return None
    if array.shape == shape:
        return array.reshape(-1)
    if array.size != 1:
        raise ValueError(f"elementwise: an input has shape {array.shape}, the results {shape}")
    return array.reshape(())


class _Place(threading.local):
    """Whether this thread is at work on a piece."""

    inside = False


_place: Final = _Place()


def share_out(work: Callable[[int], None], count: int) -> None:
    """Call ``work(number)`` for each number below ``count``, in as many threads as help.

    A thread that is done with one takes the next, in ascending order: long pieces come first.
    The pieces are the same whatever the number of threads, and while they are worked on BLAS
    takes one thread for each product of matrices. So are the results, bit for bit, if each piece
    writes where no other does, and sums over pieces are made afterwards, in their order. NumPy's
    warnings are off. A piece that shares out work itself does all of it in its own thread.

    Handing over takes some 50 microseconds, in all. NumPy lets other threads run while it
    computes, Python's interpreter does not: pieces should be few long calls of NumPy. What a
    piece needs for itself it needs once per thread, of which there are eight at most.

    Args:
        work: called with a number, perhaps in several threads at once.
        count: how many pieces there are.

    Raises:
        Exception: what a piece raises, when those begun have ended; the others are not begun.

    """
    rest = deque(range(count))

    def several(_: Array) -> None:
        _place.inside = True
        try:
            for number in _taken(rest):
                work(number)
        except BaseException:
            rest.clear()
            raise
        finally:
            _place.inside = False

    if _place.inside:
        for number in rest:
            work(number)
    elif count:
        with np.errstate(all="ignore"), one_thread_each:
            large.share_out(several, (), np.arange(count), parts=count)


def _taken(rest: deque[int]) -> Iterator[int]:
    """Yield what is first, until there is none: other threads take from it, too."""
    while True:
        try:
            number = rest.popleft()
        except IndexError:
            return
        yield number

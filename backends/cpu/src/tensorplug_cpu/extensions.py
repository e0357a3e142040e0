"""What distributions with CPU kernels of their own import: helpers that make such kernels fast.

A kernel needs none of them: buffers are NumPy arrays, and any function of arrays is a kernel.
``elementwise`` runs a kernel of several steps block by block, so that a block stays in the cache,
in several threads, with results in recycled memory; ``elementwise_kernel`` does so for one output,
and for inputs that broadcast. Call them where the kernel is prepared
(``KernelTable.prepare``), with the ``out`` that the kernel asks for. ``share_out`` runs any other
kernel that can be cut into independent pieces, such as matrix products. Call it in the kernel.

    >>> import numpy as np
    >>> import tensorplug as tp
    >>> from tensorplug.plugin import KernelSpec, dispatch_multiple
    >>> POLAR = KernelSpec("Polar", ("x", "y"), lambda x, y: (x, x), outputs=("radius", "angle"))
    >>> def work(results, inputs):
    ...     (radius, angle), (x, y) = results, inputs
    ...     np.hypot(x, y, out=radius)
    ...     np.arctan2(y, x, out=angle)
    >>> def polar(x, y, *, out):
    ...     return elementwise(work, out)
    >>> with tp.use_backend("cpu"), tp.register_kernel(POLAR, "cpu", polar, prepares=True):
    ...     x, y = tp.asarray([3.0, 1.0]), tp.asarray([4.0, 0.0])
    ...     radius, angle = dispatch_multiple(POLAR, x, y)
    ...     radius.tolist(), [round(radians, 3) for radians in angle.tolist()]
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

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.execution.blas import one_thread_each
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.execution.outputs import elementwise_kernel, output_allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array, Call


__all__ = ["elementwise", "elementwise_kernel", "share_out"]

_BLOCK: Final = 1 << 16  # elements that few calls of NumPy take, and a cache holds
_SHARED: Final = 1 << 19  # elements from which several threads are worth their hand-over


def elementwise(
    work: Callable[[Sequence[Array], Sequence[Any]], None], outs: Sequence[TensorType]
) -> Call:
    """Return a callable of arrays in which ``work`` computes multiple outputs, block by block.

    ``work(outputs, inputs)`` gets blocks of the arrays as vectors of one length and fills those of
    the outputs. It may keep intermediate values there, but must not write into an input. NumPy's
    warnings are off. An input of one element is passed as an array of rank 0, None as None.

    Args:
        work: called for one block after the other, perhaps in several threads.
        outs: the types of the outputs, all of one shape.

    Raises:
        ValueError: the outputs differ in shape; or, when called, an input has another shape.

    """
    shapes = {out.shape for out in outs}
    if len(shapes) != 1:
        raise ValueError(f"elementwise: outputs must have one shape, got {list(map(str, outs))}")
    (shape,) = shapes
    size = outs[0].size
    allocators = [output_allocator(out) for out in outs]
    blocks = np.arange(-(-size // _BLOCK))

    def run(*inputs: Array | None) -> list[Array]:
        outputs = [allocate() for allocate in allocators]
        flat_outputs = [output.reshape(-1) for output in outputs]
        flat_inputs = [_flat(array, shape) for array in inputs]
        if size <= _BLOCK:
            if size:
                work(flat_outputs, flat_inputs)
            return outputs

        def run_blocks(numbers: Array) -> None:
            for first in range(int(numbers[0]) * _BLOCK, (int(numbers[-1]) + 1) * _BLOCK, _BLOCK):
                block = slice(first, first + _BLOCK)
                work(
                    [array[block] for array in flat_outputs],
                    [x if x is None or not x.ndim else x[block] for x in flat_inputs],
                )

        if size >= _SHARED:
            parallel.share_out(run_blocks, (), blocks)
        else:
            run_blocks(blocks)
        return outputs

    return without_warnings(run)


def _flat(array: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Return an array as a vector in row-major order, of one element as one of rank 0."""
    if array is None:
        return None
    if array.shape == shape:
        return array.reshape(-1)
    if array.size != 1:
        raise ValueError(f"elementwise: an input has shape {array.shape}, the outputs {shape}")
    return array.reshape(())


class _ThreadState(threading.local):
    """Whether this thread is working on a piece."""

    busy = False


_thread: Final = _ThreadState()


def share_out(work: Callable[[int], None], count: int) -> None:
    """Call ``work(number)`` for each number below ``count``, in as many threads as help.

    A thread that has finished one number takes the next, in ascending order, so let long pieces
    come first. The pieces do not depend on the number of threads, and BLAS runs each matrix
    product in one thread meanwhile. So results are the same bit for bit, if each piece writes to
    its own place and sums over pieces are computed afterwards, in order. NumPy's warnings are
    off. A piece that calls ``share_out`` itself does all of that work in its own thread.

    The hand-over takes about 50 microseconds in all. NumPy releases the interpreter while it
    computes, so a piece should be a few long calls of NumPy. There are at most eight threads, and
    each needs the temporary memory of one piece.

    Args:
        work: called with a number, perhaps in several threads at once.
        count: the number of pieces.

    Raises:
        Exception: what a piece raises, once the running pieces have ended; no others start.

    """
    queue = deque(range(count))

    def run_pieces(_: Array) -> None:
        _thread.busy = True
        try:
            for number in _taken_from(queue):
                work(number)
        except BaseException:
            queue.clear()
            raise
        finally:
            _thread.busy = False

    if _thread.busy:
        for number in queue:
            work(number)
    elif count:
        with np.errstate(all="ignore"):
            one_thread_each.run(
                lambda: parallel.share_out(run_pieces, (), np.arange(count), parts=count)
            )


def _taken_from(queue: deque[int]) -> Iterator[int]:
    """Yield the first number until the queue is empty; other threads take from it too."""
    while True:
        try:
            number = queue.popleft()
        except IndexError:
            return
        yield number

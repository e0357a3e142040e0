"""The buffer, and the few buffers that are computed before they are read.

Only results of one block (called small here) are computed early, in two cases:

- a small result of data in several blocks is an input together with data in several blocks. Left
  in the graph, it would keep all blocks in memory from its own pass over them to the next one, and
  in a loop the graph would grow with every iteration;
- more than ``max_layers`` kernels are pending on a small result.

With it, all other small results that wait for the same data are computed in the same pass.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import dask.array as da


class Source(NamedTuple):
    """Data in several blocks, and how many layers its graph had when it came."""

    name: str
    layers: int

    @classmethod
    def of(cls, array: da.Array) -> Source:
        """Return an array as a source."""
        return cls(array.name, len(array.dask.layers))


class Lazy:
    """The data of a tensor: a Dask array, computed or not.

    ``sources``: the arrays of several blocks that must be read to compute it, if it is a small
    one that is not computed yet; or from which it is made, if it is in several blocks.
    """

    __slots__ = ("__weakref__", "array", "sources")

    def __init__(self, array: da.Array, sources: frozenset[Source] = frozenset()) -> None:
        self.array = array
        self.sources = sources

    @property
    def small(self) -> bool:
        """Whether it is one block."""
        return bool(self.array.npartitions == 1)

    @property
    def waits(self) -> bool:
        """Whether it is small, and reads data in several blocks when it is computed."""
        return self.small and bool(self.sources)


class Pending:
    """The small results of one device that are not computed yet.

    Args:
        persist: computes arrays together, and returns them computed.
        max_layers: how many kernels may be pending on a small result.

    """

    def __init__(
        self, persist: Callable[[Sequence[da.Array]], Sequence[da.Array]], max_layers: int
    ) -> None:
        self._persist = persist
        self._max_layers = max_layers
        self._boxes: WeakSet[Lazy] = WeakSet()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._boxes)

    def result(self, array: da.Array, inputs: Iterable[Lazy]) -> Lazy:
        """Return the buffer for a kernel's result from ``inputs``; this may compute it."""
        sources: frozenset[Source] = frozenset().union(*(operand.sources for operand in inputs))
        if array.npartitions > 1:
            return Lazy(array, sources or frozenset({Source.of(array)}))
        box = Lazy(array, sources)
        with self._lock:
            self._boxes.add(box)
        # A table made of many files has more layers than that, and each result computed early
        # would cost a pass over it.
        brought = sum(source.layers for source in sources)
        if len(array.dask.layers) - brought > self._max_layers:
            self.settle(box)
        return box

    def ready(self, inputs: Sequence[Lazy]) -> None:
        """Compute the small inputs of a kernel that has a large input too."""
        if all(operand.small for operand in inputs):
            return
        for operand in inputs:
            if operand.waits:
                self.settle(operand)

    def settle(self, box: Lazy) -> None:
        """Compute a small buffer if it is pending, and the others that wait for the same data."""
        with self._lock:
            if box not in self._boxes:
                return
            waiting = [other for other in self._boxes if _related(other, box)]
        others = [other for other in waiting if other is not box]
        try:
            self.compute([box, *others])
        except Exception:  # see below; this one's own error comes again
            # The error may come from another buffer, and is raised when that one is read.
            if not others:
                raise
            self.compute([box])

    def compute(self, boxes: Sequence[Lazy]) -> None:
        """Compute buffers together and keep the results, in as many blocks as before."""
        for box, array in zip(boxes, self._persist([other.array for other in boxes]), strict=True):
            box.array = array
            box.sources = frozenset() if box.small else frozenset({Source.of(array)})
        with self._lock:
            self._boxes.difference_update(boxes)

    def finish(self) -> None:
        """Compute all of them; raise the first error, after the others are computed.

        A buffer with an error waits no longer: the error has been told, and comes again when the
        buffer is read.
        """
        with self._lock:
            boxes = list(self._boxes)
        try:
            if boxes:
                self.compute(boxes)
        except Exception as error:  # noqa: BLE001  # whatever a kernel raises; it comes again
            for box in boxes:
                with suppress(Exception):
                    self.compute([box])
            with self._lock:
                self._boxes.difference_update(boxes)
            # Without the frames, which would keep buffers alive.
            raise error.with_traceback(None) from None


def _related(one: Lazy, other: Lazy) -> bool:
    """Return whether computing both together saves work."""
    return bool(one.sources & other.sources) or not (one.sources or other.sources)

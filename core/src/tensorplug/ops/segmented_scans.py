"""Scans of runs of equal places, in primitive ops.

Updates sorted by their places form runs. A scan of n updates takes log2(n) steps, in each of which
an update is combined with the one that lies 1, 2, 4, ... before it, if that is of the same run.
(Hillis, Steele: Data Parallel Algorithms, 1986.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.ops.arrangement import flip
from tensorplug.ops.creation import full, ones
from tensorplug.ops.elementwise.arithmetic import multiply
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import expand_dims
from tensorplug.ops.sorting import topk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import Scalar
    from tensorplug.dispatch.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Runs:
    """Numbers of updates, ``[n]``, n >= 1, in descending order of their places.

    ``order``: which update comes at each position; equal places keep the order of the updates.
    ``places``: their places in that order.
    """

    order: Tensor
    places: Tensor

    @property
    def last(self) -> Tensor:
        """Whether an update is the last one of its run."""
        end = ones((1,), dtype=dt.bool_)
        return concat([self.places[1:] != self.places[:-1], end])

    def scan(
        self, values: Tensor, combine: Callable[[Tensor, Tensor], Tensor], neutral: Scalar
    ) -> Tensor:
        """Return each value ``[n, width]``, in order, combined with all earlier ones of its run.

        ``neutral``: does not change what it is combined with.
        """
        result, count, distance = values, values.shape[0], 1
        while distance < count:
            same = self.places[distance:] == self.places[:-distance]
            earlier = where(expand_dims(same, axis=1), result[:-distance], neutral)
            result = concat([result[:distance], combine(earlier, result[distance:])])
            distance *= 2
        return result

    def before(self, scanned: Tensor, neutral: Scalar) -> Tensor:
        """Return for each update the scanned value before it, neutral at the start of a run."""
        first = full((1, scanned.shape[1]), neutral, dtype=scanned.dtype)
        same = self.places[1:] == self.places[:-1]
        return concat([first, where(expand_dims(same, axis=1), scanned[:-1], neutral)])

    def reversed(self) -> Runs:
        """Return the runs in the opposite order."""
        return Runs(flip(self.order), flip(self.places))

    def unsort(self, values: Tensor) -> Tensor:
        """Return values ``[n, width]`` in the order that the updates had before the sort."""
        return scatter_nd(expand_dims(self.order, axis=1), values, values.shape)


def sort(places: Tensor) -> Runs:
    """Return the runs of integers ``places``, ``[n]`` with n >= 1."""
    found, order = topk(places, places.shape[0])
    return Runs(order, found)


def multiply_others(values: Tensor, places: Tensor) -> Tensor:
    """Return for each value ``[n, width]`` the product of the others with its place ``[n]``.

    The quotient of the product and the value would fail at zeros. The product of what comes before
    and after a value is a polynomial, so its derivative is right at zeros too.
    """
    runs = sort(places)
    back, ordered = runs.reversed(), gather(values, runs.order)
    earlier = runs.before(runs.scan(ordered, multiply, 1), 1)
    later = back.before(back.scan(flip(ordered, axis=0), multiply, 1), 1)
    return runs.unsort(earlier * flip(later, axis=0))

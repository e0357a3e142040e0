"""Gradients of non-maximum suppression: only the returned scores have any."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops.creation import zeros
from tensorplug.ops.elementwise.arithmetic import maximum, minimum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, greater, less, logical_and
from tensorplug.ops.elementwise.unary import exp
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.image import suppression as ops
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import reshape
from tensorplug.ops.ranges import arange
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.NON_MAX_SUPPRESSION_V3, because="gives indices")
rules.stop(ops.NON_MAX_SUPPRESSION_V4, because="gives indices")


@rules.vjp(ops.NON_MAX_SUPPRESSION_V5, "scores")
def scores(
    dy_selected_scores: Tensor,
    boxes: Tensor,
    scores_type: TensorType,
    selected_indices: Tensor,
    soft_nms_sigma: float,
) -> Tensor:
    cotangent = dy_selected_scores
    if soft_nms_sigma:
        overlap = _Overlaps.of(gather(boxes, selected_indices)).overlap
        cotangent = cotangent * exp(sum_(overlap * overlap, axis=1) * (-0.5 / soft_nms_sigma))
    return scatter_nd(reshape(selected_indices, (-1, 1)), cotangent, scores_type.shape)


@rules.vjp(ops.NON_MAX_SUPPRESSION_V5, "boxes")
def boxes(
    dy_selected_scores: Tensor,
    boxes: Tensor,
    selected_indices: Tensor,
    selected_scores: Tensor,
    soft_nms_sigma: float,
) -> Tensor:
    # The selection is a step function; the amount by which others lower a score is smooth.
    if not soft_nms_sigma:
        return zeros(boxes.shape, dtype=boxes.dtype)
    chosen = gather(boxes, selected_indices)
    lowered = reshape(dy_selected_scores * selected_scores, (-1, 1)) * (-1.0 / soft_nms_sigma)
    cotangents = _Overlaps.of(chosen).vjp(lowered)
    return scatter_nd(reshape(selected_indices, (-1, 1)), cotangents, boxes.shape)


class _Side(NamedTuple):
    """One axis of the selected boxes: columns of their begins and ends."""

    one: Tensor
    other: Tensor
    first: Tensor
    last: Tensor

    @classmethod
    def of(cls, boxes: Tensor, at: int) -> _Side:
        one, other = (slice_(boxes, (0, column), (-1, 1)) for column in (at, at + 2))
        return cls(one, other, minimum(one, other), maximum(one, other))

    @property
    def length(self) -> Tensor:
        return self.last - self.first

    @property
    def shared(self) -> Tensor:
        """The length that each pair of boxes shares."""
        common = minimum(self.last, self.last.T) - maximum(self.first, self.first.T)
        return maximum(common, 0)

    def vjp(self, shared: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cotangents of both corners from those of the shared and own lengths."""
        last = length + _sum_pairs(shared, less, self.last)
        first = -length - _sum_pairs(shared, greater, self.first)
        before = _mark_wins(less, self.one, self.other)
        return first * before + last * (1.0 - before), last * before + first * (1.0 - before)


def _mark_wins(wins: Callable[..., Tensor], a: Tensor, b: Tensor) -> Tensor:
    """Return 1 where ``a`` wins over ``b``, a half at a tie, 0 otherwise."""
    return astype(wins(a, b), a.dtype) + astype(equal(a, b), a.dtype) * 0.5


def _sum_pairs(pairs: Tensor, wins: Callable[..., Tensor], ends: Tensor) -> Tensor:
    """Return the sums of the pairs' cotangents for each box whose end counts."""
    own = sum_(pairs * _mark_wins(wins, ends, ends.T), axis=1, keepdims=True)
    return own + reshape(sum_(pairs * _mark_wins(wins, ends.T, ends), axis=0), own.shape)


class _Overlaps(NamedTuple):
    """The overlap of each selected box (rows) with those selected before it (columns)."""

    y: _Side
    x: _Side
    shared: Tensor
    union: Tensor

    @classmethod
    def of(cls, boxes: Tensor) -> _Overlaps:
        y, x = _Side.of(boxes, 0), _Side.of(boxes, 1)
        shared, area = y.shared * x.shared, y.length * x.length
        order = arange(boxes.shape[0], dtype=dt.int32)
        earlier = greater(reshape(order, (-1, 1)), order)
        counted = logical_and(earlier, greater(shared, 0))
        union = where(counted, area + area.T - shared, 1)
        return cls(y, x, where(counted, shared, 0), union)

    @property
    def overlap(self) -> Tensor:
        return self.shared / self.union

    def vjp(self, cotangent: Tensor) -> Tensor:
        """Return the cotangents of the boxes from that of half the overlaps' squares."""
        at = cotangent * self.overlap / self.union
        shared, areas = at * (1.0 + self.overlap), at * -self.overlap
        area = sum_(areas, axis=1, keepdims=True) + reshape(sum_(areas, axis=0), (-1, 1))
        tops, bottoms = self.y.vjp(shared * self.x.shared, area * self.x.length)
        lefts, rights = self.x.vjp(shared * self.y.shared, area * self.y.length)
        return concat((tops, lefts, bottoms, rights), axis=1)

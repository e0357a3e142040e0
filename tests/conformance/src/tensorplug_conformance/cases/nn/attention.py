"""Cases for scaled dot-product attention and its gradient kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.nn import attention as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array, Layout, Operand
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Kind:
    """A kind of call: leading axes, numbers of queries and keys, widths of q and k and of v.

    ``bias`` and ``mask``: their shapes, None for none; of the mask about a quarter is False.
    ``lengths``: of the keys. ``shared``: the leading axes of k and v, if they are not q's.
    """

    name: str
    sizes: tuple[int, int, int, int]
    batch: Shape = ()
    bias: Shape | None = None
    mask: Shape | None = None
    lengths: Any = None
    shared: Shape | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    layout: Layout = "dense"
    reach: float = 2.0  # of the numbers in q, k and v

    def inputs(self, corpus: Corpus) -> tuple[Any, ...]:
        """Return q, k, v, bias, mask and lengths."""
        queries, keys, width, of_v = self.sizes
        of_keys = self.batch if self.shared is None else self.shared
        q, k, v = (
            corpus.ordinary(shape, -self.reach, self.reach)
            for shape in (
                (*self.batch, queries, width),
                (*of_keys, keys, width),
                (*of_keys, keys, of_v),
            )
        )
        bias = None if self.bias is None else corpus.ordinary(self.bias, -2.0, 2.0)
        mask = None if self.mask is None else _mask(self.mask)
        counts = None if self.lengths is None else np.asarray(self.lengths)
        return q, k, v, bias, mask, counts


def _mask(shape: Shape) -> Array:
    return np.asarray((np.arange(int(np.prod(shape))) * 7 % 4 != 1).reshape(shape))


_CAUSAL: dict[str, Any] = {"causal": True}
_KINDS = (
    _Kind("one head", (5, 7, 4, 6)),
    _Kind("heads", (6, 6, 8, 8), (2, 3)),
    _Kind("causal", (7, 7, 5, 3), (2,), attributes=_CAUSAL),
    _Kind("causal, fewer keys", (6, 4, 3, 3), attributes=_CAUSAL),
    _Kind("causal, fewer queries", (3, 6, 3, 3), attributes=_CAUSAL),
    _Kind("scaled", (4, 5, 3, 2), attributes={"scale": 0.3}),
    _Kind("scaled by a negative number", (4, 5, 3, 2), attributes={"scale": -0.3}),
    _Kind("mask", (5, 6, 4, 4), (2,), mask=(5, 6)),
    _Kind("mask of keys", (5, 6, 4, 4), (2, 2), mask=(2, 1, 1, 6)),
    _Kind("mask of queries", (5, 6, 4, 4), (2,), mask=(5, 1)),
    _Kind("mask of each", (3, 4, 4, 4), (2, 2), mask=(2, 2, 3, 4)),
    _Kind("mask in one number", (3, 4, 4, 4), mask=()),
    _Kind("bias", (5, 6, 4, 4), (2,), bias=(5, 6)),
    _Kind("bias of heads", (4, 5, 3, 3), (2, 3), bias=(3, 1, 5)),
    _Kind("bias of each", (3, 4, 4, 4), (2,), bias=(2, 3, 4)),
    _Kind("all at once", (6, 6, 4, 4), (2,), bias=(6, 6), mask=(2, 1, 6), attributes=_CAUSAL),
    _Kind("lengths", (4, 6, 4, 4), (3, 2), lengths=[[4], [6], [1]]),
    _Kind("one length", (4, 6, 4, 4), (2,), lengths=3),
    _Kind("lengths in a byte", (3, 300, 4, 4), (2,), lengths=np.array([255, 2], np.uint8)),
    _Kind("lengths beyond the keys", (2, 5, 4, 4), (3,), lengths=[9, 0, -2]),
    _Kind("lengths, causal", (3, 9, 4, 4), (4,), lengths=[3, 9, 6, 1], attributes=_CAUSAL),
    _Kind("lengths of an old query", (1, 70, 8, 8), (3,), lengths=[70, 33, 1], attributes=_CAUSAL),
    _Kind(
        "lengths and all else",
        (5, 8, 4, 4),
        (2,),
        bias=(5, 8),
        mask=(2, 1, 8),
        lengths=[6, 8],
        attributes=_CAUSAL,
    ),
    _Kind("heads share keys", (5, 7, 4, 6), (2, 3), shared=(2, 1)),
    _Kind(
        "heads share keys and lengths",
        (4, 40, 16, 8),
        (2, 2, 3),
        shared=(2, 2, 1),
        mask=(3, 1, 40),
        lengths=[[[30]], [[40]]],
        attributes=_CAUSAL,
    ),
    _Kind(
        "one query of heads that share keys",
        (1, 300, 64, 64),
        (2, 3),
        shared=(2, 1),
        lengths=[[290], [17]],
        attributes=_CAUSAL,
        reach=1.0,
    ),
    _Kind("one query, long", (1, 1100, 32, 16), (3,), lengths=[1100, 600, 0], reach=1.0),
    _Kind("all share keys", (3, 4, 2, 2), (2, 3), shared=(1, 1)),
    _Kind("batches share keys", (3, 4, 2, 2), (2, 3), shared=(1, 3)),
    _Kind("one query", (1, 9, 4, 4), (3,)),
    _Kind("one key", (4, 1, 4, 4)),
    _Kind("one feature", (4, 5, 1, 1)),
    _Kind("wide", (3, 5, 40, 33)),
    _Kind("odd", (37, 67, 17, 19)),
    _Kind("large", (257, 263, 4, 4), reach=1.0),
    _Kind("large, causal", (300, 257, 3, 3), attributes=_CAUSAL, reach=1.0),
    _Kind("many heads", (3, 5, 2, 2), (70, 13), mask=(5,)),
    _Kind("rank 6", (3, 2, 3, 2), (1, 2, 1, 2), mask=(2, 1, 1, 3, 1)),
    _Kind("no queries", (0, 3, 2, 2)),
    _Kind("no keys", (3, 0, 2, 2)),
    _Kind("no features", (3, 4, 0, 2)),
    _Kind("no values", (3, 4, 2, 0)),
    _Kind("no heads", (3, 4, 2, 2), (0, 2)),
    _Kind("transposed", (4, 5, 3, 3), (2,), mask=(4, 5), layout="transposed"),
    _Kind("sliced", (4, 5, 3, 3), (2,), bias=(4, 5), layout="sliced"),
)


@cases.of(specs.ATTENTION, oracle=oracle.attention)
def attention(corpus: Corpus) -> Iterator[Case]:
    """All ways to mask, queries without keys, scores far apart, and operands that do not fit."""
    for kind in _KINDS:
        yield Case(kind.name, kind.inputs(corpus), kind.attributes, layout=kind.layout)
    yield from _special(corpus)
    q, k, v = (corpus.ordinary((3, 4)) for _ in range(3))
    seen, hidden = np.ones((3, 3), bool), corpus.of(np.full((3, 3), -np.inf))
    wrong: tuple[tuple[str, tuple[Operand, ...], dict[str, Any], type[Exception]], ...] = (
        ("v is missing", (q, k, None, None, None, None), {}, ArgumentError),
        ("rank 1", (q[0], k, v, None, None, None), {}, ShapeError),
        ("features differ", (q[:, :3], k, v, None, None, None), {}, ShapeError),
        ("keys differ", (q, k, v[:2], None, None, None), {}, ShapeError),
        ("heads differ", (q[None], k, v, None, None, None), {}, ShapeError),
        ("mask too wide", (q, k, v, None, np.ones((2, 3, 3), bool), None), {}, ShapeError),
        ("keys of more heads", (q[None], k[[[0]] * 2], v[None], *[None] * 3), {}, ShapeError),
        ("lengths of a batch", (q, k, v, None, None, np.array([3])), {}, ShapeError),
        ("bias does not fit", (q, k, v, hidden[:2], seen, None), {}, ShapeError),
        ("scale is not a number", (q, k, v, None, None, None), {"scale": "1"}, ArgumentError),
        ("scale is infinite", (q, k, v, None, None, None), {"scale": float("inf")}, ArgumentError),
        ("causal is not a flag", (q, k, v, None, None, None), {"causal": 1}, ArgumentError),
    )
    for name, inputs, attributes, error in wrong:
        yield Case(name, inputs, attributes, expected=error)


def _special(corpus: Corpus) -> Iterator[Case]:
    """Yield calls in which some scores are infinite, NaN, or so large that exp overflows."""
    q, k, v = (corpus.ordinary((4, 3)) for _ in range(3))
    rows = np.array([[True] * 4, [False] * 4, [True, False] * 2, [False] * 3 + [True]])
    yield Case("queries without keys", (q, k, v, None, rows, None))
    yield Case("nothing seen", (q, k, v, None, np.zeros((1, 1), bool), None))
    below = corpus.of(np.where(rows, 0.5, -np.inf))
    yield Case("queries without keys by bias", (q, k, v, below, None, None))
    far = corpus.of([[100.0, 0, 0], [-100, 0, 0], [0, 0, 0], [80, 80, 80]])
    yield Case("far apart", (far, far, v, None, None, None), {"scale": 1.0})
    lost = q.copy()
    lost[1, 0] = np.nan
    yield Case("a query is not a number", (lost, k, v, None, rows | True, None))
    lost = k.copy()
    lost[3, 2] = np.nan
    yield Case("a key is not a number", (q, lost, v, None, None, None), _CAUSAL)
    lost = k.copy()
    lost[2:] = np.nan  # behind the keys that count
    yield Case("keys behind are not numbers", (q, lost, v, None, None, np.array(2)))
    above = corpus.of(np.where(rows[:, ::-1], 0.0, np.inf))
    yield Case("infinite scores", (q, k, v, above, None, None))


def _pulled(kind: _Kind, corpus: Corpus) -> Case:
    """Return the call of the gradient kernel that belongs to a call."""
    inputs = kind.inputs(corpus)
    y, rows = (bounded.value for bounded in oracle.attention(*inputs, **kind.attributes))
    dy = corpus.ordinary(y.shape, -1.0, 1.0)
    dtype = np.result_type(dy.dtype, np.float32)
    delta = np.asarray((dy.astype(dtype) * y.astype(dtype)).sum(axis=-1) + 0.25, dtype)
    pulled = (dy, *inputs, rows.astype(dtype), delta)
    return Case(kind.name, pulled, kind.attributes, layout=kind.layout)


@cases.of(specs.ATTENTION_GRAD, oracle=oracle.attention_grad)
def attention_grad(corpus: Corpus) -> Iterator[Case]:
    """The same calls; one more where rows see nothing, and one whose rows do not fit."""
    for kind in _KINDS:
        yield _pulled(kind, corpus)
    plain = _pulled(_Kind("plain", (4, 4, 3, 3)), corpus)
    dy, q, k, v, _, _, _, rows, delta = plain.inputs
    assert isinstance(rows, np.ndarray)
    seen = np.array([[True], [False], [True], [False]])
    without = np.where(seen[:, 0], rows, -np.inf).astype(rows.dtype)
    yield Case("queries without keys", (dy, q, k, v, None, seen, None, without, delta))
    yield Case(
        "rows differ", (dy, q, k, v, None, None, None, rows[:2], delta), expected=ShapeError
    )


_POINTS = (
    _Kind("one head", (3, 2, 2, 2), reach=1.0),
    _Kind("heads", (2, 3, 2, 1), (2, 1), reach=1.0),
    _Kind("causal", (3, 3, 2, 2), attributes=_CAUSAL, reach=1.0),
    _Kind("scaled", (2, 3, 2, 2), attributes={"scale": 0.75}, reach=1.0),
    _Kind("mask", (2, 4, 2, 2), mask=(2, 4), reach=1.0),
    _Kind("lengths", (2, 4, 2, 2), (2,), lengths=[4, 3], attributes=_CAUSAL, reach=1.0),
    _Kind("heads share keys", (2, 3, 2, 2), (2, 2), shared=(2, 1), lengths=2, reach=1.0),
    _Kind("bias", (2, 3, 2, 2), bias=(2, 3), reach=1.0),
    _Kind("bias of keys", (2, 3, 2, 2), (2,), bias=(3,), mask=(2, 1), reach=1.0),
    _Kind("bias of queries", (2, 3, 2, 2), (2,), bias=(2, 2, 1), reach=1.0),
    _Kind("no queries", (0, 3, 2, 2)),
    _Kind("no keys", (2, 0, 2, 2)),
)


@cases.gradients(specs.ATTENTION, "q", "k", "v", "bias")
def attention_points(corpus: Corpus) -> Iterator[Case]:
    """It is smooth wherever all numbers are finite; a query without keys has a constant result."""
    for kind in (*_POINTS[:-1], _Kind("no heads", (2, 3, 2, 2), (0,))):
        yield Case(kind.name, kind.inputs(corpus), kind.attributes)


@cases.gradients(specs.ATTENTION_GRAD, "dy", "q", "k", "v", "bias", "log_sum_exp", "delta")
def attention_grad_points(corpus: Corpus) -> Iterator[Case]:
    """So is this; without keys dq is constant."""
    for kind in _POINTS:
        yield _pulled(kind, corpus)

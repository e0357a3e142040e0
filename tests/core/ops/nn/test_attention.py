"""The public function of attention: groups of heads, masks, dropout, dtypes and bad input.

The kernels and decompositions are tested by the conformance suite's cases.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

attend = tp.nn.scaled_dot_product_attention
rng = np.random.default_rng(31)


@pytest.fixture(autouse=True, params=["as installed", "decomposed"])
def _on_the_cpu(request):
    """Use the CPU, also without a fused kernel, which another distribution may have brought."""
    with tp.testing.isolated_engine("cpu"):
        if request.param == "decomposed":
            for name in ("ScaledDotProductAttention", "ScaledDotProductAttentionGrad"):
                if tp.explain(name).how == "native":
                    tp.unregister_kernel(name, "cpu")
        yield


def formula(q, k, v, mask=None, *, is_causal=False, scale=None):
    """Evaluate the definition with all heads of q, in float64; each query sees a key."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.einsum("...id,...jd->...ij", q, k) * (scale or 1 / math.sqrt(q.shape[-1]))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("...ij,...jd->...id", shares / shares.sum(-1, keepdims=True), v)


def seen(*shape):
    mask = rng.random(shape) < 0.6
    mask[..., 0] = True
    return mask


Q, KV = (2, 6, 4, 3), (2, 2, 5, 3)
GROUPED = {  # shapes of q and of k and v, the mask, options
    "three heads share one": (Q, KV, None, {}),
    "all share one": (Q, (2, 1, 5, 3), None, {}),
    "nothing is shared": (Q, (2, 6, 5, 3), None, {}),
    "causal": (Q, KV, None, {"is_causal": True}),
    "scaled": (Q, KV, None, {"scale": 0.25}),
    "mask": (Q, KV, seen(4, 5), {}),
    "mask of one head": (Q, KV, seen(2, 1, 4, 5), {}),
    "mask of each head": (Q, KV, seen(6, 4, 5), {}),
    "bias of each head": (Q, KV, rng.normal(size=(2, 6, 4, 5)), {}),
    "without a batch": (Q[1:], KV[1:], None, {}),
    "batches broadcast": ((3, 1, *Q[1:]), KV, None, {}),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", GROUPED)
def test_heads_in_groups(name, dtype):
    q_shape, shape, mask, options = GROUPED[name]
    q, k, v = (rng.normal(size=s).astype(dtype) for s in (q_shape, shape, shape))
    if mask is not None and mask.dtype != bool:
        mask = mask.astype(dtype)
    group = q_shape[-3] // shape[-3]
    expected = formula(q, np.repeat(k, group, -3), np.repeat(v, group, -3), mask, **options)
    y = attend(q, k, v, mask, grouped_query=True, **options)
    assert (y.shape, y.dtype.name) == (expected.shape, dtype)
    tolerance = 16 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(y.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_dropout():
    key = tp.random.key(3)
    q, k = rng.normal(size=(2, 50, 4)), rng.normal(size=(2, 80, 4))
    v = np.broadcast_to(np.eye(80), (2, 80, 80))  # so that the result is the weights
    whole = attend(q, k, v, is_causal=True).numpy()
    kept = attend(q, k, v, is_causal=True, dropout=0.25, dropout_key=key).numpy()
    dropped = (kept == 0) & (whole != 0)
    np.testing.assert_allclose(kept[~dropped], whole[~dropped] / 0.75, rtol=1e-12)
    share = dropped.sum() / (whole != 0).sum()
    assert abs(share - 0.25) < 0.04  # of 2,550 weights: five standard deviations
    again = attend(q, k, v, is_causal=True, dropout=0.25, dropout_key=key).numpy()
    np.testing.assert_array_equal(kept, again)
    np.testing.assert_array_equal(whole, attend(q, k, v, is_causal=True, dropout_key=key).numpy())


LENGTHS = {  # shapes of q and of k and v, lengths, options
    "one for all": ((2, 3, 4), (2, 7, 4), 5, {}),
    "of a batch": ((3, 2, 3, 4), (3, 2, 7, 4), [7, 3, 5], {}),
    "of heads": ((2, 2, 3, 4), (2, 2, 7, 4), [[7, 3], [4, 5]], {}),
    "of a batch, of groups": ((2, 6, 3, 4), (2, 2, 7, 4), [4, 7], {"grouped_query": True}),
    "one query": ((2, 6, 1, 4), (2, 2, 7, 4), [1, 6], {"grouped_query": True}),
    "in a byte": ((2, 3, 4), (2, 300, 4), np.uint8([200, 3]), {}),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("name", LENGTHS)
def test_lengths(name, is_causal, compiled):
    q_shape, shape, lengths, options = LENGTHS[name]
    q, k, v = (rng.normal(size=s).astype(np.float32) for s in (q_shape, shape, shape))
    group = q_shape[-3] // shape[-3] if options else 1
    counts = np.asarray(lengths, int)
    counts = counts.reshape(counts.shape + (1,) * (len(q_shape) - counts.ndim))
    queries, keys = np.arange(q_shape[-2])[:, None], np.arange(shape[-2])
    mask = keys < counts - (q_shape[-2] - 1 - queries) * is_causal
    expected = formula(q, np.repeat(k, group, -3), np.repeat(v, group, -3), mask)

    def f(q, k, v, lengths):
        return attend(q, k, v, is_causal=is_causal, lengths=lengths, **options)

    y = (tp.compile(f) if compiled else f)(*map(tp.asarray, (q, k, v, lengths)))
    assert (y.shape, y.dtype.name) == (expected.shape, "float32")
    np.testing.assert_allclose(y.numpy(), expected, rtol=2e-6, atol=2e-6)


def test_lengths_and_shared_keys_under_vmap():
    q, k, v = (rng.normal(size=s) for s in ((5, 4, 2, 3), (5, 2, 7, 3), (2, 7, 3)))
    counts = tp.asarray([3, 7, 2, 5, 4])

    def f(q, k, v, count):
        return attend(q, k, v, is_causal=True, lengths=count, grouped_query=True)

    together = tp.vmap(f, in_axes=(0, 0, None, 0))(*map(tp.asarray, (q, k, v)), counts)
    each = np.stack([f(q[i], k[i], v, counts[i]).numpy() for i in range(5)])
    assert together.shape == each.shape
    np.testing.assert_allclose(together.numpy(), each, rtol=1e-12, atol=1e-12)


def test_dropout_with_lengths():
    key = tp.random.key(3)
    q, k = np.zeros((2, 2, 4)), np.zeros((2, 9, 4))
    v = np.broadcast_to(np.eye(9), (2, 9, 9))
    kept = attend(q, k, v, lengths=[4, 9], dropout=0.25, dropout_key=key).numpy()
    assert not kept[0, :, 4:].any()
    assert set(np.unique(kept[0]).round(12)) <= {0.0, round(0.25 / 0.75, 12)}


ONES = np.ones((3, 2), np.float32)
HEADS = np.ones((4, 3, 2), np.float32)
REFUSED = {
    "rank": ([ONES[0], ONES, ONES], {}, ShapeError, "at least rank 2"),
    "features": ([ONES, ONES[:, :1], ONES], {}, ShapeError, "q has 2 features, but k has 1"),
    "rows": ([ONES, ONES, ONES[:2]], {}, ShapeError, "k has 3 rows, but v has 2"),
    "batches": ([HEADS[:2], HEADS, ONES], {}, ShapeError, r"broadcast: .*\[2,3,2\].*\[4,3,2\]"),
    "mask": ([ONES] * 3, {"mask": np.ones((2, 3), bool)}, ShapeError, "must broadcast|cannot"),
    "mask's rank": ([ONES] * 3, {"mask": np.ones((2, 3, 3), bool)}, ShapeError, "must broadcast"),
    "mask's dtype": ([ONES] * 3, {"mask": np.ones((3, 3), int)}, DTypeError, "boolean"),
    "complex": ([ONES * 1j] * 3, {}, DTypeError, "complex"),
    "text": ([np.array([["a"]])] * 3, {}, DTypeError, "string"),
    "scale": ([ONES] * 3, {"scale": math.nan}, ArgumentError, "attribute 'scale'"),
    "large scale": ([ONES] * 3, {"scale": 1e39}, ArgumentError, "finite float32"),
    "flag as scale": ([ONES] * 3, {"scale": True}, ArgumentError, "must be a number"),
    "is_causal": ([ONES] * 3, {"is_causal": 1}, ArgumentError, "is_causal must be True or False"),
    "grouped_query": ([ONES] * 3, {"grouped_query": None}, ArgumentError, "grouped_query must"),
    "no heads": ([ONES] * 3, {"grouped_query": True}, ShapeError, "axis -3 for the heads"),
    "heads": (
        [HEADS[:3], HEADS[:2], HEADS[:2]],
        {"grouped_query": True},
        ShapeError,
        r"divides that of q, got float32\[3,3,2\], float32\[2,3,2\] and",
    ),
    "heads of v": ([HEADS, HEADS[:2], HEADS], {"grouped_query": True}, ShapeError, "same number"),
    "mask of heads": (
        [HEADS, HEADS[:2], HEADS[:2]],
        {"grouped_query": True, "mask": np.ones((2, 3, 3), bool)},
        ShapeError,
        r"mask bool\[2,3,3\] does not broadcast to 4 heads",
    ),
    "dtype of lengths": ([ONES] * 3, {"lengths": 2.0}, DTypeError, "must be integers, got float"),
    "lengths": (
        [HEADS] * 3,
        {"lengths": [3, 3]},
        ShapeError,
        r"which \[4\], .*got int\d+\[2\]",
    ),
    "lengths of heads": (
        [HEADS, HEADS[:2], HEADS[:2]],
        {"lengths": [3] * 4, "grouped_query": True},
        ShapeError,
        r"\[\], the leading axes before the heads",
    ),
    "dropout": ([ONES] * 3, {"dropout": 1.0}, ArgumentError, r"in \[0, 1\), got 1.0"),
    "dropout's key": ([ONES] * 3, {"dropout": 0.5}, ArgumentError, "requires dropout_key"),
    "wrong key": ([ONES] * 3, {"dropout": 0.5, "dropout_key": 3}, ArgumentError, "key must come"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    inputs, options, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        attend(*inputs, **options)

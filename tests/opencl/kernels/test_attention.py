"""Attention on OpenCL: work-groups that are not full, and heads that share keys."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt

attend = tp.nn.scaled_dot_product_attention
rng = np.random.default_rng(20)


@pytest.fixture(autouse=True)
def _opencl():
    with tp.testing.isolated_engine("opencl"):
        yield


def assert_close(tensor, wide, dtype, tolerance):
    assert (tensor.shape, tensor.dtype.name) == (wide.shape, dtype)
    np.testing.assert_allclose(tensor.numpy(), wide, rtol=tolerance, atol=tolerance)


def by_definition(q, k, v, dy, *, causal=True):
    """Evaluate attention of each head and its gradients, all scores held, in float64."""
    scale = 1 / math.sqrt(q.shape[-1])
    seen = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if causal else True
    parts = np.where(seen, np.exp(q @ k.swapaxes(-1, -2) * scale), 0)
    p = parts / parts.sum(axis=-1, keepdims=True)
    y = p @ v
    slope = p * (dy @ v.swapaxes(-1, -2) - (dy * y).sum(axis=-1, keepdims=True)) * scale
    return y, slope @ k, slope.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dy


def test_in_large_groups_of_a_cpu(monkeypatch):
    """As many rows as one core's group has, and more, so that the second group is not full."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    inputs = [rng.standard_normal((2, 300, 4)) for _ in range(4)]
    q, k, v, dy = (tp.asarray(operand, dtype=tp.float32) for operand in inputs)
    monkeypatch.setattr("tensorplug_loops.schedule.attention._SHORT", range(0))
    y, vjp = tp.vjp(lambda *qkv: attend(*qkv, is_causal=True), q, k, v)
    assert tp.explain(specs.ATTENTION, [q, k, v, None, None, None]).how == "native"
    for got, expected in zip((y, *vjp(dy)), by_definition(*inputs), strict=True):
        assert_close(got, expected, "float32", 2e-5)


NARROW = {  # queries, keys and features: several queries in tiles, one in parts, odd widths
    "several": ((3, 37, 16), 37),
    "one": ((3, 1, 32), 600),
    "one, odd": ((3, 1, 5), 7),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_are_read_where_they_lie(name, dtype):
    """By a native kernel that computes in float32, gradients included."""
    shape, keys = NARROW[name]
    shapes = (shape, (*shape[:-2], keys, shape[-1]), (*shape[:-2], keys, shape[-1]), shape)
    q, k, v, dy = (tp.asarray(rng.standard_normal(each), dtype=dtype) for each in shapes)
    causal = shape[-2] == keys
    y, vjp = tp.vjp(lambda *qkv: attend(*qkv, is_causal=causal), q, k, v)
    rows = tp.zeros(shape[:-1])
    for spec, inputs in (
        (specs.ATTENTION, [q, k, v, None, None, None]),
        (specs.ATTENTION_GRAD, [dy, q, k, v, None, None, None, rows, rows]),
    ):
        assert tp.explain(spec, inputs).how == "native"
    wide = [tp.astype(x, "float64").numpy() for x in (q, k, v, dy)]
    expected = by_definition(*wide, causal=causal)
    bound = 2.0 ** -{"bfloat16": 8, "float16": 11}[dtype]
    for got, exact in zip((y, *vjp(dy)), expected, strict=True):
        assert (got.shape, got.dtype.name) == (exact.shape, dtype)
        # The gradients take y as it was rounded.
        assert np.max(np.abs(tp.astype(got, "float64").numpy() - exact)) < 3 * bound * np.max(
            np.abs(exact)
        )


@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.float16], ids=str)
def test_few_scores_are_computed_all_at_once(dtype):
    x = TensorType(dtype, (2, 300, 4))
    how = tp.explain(specs.ATTENTION, [x, x, x, None, None, None]).how
    assert how == ("decomposed" if dtype is dt.float32 else "widened")


DECLINED = {  # shapes of q and of k and v, and of the lengths
    "lengths of heads that share keys": ((2, 3, 4, 8), (2, 1, 5, 8), (2, 3)),
    "batches that share keys": ((2, 3, 4, 8), (1, 3, 5, 8), ()),
    "wide": ((4, 300), (5, 300), ()),
}


@pytest.mark.parametrize("name", DECLINED)
def test_declined_and_decomposed(name):
    q_shape, shape, of_lengths = DECLINED[name]
    q = tp.asarray(rng.standard_normal(q_shape), dtype=tp.float32)
    k, v = (tp.asarray(rng.standard_normal(shape), dtype=tp.float32) for _ in "kv")
    lengths = tp.asarray(np.full(of_lengths, 3))
    assert tp.explain(specs.ATTENTION, [q, k, v, None, None, lengths]).how == "decomposed"
    y = attend(q, k, v, lengths=lengths)
    expected = attend(q, k[..., :3, :], v[..., :3, :])
    assert_close(y, expected.numpy(), "float32", 1e-5)

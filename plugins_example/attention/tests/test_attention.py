"""Values, dtypes and gradients, natively and decomposed, against the formula in float64."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import specs
from tensorplug.testing import check_grads

attend = tp.nn.scaled_dot_product_attention
rng = np.random.default_rng(20)


def formula(q, k, v, mask=None, *, is_causal=False, scale=None):
    """Evaluate the definition query by query, and keep what it sees only."""
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    queries, keys = q.shape[-2], k.shape[-2]
    q, k, v = (np.broadcast_to(x, (*batch, *x.shape[-2:])).astype(np.float64) for x in (q, k, v))
    full = np.broadcast_to(True if mask is None else mask, (*batch, queries, keys))
    y = np.zeros((*batch, queries, v.shape[-1]))
    for *head, i in np.ndindex(*batch, queries):
        row = full[(*head, i)]
        seen = row.copy() if row.dtype == bool else ~np.isneginf(row)
        if is_causal:
            seen[i + 1 :] = False
        if not seen.any():
            continue
        of = tuple(head)
        scores = k[of][seen] @ q[of][i] * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
        if row.dtype != bool:
            scores = scores + row[seen]
        shares = np.exp(scores - scores.max())
        y[(*of, i)] = shares / shares.sum() @ v[of][seen]
    return y


class Call(NamedTuple):
    """Shapes of q, k, v and, if there is one, of the mask; how to call."""

    q: tuple[int, ...]
    k: tuple[int, ...]
    v: tuple[int, ...]
    mask: tuple[int, ...] | None = None
    additive: bool = False
    options: Any = MappingProxyType({})

    def inputs(self, dtype="float64"):
        qkv = [rng.standard_normal(shape).astype(dtype) for shape in (self.q, self.k, self.v)]
        if self.mask is None:
            return qkv
        if self.additive:
            return [*qkv, rng.standard_normal(self.mask).astype(dtype)]
        return [*qkv, rng.random(self.mask) < 0.6]


CAUSAL = {"is_causal": True}
CALLS = {
    "one head": Call((5, 4), (7, 4), (7, 3)),
    "heads": Call((2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8)),
    "batches broadcast": Call((2, 1, 4, 3), (3, 5, 3), (1, 1, 5, 2)),
    "causal": Call((2, 6, 3), (2, 6, 3), (2, 6, 3), options=CAUSAL),
    "causal, more keys": Call((3, 3), (6, 3), (6, 3), options=CAUSAL),
    "causal, more queries": Call((6, 3), (3, 3), (3, 3), options=CAUSAL),
    "scale": Call((4, 3), (5, 3), (5, 3), options={"scale": 0.25}),
    "mask": Call((2, 4, 3), (2, 5, 3), (2, 5, 3), (4, 5)),
    "mask of keys": Call((2, 3, 4, 3), (2, 3, 5, 3), (2, 3, 5, 3), (2, 1, 1, 5)),
    "mask and causal": Call((4, 3), (4, 3), (4, 3), (4,), options=CAUSAL),
    "additive": Call((2, 4, 3), (2, 5, 3), (2, 5, 3), (5,), additive=True),
    "additive of each": Call((2, 4, 3), (2, 5, 3), (2, 5, 3), (2, 4, 5), additive=True),
    "several blocks": Call((2, 180, 4), (2, 700, 4), (2, 700, 4), (700,), options=CAUSAL),
    "no keys": Call((3, 2), (0, 2), (0, 2)),
    "no queries": Call((0, 2), (3, 2), (3, 2)),
}
SMALL = [name for name, call in CALLS.items() if 0 < math.prod((*call.q, *call.k)) < 4000]


def assert_close(tensor, wide, dtype, tolerance):
    assert (tensor.shape, tensor.dtype.name) == (wide.shape, dtype)
    np.testing.assert_allclose(tensor.numpy(), wide, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_values(place, dtype, name):
    call = CALLS[name]
    inputs = call.inputs(dtype)
    try:
        tp.asarray(inputs[0])
    except tp.errors.DTypeError as lacking:
        pytest.skip(str(lacking))
    expected = formula(*inputs, **call.options)
    tolerance = 16 * float(np.finfo(dtype).eps)
    assert_close(attend(*inputs, **call.options), expected, dtype, tolerance)
    how = tp.explain(specs.ATTENTION, [*[inputs[0]] * 3, None, None, None]).how
    narrow = (place, dtype) == ("decomposed", "float16")  # which no kernel serves
    assert how == ("widened" if narrow else place)


@pytest.mark.usefixtures("place")
def test_query_without_keys():
    q, k, v = (rng.standard_normal((3, 2)) for _ in range(3))
    for mask in ([[True], [False], [True]], [[0.0], [-math.inf], [0.5]]):
        with_mask = tp.asarray(mask)
        y = attend(q, k, v, with_mask)
        assert y[1].tolist() == [0.0, 0.0]
        dq, dk, dv = tp.grad(
            lambda q, k, v, mask=with_mask: (attend(q, k, v, mask) ** 2).sum(),
            argnums=(0, 1, 2),
        )(*map(tp.asarray, (q, k, v)))
        assert dq[1].tolist() == [0.0, 0.0]
        for item in (dq, dk, dv):
            assert np.isfinite(item.numpy()).all()
            assert np.any(item.numpy() != 0)


@pytest.mark.usefixtures("place")
def test_scores_that_no_exponential_could_hold():
    q = np.array([[1000.0], [-1000.0]])
    y = attend(q, q, np.array([[1.0], [2.0]]), scale=1.0)
    assert_close(y, np.array([[1.0], [2.0]]), "float64", 0.0)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", SMALL)
def test_gradients_to_second_order(name):
    call = CALLS[name]
    inputs = call.inputs()
    moving = inputs if call.additive else inputs[:3]
    fixed = inputs[len(moving) :]
    order = 2 if name in ("one head", "mask and causal", "additive", "batches broadcast") else 1

    def f(*moving):
        return attend(*moving, *fixed, **call.options)

    check_grads(f, moving, order=order, directions=1, rtol=1e-5)


@pytest.mark.usefixtures("place")
def test_the_second_output_is_differentiable_too():
    q, k, v = (rng.standard_normal((3, 2)) for _ in range(3))

    def rows(q, k):
        return tp.run_kernel(specs.ATTENTION, {"q": q, "k": k, "v": v}, {})[1]

    expected = np.logaddexp.reduce(q @ k.T / math.sqrt(2), axis=-1)
    assert_close(rows(q, k), expected, "float64", 1e-14)
    check_grads(rows, [q, k], order=2)


def by_definition(q, k, v, dy):
    """Evaluate causal attention of each head and its gradients, all scores held, in float64."""
    scale = 1 / math.sqrt(q.shape[-1])
    seen = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    parts = np.where(seen, np.exp(q @ k.swapaxes(-1, -2) * scale), 0)
    p = parts / parts.sum(axis=-1, keepdims=True)
    y = p @ v
    slope = p * (dy @ v.swapaxes(-1, -2) - (dy * y).sum(axis=-1, keepdims=True)) * scale
    return y, slope @ k, slope.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dy


@pytest.mark.usefixtures("opencl")
def test_in_large_groups_of_a_cpu(monkeypatch):
    """As many rows as one core's group has, and more, so that the second group is not full."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    inputs = [rng.standard_normal((2, 300, 4)) for _ in range(4)]
    q, k, v, dy = (tp.asarray(operand, dtype=tp.float32) for operand in inputs)
    y, vjp = tp.vjp(lambda *qkv: attend(*qkv, is_causal=True), q, k, v)
    assert tp.explain(specs.ATTENTION, [q, k, v, None, None, None]).how == "native"
    for got, expected in zip((y, *vjp(dy)), by_definition(*inputs), strict=True):
        assert_close(got, expected, "float32", 2e-5)

"""Attention: which keys a query sees, caches, what is computed step by step."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorplug_onnx
from tensorplug_onnx import NodeError

from .one_operator import outputs_of

RNG = np.random.default_rng(3)
BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 4, 3, 5, 6


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def attended(q, k, v, bias, *, scale=None, softcap=0.0):
    """Return scores, capped scores, biased scores, weights and the result, query by query."""
    times = q.shape[1] // k.shape[1]
    k, v = (x.repeat(times, 1).astype(np.float64) for x in (k, v))
    raw = np.einsum("bhqd,bhkd->bhqk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    capped = softcap * np.tanh(raw / softcap) if softcap else raw
    biased = capped + bias
    weights = np.zeros_like(biased)
    for at in np.ndindex(biased.shape[:-1]):
        row = biased[at]
        if row.max() > -np.inf:
            powers = np.exp(row - row.max())
            weights[at] = powers / powers.sum()
    return raw, capped, biased, weights, weights @ v


def hidden(allowed):
    return np.where(allowed, 0.0, -np.inf)


Q, K, V = (
    normal(BATCH, HEADS, QUERIES, SIZE),
    normal(BATCH, 2, KEYS, SIZE),
    normal(BATCH, 2, KEYS, 3),
)
PAST = normal(BATCH, 2, 2, SIZE), normal(BATCH, 2, 2, 3)
LENGTHS = np.array([2, 4])
ROW, COLUMN = np.arange(QUERIES)[:, None], np.arange(KEYS)
OFFSETS = (LENGTHS - QUERIES).reshape(-1, 1, 1, 1)
BOOLEAN = RNG.random((BATCH, 1, QUERIES, KEYS)) < 0.5
BOOLEAN[0, 0, 1] = False  # a query that sees nothing
ADDED = normal(HEADS, QUERIES, KEYS)

# What comes after Q, K and V; the attributes; the bias of the scores.
MASKS = {
    "none": ([], {}, 0),
    "boolean": ([BOOLEAN], {}, hidden(BOOLEAN)),
    "added": ([ADDED], {}, ADDED),
    "shorter": ([BOOLEAN[..., :3]], {}, hidden(BOOLEAN & (COLUMN < 3))),
    "added, of one key": ([ADDED[..., :1]], {}, np.where(COLUMN < 1, ADDED, -np.inf)),
    "causal": ([], {"is_causal": 1}, hidden(COLUMN <= ROW)),
    "causal, boolean": ([BOOLEAN], {"is_causal": 1}, hidden((COLUMN <= ROW) & BOOLEAN)),
    "causal, added": ([ADDED], {"is_causal": 1}, ADDED + hidden(COLUMN <= ROW)),
    "lengths": (
        [None, None, None, LENGTHS],
        {},
        hidden(LENGTHS.reshape(-1, 1, 1, 1) > COLUMN),
    ),
    "lengths, causal": (
        [None, None, None, LENGTHS],
        {"is_causal": 1},
        hidden(COLUMN <= ROW + OFFSETS),
    ),
    "windows": (
        [],
        {"left_window_size": 1, "right_window_size": 2},
        hidden((COLUMN >= ROW - 1) & (COLUMN <= ROW + 2)),
    ),
    "causal window": (
        [],
        {"left_window_size": 1, "right_window_size": 2, "is_causal": 1},
        hidden((COLUMN >= ROW - 1) & (COLUMN <= ROW)),
    ),
    "windows, lengths": (
        [ADDED, None, None, LENGTHS],
        {"left_window_size": 0},
        ADDED + hidden((COLUMN >= ROW + OFFSETS) & (LENGTHS.reshape(-1, 1, 1, 1) > COLUMN)),
    ),
}


@pytest.mark.parametrize("how", ["fused", "capped", "double"])
@pytest.mark.parametrize("name", MASKS)
def test_which_keys_are_seen(name, how):
    more, attributes, bias = MASKS[name]
    steps = {"capped": {"softcap": 0.75}, "double": {"softmax_precision": 11}}.get(how, {})
    expected = attended(Q, K, V, bias, softcap=steps.get("softcap", 0))[-1]
    for way in ("called", "compiled"):
        given = {**attributes, **steps}
        (found,) = outputs_of(way, "Attention", [Q, K, V, *more], given, opset=25)
        assert found.dtype == np.float32
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("name", ["none", "boolean", "added", "causal"])
def test_scores_are_shown_after_each_step(name, mode):
    more, attributes, bias = MASKS[name]
    expected = attended(Q, K, V, bias, softcap=0.75)[mode]
    given = {**attributes, "softcap": 0.75, "qk_matmul_output_mode": mode}
    inputs = [Q, K, V, *(more or [None]), *PAST]
    if name == "none":  # with a cache, whose keys come first
        keys, values = (np.concat(pair, 2) for pair in zip(PAST, (K, V), strict=True))
        expected = attended(Q, keys, values, 0, softcap=0.75)[mode]
        outputs = outputs_of("compiled", "Attention", inputs, given, opset=24, outputs=4)
        np.testing.assert_array_equal(outputs[1], keys)
        np.testing.assert_array_equal(outputs[2], values)
    else:
        outputs = outputs_of("compiled", "Attention", inputs[:4], given, opset=24, outputs=4)
    assert outputs[3].dtype == np.float32
    np.testing.assert_allclose(outputs[3], expected, rtol=1e-4, atol=1e-6)


def test_causality_counts_from_the_cache():
    keys, values = (np.concat(pair, 2) for pair in zip(PAST, (K, V), strict=True))
    bias = hidden(np.arange(KEYS + 2) <= ROW + 2)
    expected = attended(Q, keys, values, bias, scale=0.5)[-1]
    attributes = {"is_causal": 1, "scale": 0.5}
    found = outputs_of(
        "called", "Attention", [Q, K, V, None, *PAST], attributes, opset=23, outputs=3
    )
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-6)


def test_heads_can_be_joined():
    joined = [x.transpose(0, 2, 1, 3).reshape(BATCH, x.shape[2], -1) for x in (Q, K, V)]
    attributes = {"q_num_heads": HEADS, "kv_num_heads": 2}
    (found,) = outputs_of("compiled", "Attention", joined, attributes, opset=23)
    expected = attended(Q, K, V, 0)[-1].transpose(0, 2, 1, 3).reshape(BATCH, QUERIES, -1)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


# Inputs, attributes, and what the message says.
REFUSED = {
    "heads": (
        [Q, K[:, :1].repeat(3, 1), V[:, :1].repeat(3, 1)],
        {"softcap": 1.0},
        "4 heads of Q for 3",
    ),
    "half a cache": ([Q, K, V, None, PAST[0]], {}, "must be given together"),
    "two caches": ([Q, K, V, None, *PAST, LENGTHS], {}, "nonpad_kv_seqlen excludes"),
    "ranks": ([Q, K, V[0]], {}, "must have rank 3 or 4, not 4, 4, 3"),
    "joined heads": ([Q[0], K[0], V[0]], {"q_num_heads": 4, "kv_num_heads": 4}, "into 4 heads"),
    "precision": ([Q, K, V], {"softmax_precision": 7}, "softmax_precision is 7"),
    "mode": ([Q, K, V], {"qk_matmul_output_mode": 4, "softcap": 1.0}, "output_mode is 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    inputs, attributes, message = REFUSED[name]
    with pytest.raises(NodeError, match=message):
        outputs_of("called", "Attention", inputs, attributes, opset=25)


def flexible(**graphs):
    """Return a model of FlexAttention with graphs of one node: op type and constant."""
    made = {}
    for name, (op_type, constant) in graphs.items():
        value = helper.make_tensor("c", TensorProto.FLOAT, [], [constant])
        info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 4) for n in "xy"]
        node = helper.make_node(op_type, ["x", "c"], ["y"])
        made[name] = helper.make_graph([node], name, [info[0]], [info[1]], [value])
    node = helper.make_node(
        "FlexAttention", ["q", "k", "v"], ["z"], domain="ai.onnx.preview", **made
    )
    given = {"q": Q, "k": K, "v": V}
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in given.items()
    ]
    graph = helper.make_graph(
        [node], "flexible", inputs, [helper.make_empty_tensor_value_info("z")]
    )
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid("ai.onnx.preview", 1)]
    return tensorplug_onnx.load(helper.make_model(graph, opset_imports=opsets))


def test_graphs_change_scores_and_weights():
    model = flexible(score_mod=("Mul", 3.0), prob_mod=("Sub", 0.25))
    scale = 3 * SIZE**-0.5
    weights = attended(Q, K, V, 0, scale=scale)[3] - 0.25
    expected = weights @ V.repeat(2, 1)
    for one in (model, model.compile()):
        np.testing.assert_allclose(one(Q, K, V)["z"].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_graphs_must_keep_the_dtype():
    with pytest.raises(NodeError, match="graph 'score_mod' made bool"):
        flexible(score_mod=("Less", 0.0))(Q, K, V)

"""Operators that move elements: all versions, on the host, on the device, compiled."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tensorplug as tp
from tensorplug_onnx import NodeError

from .one_operator import TEXT, WAYS, assert_same, model_of, outputs_of

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
WORDS = np.array([["a", "b", "c"], ["d", "e", "f"]], TEXT)
HALF = X.astype(ml_dtypes.bfloat16)
FOURS = np.arange(-6, 6).reshape(3, 4).astype(ml_dtypes.int4)
FAR = 2**62


def ints(*numbers):
    return np.array(numbers, np.int64)


# What is asked, by name: operator, inputs, attributes, opset, expected output.
CASES = {
    "Slice 1": ("Slice", [X], {"starts": [1, -3], "ends": [FAR, -1], "axes": [1, 2]}, 9,
                X[:, 1:, 1:3]),
    "Slice 1, first axes": ("Slice", [X], {"starts": [1, 0], "ends": [2, 2]}, 7, X[1:2, :2]),
    "Slice of text": ("Slice", [WORDS, ints(1), ints(-FAR), ints(1), ints(-1)], {}, 13,
                      WORDS[:, 1::-1]),
    # The start is clamped to the first element, the end to what is before it.
    "Slice backwards from before": ("Slice", [X, ints(-9), ints(-FAR), ints(2), ints(-1)], {}, 28,
                                    X[:, :, :1]),
    "Slice backwards from after": ("Slice", [X, ints(FAR), ints(0), ints(2), ints(-2)], {}, 28,
                                   X[:, :, 3:0:-2]),
    "Slice to what is before": ("Slice", [X, ints(0), ints(-9), ints(2)], {}, 28, X[..., :0]),
    "Slice of nothing": ("Slice", [X, ints(3), ints(1), ints(-1)], {}, 28, X[:, :, 3:1]),
    "Slice of a scalar": ("Slice", [X[0, 0, 0], ints(), ints()], {}, 28, X[0, 0, 0]),
    "Squeeze 1": ("Squeeze", [X[:, None]], {"axes": [1]}, 7, X),
    "Squeeze 11": ("Squeeze", [X[:, None]], {"axes": [-3]}, 11, X),
    "Squeeze 1 of all": ("Squeeze", [X[:1, None]], {}, 12, X[0]),
    "Unsqueeze 1": ("Unsqueeze", [X], {"axes": [4, 0]}, 7, X[None, ..., None]),
    "Unsqueeze 11": ("Unsqueeze", [X], {"axes": [-1]}, 11, X[..., None]),
    "Unsqueeze of text": ("Unsqueeze", [WORDS, ints(0)], {}, 13, WORDS[None]),
    "Reshape": ("Reshape", [X, ints(0, -1)], {}, 7, X.reshape(2, 12)),
    "Reshape of nothing": ("Reshape", [X[:, :0], ints(0, 4)], {"allowzero": 1}, 14,
                           X.reshape(-1)[:0].reshape(0, 4)),
    "Reshape of 4 bits": ("Reshape", [FOURS, ints(-1)], {}, 25, FOURS.reshape(-1)),
    "Flatten 9": ("Flatten", [X], {"axis": 0}, 9, X.reshape(1, 24)),
    "Flatten 11": ("Flatten", [X], {"axis": -1}, 11, X.reshape(6, 4)),
    "Flatten at the end": ("Flatten", [X], {"axis": 3}, 11, X.reshape(24, 1)),
    "Transpose of text": ("Transpose", [WORDS], {}, 13, WORDS.T),
    "Transpose of 4 bits": ("Transpose", [FOURS], {"perm": [1, 0]}, 25, FOURS.T),
    "Concat of text": ("Concat", [WORDS, WORDS], {"axis": -1}, 13, np.concat([WORDS, WORDS], 1)),
    "Expand": ("Expand", [X[:, :1], ints(3, 1)], {}, 8, np.tile(X[:, :1], (1, 3, 1))),
    "Expand to a lower rank": ("Expand", [X, ints(4)], {}, 13, X),
    "Tile 6": ("Tile", [X, ints(1, 2, 0)], {}, 7, np.zeros((2, 6, 0), np.float32)),
    "Pad 2": ("Pad", [X], {"pads": [0, 0, 1, 0, -1, 2], "value": 9.0}, 10,
              np.pad(X[:, :2], [(0, 0), (0, 0), (1, 2)], constant_values=9)),
    "Pad 2, reflected": ("Pad", [X], {"pads": [0, 0, 2, 0, 0, 3], "mode": "reflect"}, 7,
                         np.pad(X, [(0, 0), (0, 0), (2, 3)], mode="reflect")),
    "Pad, less before": ("Pad", [X, ints(-1, 0, 1, 0, 0, -2), None], {"mode": "edge"}, 13,
                         np.pad(X[1:, :, :2], [(0, 0), (0, 0), (1, 0)], mode="edge")),
    "Pad of integers": ("Pad", [ints(1, 2), ints(1, 0), ints(FAR + 1)[0]], {}, 18,
                        ints(FAR + 1, 1, 2)),
    "Pad of half precision": ("Pad", [HALF[0, 0], ints(0, 1), HALF[0, 0, 3]], {}, 25,
                              np.append(HALF[0, 0], HALF[0, 0, 3])),
    "Pad of some axes": ("Pad", [X, ints(1, 2), None, ints(-1)], {"mode": "wrap"}, 19,
                         np.pad(X, [(0, 0), (0, 0), (1, 2)], mode="wrap")),
    "Trilu below": ("Trilu", [X, ints(-1)[0]], {"upper": 0}, 14, np.tril(X, -1)),
    "DepthToSpace 1": ("DepthToSpace", [X.reshape(1, 4, 2, 3)], {"blocksize": 2}, 7,
                       np.array([[[[0, 6, 1, 7, 2, 8], [12, 18, 13, 19, 14, 20],
                                   [3, 9, 4, 10, 5, 11], [15, 21, 16, 22, 17, 23]]]], np.float32)),
    "Shape from an end": ("Shape", [X], {"start": -2, "end": 9}, 15, ints(3, 4)),
    "Shape 1": ("Shape", [WORDS], {}, 7, ints(2, 3)),
    "Size of text": ("Size", [WORDS], {}, 13, np.array(6, np.int64)),
    "EyeLike": ("EyeLike", [X[0]], {"k": -1, "dtype": 10}, 9, np.eye(3, 4, -1, np.float16)),
    "Identity of text": ("Identity", [WORDS], {}, 13, WORDS),
    "ReverseSequence": ("ReverseSequence", [X, ints(0, 3)], {"batch_axis": 0, "time_axis": 1}, 10,
                        np.stack([X[0], X[1, ::-1]])),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_elements_move(name, way):
    op_type, inputs, attributes, opset, expected = CASES[name]
    (found,) = outputs_of(way, op_type, inputs, attributes, opset=opset)
    assert_same(found, expected)


SPLITS = {
    "Split 2": ([X], {"axis": 1, "split": [1, 2]}, 7, [1, 2]),
    "Split 2, equal": ([X], {"axis": 1}, 11, [1, 1, 1]),
    "Split 13": ([X, ints(0, 3)], {"axis": -2}, 13, [0, 3]),
    "Split 13, equal": ([X], {"axis": 1}, 13, [1, 1, 1]),
    "Split 18, the last one is smaller": ([X], {"axis": 1, "num_outputs": 2}, 18, [2, 1]),
    "Split 18, the last one is empty": ([X], {"axis": 1, "num_outputs": 4}, 18, [1, 1, 1, 0]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SPLITS)
def test_parts(name, way):
    inputs, attributes, opset, sizes = SPLITS[name]
    found = outputs_of(way, "Split", inputs, attributes, opset=opset, outputs=len(sizes))
    for part, end, size in zip(found, np.cumsum(sizes), sizes, strict=True):
        assert_same(part, X[:, end - size : end])


CONSTANTS = {
    "value_int": (-3, np.array(-3, np.int64)),
    "value_ints": ([1, 2], ints(1, 2)),
    "value_float": (0.1, np.array(0.1, np.float32)),
    "value_floats": ([0.1, 2], np.array([0.1, 2], np.float32)),
    "value_string": ("é", np.array("é", TEXT)),
    "value_strings": (["a", ""], np.array(["a", ""], TEXT)),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants(name):
    value, expected = CONSTANTS[name]
    (found,) = outputs_of("called", "Constant", [], {name: value}, opset=13)
    assert_same(found, expected)


RANGES = {
    "float32": (np.float32, (1, 2, 0.1),
                np.float32(1) + np.arange(10).astype(np.float32) * np.float32(0.1)),
    "float64": (np.float64, (0, 1, 0.3), np.array([0, 0.3, 0.6, 3 * 0.3])),
    "backwards": (np.int32, (5, -2, -3), np.array([5, 2, -1], np.int32)),
    "empty": (np.int64, (5, 5, 1), ints()),
    "wrong direction": (np.int16, (5, 9, -1), np.array([], np.int16)),
    # Each is rounded once, not the product and then the sum.
    "float16": (np.float16, (16, 30, 0.3),
                (16 + np.arange(47) * np.float64(np.float16(0.3))).astype(np.float16)),
    # bfloat16 has no 257: adding 1 to 256 again and again would stay there.
    "bfloat16": (ml_dtypes.bfloat16, (250, 264, 1),
                 np.arange(250, 264).astype(ml_dtypes.bfloat16)),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_ranges(name):
    dtype, numbers, expected = RANGES[name]
    inputs = [np.array(number, dtype) for number in numbers]
    opset = 27 if name in ("float16", "bfloat16") else 11
    (found,) = outputs_of("called", "Range", inputs, opset=opset)
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("mode", "first", "rows"),
    [("linear", ints(3, 0), [[3, 4], [0, 1]]), ("circular", ints(4, 7), [[4, 0], [2, 3]])],
)
def test_caches_are_written(mode, first, rows):
    cache = np.arange(20, dtype=np.float32).reshape(2, 5, 2)
    update = -1 - np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    expected = cache.copy()
    for batch, places in enumerate(rows):
        expected[batch, places] = update[batch]
    for way in WAYS:
        (found,) = outputs_of(way, "TensorScatter", [cache, update, first], {"mode": mode})
        assert_same(found, expected)


@pytest.mark.parametrize("upper", [0, 1])
def test_a_compiled_triangle_takes_its_diagonal(upper):
    model = model_of("Trilu", [X, ints(0)[0]], {"upper": upper}).compile()
    for k in (-2, 0, 3):
        expected = np.triu(X, k) if upper else np.tril(X, k)
        assert_same(model(X, np.array(k))["y0"].numpy(), expected)


@pytest.mark.parametrize("name", ["Trilu below", "Pad of half precision", "Reshape of 4 bits"])
def test_dtypes_that_a_device_lacks_move_on_the_host(name):
    op_type, inputs, attributes, opset, expected = CASES[name]
    if expected.dtype == np.float32:
        inputs, expected = [inputs[0].astype(np.float16), *inputs[1:]], expected.astype(np.float16)
    with tp.use_backend("minimal"):
        (found,) = outputs_of("called", op_type, inputs, attributes, opset=opset)
    assert_same(found, expected)


# What is wrong, and words of the message.
WRONG = {
    "step 0": ("Slice", [X, ints(0), ints(1), ints(0), ints(0)], {}, 28, "step is 0"),
    "an axis twice": ("Slice", [X, ints(0, 0), ints(1, 1), ints(0, -3)], {}, 28, "one twice"),
    "an axis too far": ("Slice", [X, ints(0), ints(1), ints(3)], {}, 28, "axis 3 is out of range"),
    "lengths": ("Slice", [X, ints(0), ints(1, 2)], {}, 28, "one length"),
    "a size of -2": ("Reshape", [X, ints(-2, 12)], {}, 7, "negative size"),
    "elements": ("Reshape", [X, ints(5, 5)], {}, 7, "reshape"),
    "a large axis": ("Squeeze", [X, ints(1)], {}, 13, "size 3, must be 1"),
    "a place twice": ("Unsqueeze", [X, ints(0, -5)], {}, 13, "one twice"),
    "sizes": ("Split", [X, ints(1, 1)], {"axis": 1}, 13, "no split"),
    "no equal parts": ("Split", [X], {"axis": 1}, 13, "no 2 equal parts"),
    "a size to copy": ("Reshape", [X, ints(2, 3, 4, 0)], {}, 7, "axis 3 is out of range"),
    "too much": ("ConstantOfShape", [ints(2**45)], {}, 9, "allocate"),
    "too far": ("Range", [ints(0)[0], ints(2**45)[0], ints(1)[0]], {}, 11, "allocate"),
    "repeats": ("Tile", [X, ints(2)], {}, 7, "repeats"),
    "pads": ("Pad", [X, ints(1, 1)], {}, 13, "pads"),
    "no broadcasting": ("Expand", [X, ints(3, 3)], {}, 13, "shape"),
    "delta 0": ("Range", [ints(0)[0], ints(1)[0], ints(0)[0]], {}, 11, "delta is 0"),
    "no depth": ("DepthToSpace", [X[None]], {"blocksize": 2}, 13, "reshape"),
}


@pytest.mark.parametrize("way", ["called", "constant"])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_inputs_are_named(name, way):
    op_type, inputs, attributes, opset, words = WRONG[name]
    outputs = 2 if op_type == "Split" else 1
    with pytest.raises(NodeError, match=rf"(?i)node \({op_type}, .*{words}"):
        outputs_of(way, op_type, inputs, attributes, opset=opset, outputs=outputs)


MOVES = {
    "Pad": ([X, ints(0, -1, 2, 0, 0, 1)], {"mode": "reflect"}),
    "Slice": ([X, ints(-1), ints(-FAR), ints(2), ints(-2)], {}),
    "Transpose": ([X], {"perm": [2, 0, 1]}),
    "Tile": ([X, ints(1, 2, 1)], {}),
    "Expand": ([X, ints(3, 1, 1, 1)], {}),
    "ReverseSequence": ([X, ints(2, 1, 2)], {}),
}


@pytest.mark.parametrize("op_type", MOVES)
def test_gradients_count_where_elements_go(op_type):
    inputs, attributes = MOVES[op_type]
    model = model_of(op_type, inputs, attributes, constant=tuple(range(1, len(inputs))))
    parts = dict(model.parameters)

    def total(x):
        return tp.sum(model.apply(parts, {"x0": x})["y0"])

    (moved,) = outputs_of("called", op_type, inputs, attributes)
    counts = [(moved == value).sum() for value in X.flat]
    assert_same(tp.grad(total)(tp.asarray(X)).numpy(), np.float32(counts).reshape(X.shape))

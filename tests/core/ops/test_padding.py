"""Padding in each of NumPy's modes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

MODES = ["constant", "edge", "reflect", "symmetric", "wrap"]
ARRAYS = {
    "float32": np.arange(6, dtype="f4").reshape(2, 3),
    "float64": np.arange(12.0).reshape(2, 3, 2),
    "int8": np.arange(4, dtype="i1"),
    "bool": np.array([True, False, False]),
    "complex64": (np.arange(3) * 1j).astype("c8"),
    "one": np.array([7.0]),
    "rank 0": np.array(7.0),
}
PADDINGS = [(0, 0), (1, 0), (0, 2), (2, 1), (7, 9)]


@pytest.mark.parametrize("pair", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ARRAYS)
def test_each_mode_up_to_many_copies(kind, mode, pair):
    x = ARRAYS[kind]
    pairs = [pair if axis % 2 == 0 else pair[::-1] for axis in range(x.ndim)]
    wanted = np.pad(x, pairs, mode=mode) if x.ndim else x
    same(tp.pad(x, pairs, mode=mode), wanted)
    compiled = tp.compile(lambda x: tp.pad(x, pairs, mode=mode))
    same(compiled(tp.asarray(x)), wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("short", [2, (1, 3), [0, 2], (np.int32(1), 1)], ids=repr)
def test_one_number_or_pair_for_all_axes(short, mode):
    x = ARRAYS["float32"]
    same(tp.pad(x, short, mode=mode), np.pad(x, short, mode=mode))
    same(tp.asarray(x).pad(short, mode=mode), np.pad(x, short, mode=mode))


def test_constants():
    x = ARRAYS["int8"]
    same(tp.pad(x, 1, 5), np.pad(x, 1, constant_values=5))
    assert tp.pad(["a"], 1).tolist() == ["", "a", ""]
    words = tp.pad(["a", "b"], 3, mode="wrap")
    assert words.tolist() == ["b", "a", "b", "a", "b", "a", "b", "a"]
    same(tp.pad(np.zeros((0, 2)), [(1, 1), (0, 0)]), np.zeros((2, 2)))
    same(tp.pad(np.zeros((0, 2)), [(0, 0), (1, 1)], mode="edge"), np.zeros((0, 4)))


X = np.ones((2, 3), np.float32)
BAD = [  # arguments, options, error, what the message says
    ((X, 1), {"mode": "mean"}, ArgumentError, "pad: mode must be one of 'constant', 'edge', 're"),
    ((X, 1), {"mode": ["edge"]}, ArgumentError, "pad: mode must be one of"),
    (
        (X, 1, 2.0),
        {"mode": "edge"},
        ArgumentError,
        "constant_value is for mode 'constant', got 2.0",
    ),
    ((X, -1), {}, ShapeError, "must not contain negative sizes"),
    ((X, (1, -1)), {"mode": "wrap"}, ShapeError, "pad: paddings"),
    ((X, 1.5), {}, ArgumentError, "pad: paddings must be an integer, got 1.5"),
    ((X, "edge"), {}, ArgumentError, "pad: paddings must be an integer, got 'edge'"),
    ((X, None), {}, ArgumentError, "pad: paddings must be an integer, got None"),
    ((X, [(1, 1)]), {"mode": "edge"}, ShapeError, "must be 2 (before, after) pairs"),
    ((X, (1, 2, 3)), {}, ShapeError, "must be 2 (before, after) pairs"),
    (
        (np.zeros((0, 2)), 1),
        {"mode": "edge"},
        ShapeError,
        "axis 0 of float64[0,2] has no elements",
    ),
    ((np.zeros((0, 2)), 1), {"mode": "reflect"}, ShapeError, "has no elements"),
    ((X, 1, "a"), {}, DTypeError, "'a' cannot become float32"),
    ((X, 1, "reflect"), {}, ArgumentError, "pad: pass the mode by name, mode='reflect'"),
    ((X, 1, "constant"), {}, ArgumentError, "pad: pass the mode by name, mode='constant'"),
]


@pytest.mark.parametrize(("arguments", "options", "error", "message"), BAD)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error) as caught:
        tp.pad(*arguments, **options)
    assert message in str(caught.value)

"""Each public function takes its axis by position, as NumPy and PyTorch do, and by name."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from tests.core.support.public_functions import with_parameter

import tensorplug as tp
from tensorplug import linalg, nn, random

NAMES = ("axis", "axes")
FUNCTIONS = with_parameter(*NAMES)
# Where another option, which has no place by position, stands before the axis.
OTHERS_FIRST = {
    **dict.fromkeys(
        [f"fft.{kind}" for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")],
        "n: the standard lets neither n nor axis be passed by position",
    ),
    **dict.fromkeys(
        [f"fft.{kind}n" for kind in ("fft", "ifft", "rfft", "irfft")],
        "s: likewise",
    ),
    "random.choice": "replace and p",
    "image.resize": "scale, which stands instead of the size",
}


def test_the_functions_include_the_usual_ones():
    usual = ("sum", "argmax", "concat", "nn.softmax", "linalg.vector_norm", "quantile", "diff")
    assert {*usual, *OTHERS_FIRST} <= FUNCTIONS.keys()


def parameters(name):
    return list(inspect.signature(FUNCTIONS[name]).parameters.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_axis_has_a_place(name):
    named = [one.name for one in parameters(name) if one.kind is one.KEYWORD_ONLY]
    by_name_only = [one for one in named if one in NAMES]
    if name in OTHERS_FIRST:
        assert by_name_only, "the exception is not needed"
        assert named[0] not in NAMES, "no other option is first"
    else:
        assert not by_name_only


X = np.float32([[1.0, 2.0, 4.0], [8.0, 16.0, 5.0]])
BOTH = [X, X + 1]
REQUIRED = {  # the required arguments before the axis, where that is not only X
    **dict.fromkeys(("concat", "stack"), (BOTH,)),
    **dict.fromkeys(("all", "any"), (X > 2,)),
    **dict.fromkeys(("quantile", "nanquantile"), (X, 0.5)),
    **dict.fromkeys(("percentile", "nanpercentile"), (X, 50)),
    **dict.fromkeys(("partition", "argpartition", "roll", "repeat"), (X, 1)),
    **dict.fromkeys(("quantize", "fake_quantize"), (X, 0.5)),
    "dequantize": (np.int8([[1, 2], [3, 4]]), 0.5),
    **dict.fromkeys(("gather", "take"), (X, np.int32([0, 1]))),
    "take_along_axis": (X, np.int32([[0, 1, 0], [1, 0, 1]])),
    "scatter_along_axis": (X, np.int32([[0, 1, 0], [1, 0, 1]]), X),
    "boolean_mask": (X, np.asarray([True, False])),
    "split": (X, 1),
    "linalg.cross": (np.ones((3, 3), np.float32), np.eye(3)),
    "vecdot": (X, X),
    "tensordot": (X[:, :2], X[:, :2]),
    **dict.fromkeys(("losses.cosine_distance", "losses.kl_divergence"), (X, X)),
    "random.categorical": (np.uint32([1, 2]), X),
    "random.permutation": (np.uint32([1, 2]), X),
}
SPECIAL = {
    **dict.fromkeys((f"fft.{kind}2" for kind in ("fft", "ifft", "rfft", "irfft")), (1, 0)),
    "expand_dims": 2,
    "permute_dims": (1, 0),
    "squeeze": (),
}
BY_BOTH = [
    name
    for name in FUNCTIONS
    if name not in OTHERS_FIRST
    and any(one.name in NAMES and one.kind is not one.POSITIONAL_ONLY for one in parameters(name))
]


@pytest.mark.parametrize("name", BY_BOTH)
def test_by_position_is_the_same_as_by_name(name):
    function = FUNCTIONS[name]
    before = [one for one in parameters(name) if one.kind is not one.KEYWORD_ONLY]
    at = next(at for at, one in enumerate(before) if one.name in NAMES)
    required = REQUIRED.get(name, (X,))
    defaults = [one.default for one in before[len(required) : at]]
    axis = SPECIAL.get(name, 0)
    with tp.use_backend("cpu"):
        if name.startswith("random."):
            required = (random.key(0), *required[1:])
        by_name = function(*required, **{before[at].name: axis})
        by_position = function(*required, *defaults, axis)
    assert seen(by_position) == seen(by_name)


def seen(result):
    if isinstance(result, tuple | list):
        return [seen(part) for part in result]
    return str(result.type), result.numpy().tobytes()


FORMS = {  # as in NumPy and PyTorch; computed by NumPy
    "sum": (lambda: tp.sum(X, 0), X.sum(0)),
    "sum along two": (lambda: tp.sum(X, (0, 1), keepdims=True), X.sum((0, 1), keepdims=True)),
    "mean": (lambda: tp.mean(X, -1), X.mean(-1)),
    "std": (lambda: tp.std(X, 1, correction=1), X.std(1, ddof=1)),
    "argmax": (lambda: tp.argmax(X, 1), X.argmax(1).astype(np.int32)),
    "cumulative_sum": (lambda: tp.cumulative_sum(X, 1), X.cumsum(1)),
    "sort": (lambda: tp.sort(X, 0, descending=True), -np.sort(-X, 0)),
    "concat": (lambda: tp.concat(BOTH, 1), np.concatenate(BOTH, 1)),
    "stack": (lambda: tp.stack(BOTH, 1), np.stack(BOTH, 1)),
    "take": (lambda: tp.take(X, [2, 0], 1), X[:, [2, 0]]),
    "flip": (lambda: tp.flip(X, 1), X[:, ::-1]),
    "roll": (lambda: tp.roll(X, 1, 1), np.roll(X, 1, 1)),
    "repeat": (lambda: tp.repeat(X, 2, 0), np.repeat(X, 2, 0)),
    "diff": (lambda: tp.diff(X, 1, 0), np.diff(X, 1, 0)),
    "median": (lambda: tp.median(X, 1), np.median(X, 1)),
    "quantile": (lambda: tp.quantile(X, 0.25, 1), np.quantile(X, np.float32(0.25), 1)),
    "nansum": (lambda: tp.nansum(X, 0), X.sum(0)),
    "softmax": (lambda: nn.softmax(X, 1), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    "vector_norm": (lambda: linalg.vector_norm(X, 1), np.sqrt((X * X).sum(1))),
    "tensordot": (lambda: tp.tensordot(X, X, ([1], [1])), X @ X.T),
    "methods": (lambda: tp.asarray(X).sum(0) + tp.asarray(X).max(0), X.sum(0) + X.max(0)),
}


@pytest.mark.parametrize("form", FORMS)
def test_numpys_forms(form):
    call, expected = FORMS[form]
    with tp.use_backend("cpu"):
        result = call()
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_options_after_the_axis_need_names():
    for call in (lambda: tp.sum(X, 0, True), lambda: tp.asarray(X).flip(0, 1)):  # refused
        with pytest.raises(TypeError, match=r"takes from 1 to 2 positional arguments but 3 were"):
            call()

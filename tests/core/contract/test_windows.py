"""Sliding windows: positions counted one by one, and TensorFlow's rule for "same"."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from tensorplug.contract.spec import Attribute
from tensorplug.contract.windows import (
    Window,
    arranged,
    axes_attribute,
    channel_axis,
    pad_attribute,
    pair_attribute,
    rounding_attribute,
    spatial_axes,
    windows,
)
from tensorplug.errors import ArgumentError, ShapeError


def positions(padded: int, taps: int, stride: int, dilation: int) -> int:
    """Count the starts at which every tap lies inside."""
    return sum(
        start + (taps - 1) * dilation < padded for start in range(0, max(padded, 0), stride)
    )


GRID = list(itertools.product((1, 4, 7), (1, 2, 3), (1, 2, 3), (1, 2), ((0, 0), (1, 2))))


@pytest.mark.parametrize(("size", "taps", "stride", "dilation", "pad"), GRID)
def test_explicit_padding(size, taps, stride, dilation, pad):
    expected = positions(size + sum(pad), taps, stride, dilation)
    if expected == 0:
        with pytest.raises(ShapeError, match=f"{taps} taps with dilation {dilation} does not fit"):
            Window.of(size, taps, stride, dilation, pad, None)
        return
    window = Window.of(size, taps, stride, dilation, pad, None)
    assert (window.out, window.before, window.after) == (expected, *pad)


@pytest.mark.parametrize(("size", "taps", "stride", "dilation", "_pad"), GRID)
def test_same_has_a_position_for_every_stride(size, taps, stride, dilation, _pad):
    window = Window.of(size, taps, stride, dilation, "same", None)
    assert window.out == math.ceil(size / stride)
    total = window.before + window.after
    assert window.after - window.before in (0, 1)
    assert positions(size + total, taps, stride, dilation) == window.out
    if total:  # no smaller padding would do
        assert positions(size + total - 1, taps, stride, dilation) < window.out


@pytest.mark.parametrize(("size", "taps", "stride", "dilation", "_pad"), GRID)
def test_valid_is_no_padding(size, taps, stride, dilation, _pad):
    if positions(size, taps, stride, dilation):
        valid = Window.of(size, taps, stride, dilation, "valid", None)
        assert valid == Window.of(size, taps, stride, dilation, (0, 0), None)


@pytest.mark.parametrize(("rounding", "out"), [(None, 2), ("floor", 2), ("round", 3), ("ceil", 3)])
def test_half_a_step_of_a_window_is_rounded(rounding, out):
    # (6 - 3) / 2 = 1.5 steps fit; half a step is rounded up.
    window = Window.of(6, 3, 2, 1, (0, 0), rounding)
    assert window.out == out
    assert window.before + window.size + window.after >= (out - 1) * 2 + 3


def both(taps=(1, 1), pad="valid", spatial=(1, 2)):
    return windows((4, 5), taps, (1, 1), (1, 1), pad, None, spatial)


def test_axes_take_their_own_pair_of_an_explicit_padding():
    pads = ((0, 0), (1, 0), (0, 2), (0, 0))
    assert [(w.before, w.after) for w in both(pad=pads)] == [(1, 0), (0, 2)]
    pads = ((0, 0), (0, 0), (1, 0), (0, 2))
    assert [(w.before, w.after) for w in both(pad=pads, spatial=(2, 3))] == [(1, 0), (0, 2)]
    assert [(w.before, w.after) for w in both(pad=1)] == [(1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"taps": (0, 1)}, "a window must have at least one tap along each axis, got [0, 1]"),
        ({"pad": ((1, 0), (0, 0), (0, 0), (0, 0))}, "batch and channels cannot be padded"),
        ({"pad": ((0, 0), (0, 0), (0, 0), (0, 1))}, "batch and channels cannot be padded"),
    ],
)
def test_windows_refuse(options, message):
    with pytest.raises(ShapeError, match=re.escape(message)):
        both(**options)


def pad_kind(axes: int = 2) -> Attribute:
    """Return the padding attribute of windows of 2 taps over an x of 4 by ... by 4 elements."""
    kind = pad_attribute(axes, lambda _known: ((1, *(4,) * axes, 1), (2,) * axes))
    steps = {"strides": (1,) * axes}
    return Attribute(lambda value, known: kind.canonical(value, {**steps, **known}))


ATTRIBUTES = [  # kind, given, canonical or a part of the error
    (pair_attribute(), 2, (2, 2)),
    (pair_attribute(), [2, 3], (2, 3)),
    (pair_attribute(), 0, "must be a positive int or two of them, got 0"),
    (pair_attribute(), [1, 2, 3], "must be a positive int or two of them"),
    (pair_attribute(), [], "must be a positive int or two of them"),
    (pair_attribute(), 1.5, "must be an integer, got 1.5"),
    (axes_attribute(3), 2, (2, 2, 2)),
    (axes_attribute(3), [2, 3, 4], (2, 3, 4)),
    (axes_attribute(3), [2, 3], "must be a positive int or three of them, got [2, 3]"),
    (pad_kind(3), [[0, 0]] * 5, ((0, 0),) * 5),
    (pad_kind(3), [[0, 0]] * 4, "must be five (before, after) pairs"),
    (pad_kind(), "same", ((0, 0), (0, 1), (0, 1), (0, 0))),
    (pad_kind(), "valid", ((0, 0),) * 4),
    (pad_kind(), 2, ((0, 0), (2, 2), (2, 2), (0, 0))),
    (pad_kind(), [[0, 0], [1, 2], [3, 4], [0, 0]], ((0, 0), (1, 2), (3, 4), (0, 0))),
    (pad_kind(), "full", "must be 'same', 'valid', an int or pairs, got 'full'"),
    (pad_kind(), -1, "must not be negative, got -1"),
    (pad_kind(), [[0, 0]], "must be four (before, after) pairs"),
    (pad_kind(), [1, 2, 3, 4], "must be four (before, after) pairs"),
    (pad_kind(), None, "must be an integer, got None"),
    (rounding_attribute(), None, "floor"),
    (rounding_attribute(), "ceil", "ceil"),
    (rounding_attribute(), "up", "must be 'floor', 'round', 'ceil' or None, got 'up'"),
    (rounding_attribute(), [], "must be 'floor', 'round', 'ceil' or None, got []"),
]


@pytest.mark.parametrize(("kind", "given", "result"), ATTRIBUTES)
def test_attributes_of_windows_have_a_canonical_form(kind, given, result):
    if isinstance(result, str) and " " in result:
        with pytest.raises(ArgumentError, match=re.escape(result)):
            kind.canonical(given, {})
    else:
        actual = kind.canonical(given, {})
        assert (actual, type(actual)) == (result, type(result))


def test_rounding_needs_a_numeric_padding():
    known = {"strides": (3, 3), "dim_rounding_mode": "ceil"}
    with pytest.raises(ArgumentError, match="must be a number or pairs where dim_rounding_mode"):
        pad_kind().canonical("same", known)
    assert pad_kind().canonical(0, known) == ((0, 0), (0, 1), (0, 1), (0, 0))


def test_shapes_that_do_not_fit_are_left_to_the_rule():
    kind = pad_attribute(2, lambda known: (known["x"], known["taps"]))
    known = {"strides": (1, 1), "dim_rounding_mode": "floor"}
    for x, taps in (((4, 4), (2, 2)), ((1, 4, 4, 1), (2,)), ((1, 1, 1, 1), (5, 5))):
        assert kind.canonical("valid", {**known, "x": x, "taps": taps}) == ((0, 0),) * 4


def test_three_axes():
    pads = ((0, 0), (1, 0), (0, 2), (3, 4), (0, 0))
    result = windows((4, 5, 6), (1, 2, 3), (1, 2, 3), (1, 1, 2), pads, None, (1, 2, 3))
    expected = [
        Window.of(4, 1, 1, 1, (1, 0), None),
        Window.of(5, 2, 2, 1, (0, 2), None),
        Window.of(6, 3, 3, 2, (3, 4), None),
    ]
    assert result == tuple(expected)
    with pytest.raises(
        ShapeError, match=re.escape("pad must have 5 (before, after) pairs, got 4")
    ):
        windows((4, 5, 6), (1, 1, 1), (1, 1, 1), (1, 1, 1), pads[:4], None, (1, 2, 3))


def test_data_formats():
    assert (spatial_axes("NHWC"), spatial_axes("NCHW")) == ((1, 2), (2, 3))
    assert (spatial_axes("NDHWC"), spatial_axes("NCDHW")) == ((1, 2, 3), (2, 3, 4))
    assert [channel_axis(name) for name in ("NHWC", "NCHW", "NDHWC", "NCDHW")] == [3, 1, 4, 1]
    assert arranged(1, (2, 3, 5), 4, "NDHWC") == (1, 2, 3, 5, 4)
    assert arranged(1, (2, 3, 5), 4, "NCDHW") == (1, 4, 2, 3, 5)
    assert arranged(1, (2, 3), 4, "NHWC") == (1, 2, 3, 4)
    assert arranged(1, (2, 3), 4, "NCHW") == (1, 4, 2, 3)

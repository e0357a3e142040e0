"""Calls beyond the limits of rank, size, depth and text: data of test_bad_input."""

from __future__ import annotations

import numpy as np

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    BackendMemoryError,
    DTypeError,
    ShapeError,
)

X = np.ones((3, 4), np.float32)
SHORT = np.ones((1,) * 40, np.float32)
PLACES = np.zeros((1,) * 40, np.int32)
FULL = np.ones((1,) * 64, np.float32)
LONG = 10**5000  # Python does not write it: it has more digits than allowed
LONE = "\ud800"  # a surrogate, which UTF-8 cannot encode


def cyclic(width=1):
    """Return a list that contains itself; if more than once, its elements grow exponentially."""
    result = []
    result += [result] * width
    return result


def deep(levels=100_000):
    result = []
    for _ in range(levels):
        result = [result]
    return result


class Unwritable:
    def __repr__(self):
        raise RuntimeError("no text")


CASES = [  # id, call, error, what the message says
    ("rank of take", lambda: tp.take(SHORT, PLACES, 0), ShapeError, "result would have 79 axes"),
    ("rank of gather", lambda: tp.gather(SHORT, PLACES), ShapeError, "at most 64"),
    ("rank of zeros", lambda: tp.zeros((1,) * 65), ShapeError, "Fill(): the result would have 65"),
    ("rank of tile", lambda: tp.tile(X, (1,) * 65), ShapeError, "the result would have 65 axes"),
    ("rank of expand_dims", lambda: tp.expand_dims(FULL, 0), ShapeError, "would have 65 axes"),
    ("rank of stack", lambda: tp.stack([FULL, FULL]), ShapeError, "would have 65 axes"),
    (
        "size of repeat",
        lambda: tp.repeat(X, 2**62),
        ShapeError,
        "the result would have shape [55340232221128654848] and 221360928884514619392 bytes, but",
    ),
    ("size of zeros", lambda: tp.zeros((2**31, 2**31)), ShapeError, "18446744073709551616 bytes"),
    ("size of text", lambda: tp.full((2**60,), "a"), ShapeError, "18446744073709551616 bytes"),
    ("size beside 0", lambda: tp.ones((0, 2**62)), ShapeError, "18446744073709551616 bytes"),
    (
        "size of random",
        lambda: tp.random.uniform(tp.random.key(0), (2**62,)),
        ShapeError,
        "the result would have shape [4611686018427387904]",
    ),
    ("long axis", lambda: tp.sum(X, axis=LONG), ArgumentError, "got an integer of 16610 bits"),
    ("large axis", lambda: tp.sum(X, axis=2**64), ArgumentError, "axis must fit into 64 bits"),
    (
        "long number",
        lambda: tp.add(X, LONG),
        ArgumentError,
        "an integer of 16610 bits does not fi",
    ),
    ("long value", lambda: tp.full(2, LONG), ArgumentError, "an integer of 16610 bits"),
    ("long flag", lambda: tp.sum(X, keepdims=LONG), ArgumentError, "got an integer of 16610 bits"),
    (
        "long dtype",
        lambda: tp.astype(X, LONG),
        DTypeError,
        "unknown dtype an integer of 16610 bit",
    ),
    ("cyclic list", lambda: tp.asarray(cyclic()), ShapeError, "asarray: obj: lists are nested mo"),
    ("wide cyclic list", lambda: tp.exp(cyclic(2)), ShapeError, "or contain themselves"),
    ("deep list", lambda: tp.sum(deep()), ShapeError, "lists are nested more than 64 deep"),
    ("deep dtype", lambda: tp.astype(X, deep()), DTypeError, "unknown dtype an object of class l"),
    (
        "unwritable device",
        lambda: tp.zeros(2, device=Unwritable()),
        ArgumentError,
        "must be text, such as 'cpu', got an object of class Unwritable",
    ),
    (
        "surrogate",
        lambda: tp.asarray([LONE]),
        DTypeError,
        "contains text that UTF-8 cannot encode",
    ),
    ("surrogate array", lambda: tp.equal(np.array(["a", LONE]), "a"), DTypeError, "UTF-8 cannot"),
    ("device of arrays", lambda: tp.zeros(2, device=X), ArgumentError, "must be text, such as 'c"),
    (
        "array for a flag",
        lambda: tp.median(X, keepdims=X),
        ArgumentError,
        "median: keepdims must be True or False, got array(",
    ),
    (
        "number for a flag",
        lambda: tp.argmin(X, keepdims=1),
        ArgumentError,
        "argmin: keepdims must",
    ),
    (
        "list for a choice",
        lambda: tp.fft.fft(X, norm=["ortho"]),
        ArgumentError,
        "norm must be one of 'backward', 'ortho', 'forward', got ['ortho']",
    ),
    (
        "array for a choice",
        lambda: tp.losses.huber_loss(X, X, reduction=X),
        ArgumentError,
        "huber_loss: reduction must be one of ",
    ),
    (
        "text for a number",
        lambda: tp.fft.fftfreq(4, d="2"),
        ArgumentError,
        "fftfreq: d must be a real number, got '2'",
    ),
    (
        "smoothing",
        lambda: tp.losses.softmax_cross_entropy(X, X, label_smoothing="0"),
        ArgumentError,
        "softmax_cross_entropy: label_smoothing must be a real number, got '0'",
    ),
    ("cyclic axis", lambda: tp.sum(X, axis=cyclic()), ArgumentError, "axis must be an integer"),
    ("order", lambda: tp.linalg.norm(X, X), ArgumentError, "norm: ord must be a real number, got"),
    (
        "array for a mode",
        lambda: tp.linalg.qr(X, mode=X),
        ArgumentError,
        "qr: mode must be one of 'reduced', 'complete', got array(",
    ),
    (
        "tree of no function",
        lambda: tp.tree_map(None, [X]),
        ArgumentError,
        "tree_map: function must be a function, got None",
    ),
    (
        "deep tree",
        lambda: tp.tree_map(tp.exp, deep()),
        ArgumentError,
        "a list is nested too deeply",
    ),
    (
        "cells",
        lambda: tp.nn.multi_rnn_cell([1], X, [X], [X]),
        ArgumentError,
        "multi_rnn_cell: lstm_cells must be functions, but one is 1",
    ),
    (
        "states",
        lambda: tp.nn.multi_rnn_cell([], X, None, []),
        ArgumentError,
        "multi_rnn_cell: c must be a list, got None",
    ),
    (
        "schedule",
        lambda: tp.train.piecewise_constant(1, [1.0]),
        ArgumentError,
        "piecewise_constant: boundaries must be a list, got 1",
    ),
    ("rate", lambda: tp.train.SGD(deep()), ArgumentError, "got an object of class list"),
    (
        "seed",
        lambda: tp.testing.check_grads(tp.exp, (X,), seed=cyclic()),
        ArgumentError,
        "check_grads: seed must be an integer, got [[...]]",
    ),
    (
        "long key",
        lambda: tp.random.uniform(LONG, (2,)),
        ArgumentError,
        "got the number an integer of 16610 bits",
    ),
    (
        "bound",
        lambda: tp.clip_by_value(X, X, 1),
        ArgumentError,
        "must be a real number, got array(",
    ),
    (
        "batch dimensions",
        lambda: tp.gather(X, [0], batch_dims=X),
        ArgumentError,
        "must be an integer, got array(",
    ),
    (
        "sizes of repeat",
        lambda: tp.repeat([1, 2], [2**62, 2**62]),
        ShapeError,
        "repeat of int32[2]: the result would have shape [9223372036854775808]",
    ),
    (
        "indices of repeat",
        lambda: tp.repeat([1, 2], [2**58, 2**58]),
        BackendMemoryError,
        "repeat of int32[2]: no room on the host for 576460752303423488 indices",
    ),
    (
        "ragged in a tensor",
        lambda: [[1], [1, 2]] in tp.ones(2),
        ArgumentError,
        "[[1], [1, 2]] in float32[2]: NumPy cannot compare them",
    ),
    (
        "frequencies",
        lambda: tp.fft.fftfreq(2**62),
        ShapeError,
        "fftfreq: the result would have shape [4611686018427387904]",
    ),
    (
        "room for frequencies",
        lambda: tp.fft.rfftfreq(2**59),
        BackendMemoryError,
        "rfftfreq: no room on the host for 288230376151711745 numbers",
    ),
    (
        "window",
        lambda: tp.signal.hann_window(2**59),
        BackendMemoryError,
        "hann_window: no room on the host for 576460752303423488 numbers",
    ),
    (
        "coefficient of a window",
        lambda: tp.signal.cosine_window(4, LONG, 0.5),
        ArgumentError,
        "cosine_window: a does not fit into float64",
    ),
    (
        "order of polygamma",
        lambda: tp.special.polygamma(164, X),
        ArgumentError,
        "attribute 'n': must be at most 163, got 164",
    ),
    (
        "number of generators",
        lambda: tp.random.Generator(0).spawn(2**20 + 1),
        ArgumentError,
        "spawn: n must be at most 1048576, got 1048577",
    ),
    (
        "rank of a transpose",
        lambda: tp.matrix_transpose(X, rank=X),
        ArgumentError,
        "matrix_transpose: rank must be an integer, got array(",
    ),
    ("mode of pad", lambda: tp.pad(X, 1, mode=X), ArgumentError, "pad: mode must be one of 'con"),
    (
        "reduction of scatter",
        lambda: tp.scatter_along_axis(X, [[0] * 4], X, axis=0, reduction=X),
        ArgumentError,
        "scatter_along_axis: reduction must be one of None, ",
    ),
    ("tolerance", lambda: tp.isclose(X, X, rtol=LONG), ArgumentError, "rtol does not fit into fl"),
    (
        "long rate",
        lambda: tp.train.SGD(LONG),
        ArgumentError,
        "learning_rate does not fit into float64",
    ),
    (
        "end of uniform",
        lambda: tp.random.uniform(tp.random.key(0), (2,), low=LONG),
        ArgumentError,
        "uniform: low does not fit into float64",
    ),
    (
        "threshold",
        lambda: tp.image.non_max_suppression(X, X[:, 0], 3, score_threshold=LONG),
        ArgumentError,
        "does not fit into float64: an integer of 16610 bits",
    ),
    (
        "long scale",
        lambda: tp.image.resize(np.ones((1, 5, 5, 2), np.float32), scale=LONG, size=3),
        ArgumentError,
        "exactly one of size and scale must be given, got 3 and an integer of 16610 bits",
    ),
    (
        "long fill",
        lambda: tp.image.rotate_with_offset(np.ones((1, 5, 5, 2), np.float32), 1, LONG),
        ArgumentError,
        "does not fit into float64",
    ),
    (
        "long leaf",
        lambda: tp.train.global_norm([LONG]),
        ArgumentError,
        "must be a tensor, got an integer of 16610 bits",
    ),
]

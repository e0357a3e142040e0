"""Calls beyond the limits of rank, size and text, and bad declarations: data of test_bad_input."""

from __future__ import annotations

import numpy as np

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    BackendMemoryError,
    DTypeError,
    RegistrationError,
    ShapeError,
)
from tensorplug.plugin import KernelSpec

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


def infer(x):
    return x


CASES = {  # error: call, what the message says
    RegistrationError: [
        (
            lambda: KernelSpec(LONG, ("x",), infer),
            "kernel spec: name must be text, got an integer of 16610 bits",
        ),
        (
            lambda: KernelSpec("Own", FULL, infer),
            "kernel spec 'Own': inputs must be a tuple of names, got array(",
        ),
        (lambda: KernelSpec("Own", (1,), infer), "inputs must be a tuple of names, got (1,)"),
        (
            lambda: KernelSpec("Own", ("x",), infer, outputs=FULL),
            "outputs must be a tuple of names, got array(",
        ),
        (
            lambda: KernelSpec("Own", ("x",), infer, promote=FULL),
            "promote must be a tuple of names, got array(",
        ),
        (
            lambda: KernelSpec("Own", ("x",), infer, typed_by=cyclic()),
            "typed_by must be the name of an input, got [[...]]",
        ),
        (
            lambda: KernelSpec("Own", ("x",), infer, inexact=X),
            "inexact must be True or False, got array(",
        ),
        (
            lambda: KernelSpec("Own", ("x",), infer, autocast=LONG),
            "autocast must be 'low' or 'float32', got an integer",
        ),
        (
            lambda: KernelSpec("Own", ("x",), infer, attributes={"a": 1}),
            "attributes must be Attributes by name, got {'a': 1}",
        ),
        (lambda: KernelSpec("Own", ("x",), infer, accepts={"x": X}), "accepts must be"),
    ],
    DTypeError: [
        (lambda: tp.DType(LONG, "float", 4), "DType: name must be te"),
        (lambda: tp.DType("float32", "float", X), "itemsize an inte"),
        (lambda: tp.DType(LONE, "float", 4), "NumPy has no dtype"),
        (
            lambda: tp.ones(2).__array__(LONG),
            "__array__: NumPy has no dtype an integer of 16610 bits",
        ),
        (lambda: tp.astype(X, LONG), "unknown dtype an integer of 16610 bit"),
        (lambda: tp.astype(X, deep()), "unknown dtype an object of class l"),
        (lambda: tp.asarray([LONE]), "contains text that UTF-8 cannot encode"),
        (lambda: tp.equal(np.array(["a", LONE]), "a"), "UTF-8 cannot"),
    ],
    ArgumentError: [
        (
            lambda: tp.ones(2).__dlpack__(dl_device=""),
            "__dlpack__: dl_device must be two integers, got ''",
        ),
        (
            lambda: tp.ones(2).__dlpack__(dl_device=(X, X)),
            "__dlpack__: dl_device must be an integer, got array(",
        ),
        (
            lambda: tp.ones(2).__dlpack__(max_version="10"),
            "__dlpack__: max_version must be two integers, got '10'",
        ),
        (
            lambda: tp.ones(2).__dlpack__(copy=X),
            "__dlpack__: copy must be True, False or None, got array(",
        ),
        (
            lambda: tp.from_dlpack(X, copy=X),
            "from_dlpack: copy must be True, False or None, got array(",
        ),
        (
            lambda: tp.ones(2).__array__(copy=X),
            "__array__: copy must be True, False or None, got array(",
        ),
        (lambda: tp.devices(X), "must be text, such as 'cpu'"),
        (lambda: tp.devices(LONG), "an integer of 16610 bits"),
        (lambda: tp.set_backend(X), "must be text, such as 'cp"),
        (
            lambda: tp.register_backend(LONG, lambda: None),
            "an integer of 16610 bits cannot be the name of a backend",
        ),
        (
            lambda: tp.register_backend("own", lambda: None, kernels=None),
            "register_backend: kernels must be tables of kernels, got None",
        ),
        (
            lambda: tp.register_backend("own", cyclic(), kernels=range(10**12)),
            "register_backend: [[...]] is not a function",
        ),
        (lambda: tp.debug(leaks=X), "debug: leaks must be True or Fa"),
        (lambda: tp.vjp(tp.exp, X, has_aux=X), "has_aux must be True or False, got array("),
        (lambda: tp.astype(X, int, copy=X), "astype: copy must be Tr"),
        (lambda: tp.reshape(X, 12, copy=X), "reshape: copy must be True or False, got array("),
        (lambda: tp.asarray(X, copy=X), "asarray: copy must be True"),
        (lambda: tp.ones(2).to(X), "must be text, such as 'cpu', got ar"),
        (
            lambda: tp.testing.check_grads(None, (X,)),
            "check_grads: f must be a function, got None",
        ),
        (
            lambda: tp.testing.check_grads(tp.exp, 1),
            "check_grads: args must be a list or tuple, got 1",
        ),
        (
            lambda: tp.testing.check_grads(tp.exp, (X,), order=X),
            "check_grads: order must be an integer, got array(",
        ),
        (
            lambda: tp.testing.check_grads(tp.exp, (X,), modes=1),
            "check_grads: modes must be of 'vjp' and 'jvp', got 1",
        ),
        *(
            (
                lambda name=name: tp.testing.check_grads(tp.exp, (X,), **{name: LONG}),
                f"check_grads: {name} does not fit into float64: an integer of 16610 bits",
            )
            for name in ("rtol", "atol", "eps")
        ),
        (lambda: tp.sum(X, axis=LONG), "got an integer of 16610 bits"),
        (lambda: tp.sum(X, axis=2**64), "axis must fit into 64 bits"),
        (lambda: tp.add(X, LONG), "an integer of 16610 bits does not fi"),
        (lambda: tp.full(2, LONG), "an integer of 16610 bits"),
        (lambda: tp.sum(X, keepdims=LONG), "got an integer of 16610 bits"),
        (
            lambda: tp.zeros(2, device=Unwritable()),
            "must be text, such as 'cpu', got an object of class Unwritable",
        ),
        (lambda: tp.zeros(2, device=X), "must be text, such as 'c"),
        (lambda: tp.median(X, keepdims=X), "median: keepdims must be True or False, got array("),
        (lambda: tp.argmin(X, keepdims=1), "argmin: keepdims must"),
        (
            lambda: tp.fft.fft(X, norm=["ortho"]),
            "norm must be one of 'backward', 'ortho', 'forward', got ['ortho']",
        ),
        (lambda: tp.losses.huber_loss(X, X, reduction=X), "huber_loss: reduction must be one of "),
        (lambda: tp.fft.fftfreq(4, d="2"), "fftfreq: d must be a real number, got '2'"),
        (
            lambda: tp.losses.softmax_cross_entropy(X, X, label_smoothing="0"),
            "softmax_cross_entropy: label_smoothing must be a real number, got '0'",
        ),
        (lambda: tp.sum(X, axis=cyclic()), "axis must be an integer"),
        (lambda: tp.linalg.norm(X, X), "norm: ord must be a real number, got"),
        (
            lambda: tp.linalg.qr(X, mode=X),
            "qr: mode must be one of 'reduced', 'complete', got array(",
        ),
        (lambda: tp.tree_map(None, [X]), "tree_map: function must be a function, got None"),
        (lambda: tp.tree_map(tp.exp, deep()), "a list is nested too deeply"),
        (
            lambda: tp.nn.multi_rnn_cell([1], X, [X], [X]),
            "multi_rnn_cell: lstm_cells must be functions, but one is 1",
        ),
        (
            lambda: tp.nn.multi_rnn_cell([], X, None, []),
            "multi_rnn_cell: c must be a list, got None",
        ),
        (
            lambda: tp.train.piecewise_constant(1, [1.0]),
            "piecewise_constant: boundaries must be a list, got 1",
        ),
        (lambda: tp.train.sgd(deep()), "got an object of class list"),
        (
            lambda: tp.testing.check_grads(tp.exp, (X,), seed=cyclic()),
            "check_grads: seed must be an integer, got [[...]]",
        ),
        (lambda: tp.random.uniform(LONG, (2,)), "got the number an integer of 16610 bits"),
        (lambda: tp.clip_by_value(X, X, 1), "must be a real number, got array("),
        (lambda: tp.gather(X, [0], batch_dims=X), "must be an integer, got array("),
        (
            lambda: [[1], [1, 2]] in tp.ones(2),
            "[[1], [1, 2]] in float32[2]: NumPy cannot compare them",
        ),
        (
            lambda: tp.signal.cosine_window(4, LONG, 0.5),
            "cosine_window: a does not fit into float64",
        ),
        (
            lambda: tp.random.Generator(0).spawn(2**20 + 1),
            "spawn: n must be at most 1048576, got 1048577",
        ),
        (
            lambda: tp.matrix_transpose(X, rank=X),
            "matrix_transpose: rank must be an integer, got array(",
        ),
        (lambda: tp.pad(X, 1, mode=X), "pad: mode must be one of 'con"),
        (
            lambda: tp.scatter_along_axis(X, [[0] * 4], X, axis=0, reduction=X),
            "scatter_along_axis: reduction must be one of None, ",
        ),
        (lambda: tp.isclose(X, X, rtol=LONG), "rtol does not fit into fl"),
        (
            lambda: tp.train.sgd(LONG),
            "sgd: learning_rate must be a number of float64, got an integer of 16610",
        ),
        (
            lambda: tp.random.uniform(tp.random.key(0), (2,), low=LONG),
            "uniform: low does not fit into float64",
        ),
        (
            lambda: tp.image.non_max_suppression(X, X[:, 0], 3, score_threshold=LONG),
            "does not fit into float64: an integer of 16610 bits",
        ),
        (
            lambda: tp.image.resize(np.ones((1, 5, 5, 2), np.float32), scale=LONG, size=3),
            "exactly one of size and scale must be given, got 3 and an integer of 16610 bits",
        ),
        (
            lambda: tp.image.rotate_with_offset(np.ones((1, 5, 5, 2), np.float32), 1, LONG),
            "does not fit into float64",
        ),
        (lambda: tp.train.global_norm([LONG]), "must be a tensor, got an integer of 16610 bits"),
    ],
    ShapeError: [
        (lambda: tp.take(SHORT, PLACES, 0), "result would have 79 axes"),
        (lambda: tp.gather(SHORT, PLACES), "at most 64"),
        (lambda: tp.zeros((1,) * 65), "Fill(): the result would have 65"),
        (lambda: tp.tile(X, (1,) * 65), "the result would have 65 axes"),
        (lambda: tp.expand_dims(FULL, 0), "would have 65 axes"),
        (lambda: tp.stack([FULL, FULL]), "would have 65 axes"),
        (
            lambda: tp.repeat(X, 2**62),
            "would have shape [55340232221128654848] and 221360928884514619392 bytes, but",
        ),
        (lambda: tp.zeros((2**31, 2**31)), "18446744073709551616 bytes"),
        (lambda: tp.full((2**60,), "a"), "18446744073709551616 bytes"),
        (lambda: tp.ones((0, 2**62)), "18446744073709551616 bytes"),
        (
            lambda: tp.random.uniform(tp.random.key(0), (2**62,)),
            "the result would have shape [4611686018427387904]",
        ),
        (lambda: tp.asarray(cyclic()), "asarray: obj: lists are nested mo"),
        (lambda: tp.exp(cyclic(2)), "or contain themselves"),
        (lambda: tp.sum(deep()), "lists are nested more than 64 deep"),
        (
            lambda: tp.repeat([1, 2], [2**62, 2**62]),
            "repeat of int32[2]: the result would have shape [9223372036854775808]",
        ),
        (
            lambda: tp.fft.fftfreq(2**62),
            "fftfreq: the result would have shape [4611686018427387904]",
        ),
    ],
    BackendMemoryError: [
        (
            lambda: tp.repeat([1, 2], [2**58, 2**58]),
            "repeat of int32[2]: no room on the host for 576460752303423488 indices",
        ),
        (
            lambda: tp.fft.rfftfreq(2**59),
            "rfftfreq: no room on the host for 288230376151711745 numbers",
        ),
        (
            lambda: tp.signal.hann_window(2**59),
            "hann_window: no room on the host for 576460752303423488 numbers",
        ),
    ],
}

"""Shapes brought together, and tensors made from nothing, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


# Shapes --------------------------------------------------------------------------------------


def test_broadcast_shapes():
    assert tp.broadcast_shapes((2, 1), [3], ()) == (2, 3)
    assert tp.broadcast_shapes() == ()
    assert tp.broadcast_shapes((0, 1), (1, 4)) == (0, 4)
    with pytest.raises(ShapeError, match=r"shapes \[2\] and \[3\] cannot be broadcast together"):
        tp.broadcast_shapes((2,), (3,))


def test_broadcast_arrays():
    a, b = np.arange(3.0, dtype="f4")[:, None], np.arange(2, dtype="i4")
    found = tp.broadcast_arrays(tp.asarray(a), b)
    assert isinstance(found, tuple)
    for actual, expected in zip(found, np.broadcast_arrays(a, b), strict=True):
        same(actual, expected)
    with pytest.raises(ShapeError, match="broadcast_arrays: shapes"):
        tp.broadcast_arrays([1, 2], [1, 2, 3])


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (2, 3, 4)])
def test_meshgrid(indexing, sizes):
    vectors = [np.arange(size, dtype="f4") for size in sizes]
    found = tp.meshgrid(*map(tp.asarray, vectors), indexing=indexing)
    assert isinstance(found, tuple)
    for actual, expected in zip(found, np.meshgrid(*vectors, indexing=indexing), strict=True):
        same(actual, expected)


def test_meshgrid_of_numbers_and_what_it_refuses():
    same(tp.meshgrid(tp.asarray(5), [1, 2])[0], np.array([[5], [5]], "i4"))
    with pytest.raises(
        ShapeError,
        match=r"meshgrid: each argument must be a vector or a number, got float32\[1,1\]",
    ):
        tp.meshgrid([[1.0]])
    with pytest.raises(ArgumentError, match="indexing must be one of 'xy', 'ij', got 'yx'"):
        tp.meshgrid([1], indexing="yx")


def test_ensure_shape():
    x = tp.zeros((2, 3))
    assert tp.ensure_shape(x, (None, 3)) is x
    assert tp.ensure_shape(x, None) is x
    for shape in ((2,), (2, 4), (None, 3, None)):
        with pytest.raises(ShapeError, match=r"x is float32\[2,3\], but must have shape"):
            tp.ensure_shape(x, shape)


def test_broadcast_args():
    same(tp.broadcast_args([1, 3], tp.asarray([2, 1])), np.array([2, 3], "i4"))
    with pytest.raises(
        ShapeError, match=r"shapes \[2, 3\] and \[2\] cannot be broadcast together"
    ):
        tp.broadcast_args([2, 3], [2])


def test_a_triangle_outside_the_matrix_is_zero_also_of_nan():
    x = np.full((2, 2), np.nan, "f4")
    same(tp.tril(x, k=-2), np.zeros((2, 2), "f4"))


# Creation ------------------------------------------------------------------------------------

LIKE = np.zeros((2, 3), "i2")
MADE = {
    "eye of bools": (lambda: tp.eye(2, 3, dtype=bool), np.eye(2, 3, dtype=bool)),
    "eyes": (lambda: tp.eye(2, batch_shape=[3]), np.stack([np.eye(2, dtype="f4")] * 3)),
    "full like": (lambda: tp.full_like(LIKE, 7), np.full((2, 3), 7, "i2")),
    "full like as": (lambda: tp.full_like(LIKE, 0.5, dtype="float64"), np.full((2, 3), 0.5)),
    "zeros like as": (lambda: tp.zeros_like(LIKE, dtype="float32"), np.zeros((2, 3), "f4")),
    "ones like as": (lambda: tp.ones_like(LIKE, dtype="bool"), np.ones((2, 3), bool)),
    "text": (lambda: tp.full(2, "ab"), np.array(["ab", "ab"], np.dtypes.StringDType())),
    "nothing up of floats": (lambda: tp.arange(5.0, 2), np.zeros(0, "f4")),
}


@pytest.mark.parametrize("what", MADE)
def test_creation(what):
    make, expected = MADE[what]
    same(make(), expected)


PLACED = {
    "asarray": lambda device: tp.asarray([1.0], device=device),
    "arange": lambda device: tp.arange(3, device=device),
    "arange of nothing": lambda device: tp.arange(3, 0, device=device),
    "empty": lambda device: tp.empty(2, device=device),
    "empty_like": lambda device: tp.empty_like([1], device=device),
    "eye": lambda device: tp.eye(2, device=device),
    "eyes": lambda device: tp.eye(2, batch_shape=(2,), device=device),
    "full": lambda device: tp.full(2, 1, device=device),
    "full_like": lambda device: tp.full_like([1], 2, device=device),
    "linspace": lambda device: tp.linspace(0, 1, 3, device=device),
    "ones": lambda device: tp.ones(2, device=device),
    "ones_like": lambda device: tp.ones_like([1], device=device),
    "zeros": lambda device: tp.zeros(2, device=device),
    "zeros_like": lambda device: tp.zeros_like([1], device=device),
}


@pytest.mark.parametrize("name", PLACED)
def test_devices(name):
    x = PLACED[name]("cpu")
    assert x.device == "cpu"
    again = PLACED[name](x.device)
    np.testing.assert_array_equal(again.numpy(), x.numpy())
    there = PLACED[name]("host")
    assert there.device == "host"
    assert PLACED[name](None).device == tp.get_backend()
    with pytest.raises(tp.errors.BackendNotInstalledError, match="'nowhere' is not installed"):
        PLACED[name]("nowhere")


def test_an_array_goes_to_a_device_and_stays_on_the_tape():
    slope = tp.grad(lambda x: tp.sum(tp.asarray(x, device="cpu") ** 2))
    same(slope(tp.asarray([1.0, 2.0])), np.array([2, 4], "f4"))


BAD = {  # error: call, what the message says
    DTypeError: [
        (lambda: tp.linspace(0, 1, 3, dtype=bool), "LinSpace(): dtype must"),
        (lambda: tp.linspace(0, 1j, 3, dtype="float32"), "1j cannot become"),
        (lambda: tp.eye(2, dtype=str), "dtype must not be string"),
        (lambda: tp.full(2, "a", dtype="int8"), "'a' cannot become int8"),
    ],
    ArgumentError: [
        (lambda: tp.linspace(0, 1, -1), "'num': must be at least 0, got -1"),
        (lambda: tp.eye(-1), "'n_rows': must be at least 0, got -1"),
        (lambda: tp.full_like(LIKE, 2**20), "does not fit into int16"),
    ],
}


test_refused = refused(BAD)

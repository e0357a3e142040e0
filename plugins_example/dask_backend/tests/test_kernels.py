"""Kernels on one block and on many, against formulas of NumPy and of the math module."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

import tensorplug as tp


def f32(*shape, low=-2.0, high=2.0):
    return np.random.default_rng(len(shape)).uniform(low, high, shape).astype(np.float32)


def i32(*values):
    return np.array(values, np.int32)


def counted(indices, updates, shape):
    """Add updates at indices, one by one."""
    out = np.zeros(shape)
    for index, update in zip(indices, updates, strict=True):
        out[tuple(index)] += update
    return out


A, B, ROW, COLUMN = f32(6, 5), f32(5), f32(1, 7), f32(6, 1)
CUBE, LONG = f32(4, 3, 5), f32(40)
EDGES = np.array([-np.inf, -1.5, -0.0, 0.0, 2.5, np.inf, np.nan], np.float32)
WHOLE, DIVISORS = i32(7, -7, 7, -7, 5, -(2**31)), i32(2, 2, -2, -2, 0, -1)
TIES = i32(4, 9, 9, 1, 9, 0, 4, 9, 2)
PLACES = np.random.default_rng(0).integers(-6, 6, (9,)).astype(np.int32)
PAIRS = np.random.default_rng(1).integers(0, 3, (8, 2)).astype(np.int32)
COMPLEX = (f32(5) + 1j * f32(5)[::-1]).astype(np.complex64)
HALF = f32(6, 5).astype(np.float16)

# Name, inputs, attributes, what is right in float64 (a tuple for several outputs).
CASES = [
    ("Add", [A, B], {}, A.astype(float) + B),
    ("Add", [ROW, COLUMN], {}, ROW.astype(float) + COLUMN),
    ("RealDiv", [EDGES, np.float32(0)], {}, [-np.inf, -np.inf, *[np.nan] * 2, np.inf, np.inf,
     np.nan]),
    ("FloorDiv", [WHOLE, DIVISORS], {}, i32(3, -4, -4, 3, 0, -(2**31))),
    ("Mod", [WHOLE, DIVISORS], {}, i32(1, 1, -1, -1, 0, 0)),
    ("Pow", [i32(2, -2, 1, -1, -1, 0), i32(5, 3, -2, -2, -3, -1)], {}, i32(32, -8, 1, 1, -1, 0)),
    ("Erf", [LONG], {}, [math.erf(x) for x in LONG]),
    ("Asin", [COMPLEX], {}, [cmath.asin(x) for x in COMPLEX.tolist()]),
    ("Cosh", [COMPLEX], {}, [cmath.cosh(x) for x in COMPLEX.tolist()]),
    ("Expm1", [COMPLEX], {}, [cmath.exp(x) - 1 for x in COMPLEX.tolist()]),
    ("Expm1", [np.array([complex(-np.inf, 1), np.inf])], {}, [-1 + 0j, np.inf + 0j]),
    ("Log1p", [COMPLEX], {}, [cmath.log(1 + x) for x in COMPLEX.tolist()]),
    ("Sigmoid", [np.array([-800 + 1j, 800 + 1j, 0])], {}, [0j, 1 + 0j, 0.5 + 0j]),
    ("Sigmoid", [np.float32([-90, -1, 0, 90])], {}, [1 / (1 + math.exp(-x)) for x in
     (-90, -1, 0, 90)]),
    ("Maximum", [EDGES, np.float32(1)], {}, [1, 1, 1, 1, 2.5, math.inf, math.nan]),
    ("Select", [EDGES > 0, EDGES, np.float32(9)], {}, [9, 9, 9, 9, 2.5, math.inf, 9]),
    ("Cast", [np.array([2.9, -2.9, 2.0**31, -1e10, math.nan, math.inf])], {"dtype": "int32"},
     i32(2, -2, -(2**31), 2 * 2**32 - 10**10, 0, 0)),
    ("Cast", [COMPLEX], {"dtype": "float32"}, COMPLEX.real.astype(float)),
    ("Imag", [COMPLEX], {}, COMPLEX.imag.astype(float)),
    ("Complex", [EDGES, EDGES[::-1].copy()], {}, [complex(*item) for item in
     zip(EDGES.tolist(), EDGES[::-1].tolist(), strict=True)]),
    ("Fill", [], {"shape": (3, 5), "value": 7, "dtype": "int32"}, np.array([[7] * 5] * 3, "i4")),
    ("Range", [], {"start": 40, "stop": -4, "step": -3, "dtype": "int32"},
     np.array([40 - 3 * position for position in range(15)], np.int32)),
    ("Range", [], {"start": 0.5, "stop": 9, "step": 0.25}, [0.5 + n / 4 for n in range(34)]),
    ("Reshape", [CUBE], {"shape": (10, 6)}, np.array(CUBE.ravel().tolist()).reshape(10, 6)),
    ("Transpose", [CUBE], {"perm": (2, 0, 1)}, np.moveaxis(CUBE.astype(float), 2, 0)),
    ("BroadcastTo", [COLUMN], {"shape": (2, 6, 9)}, np.ones((2, 1, 9)) * COLUMN),
    ("Slice", [A], {"begin": (1, 2), "size": (4, -1)}, A[1:5, 2:].astype(float)),
    ("PadV2", [A], {"paddings": ((1, 2), (0, 3)), "constant_value": 9},
     np.vstack([np.full((1, 8), 9), np.hstack([A, np.full((6, 3), 9)]), np.full((2, 8), 9)])),
    ("PadV2", [np.zeros((0, 2), "f4")], {"paddings": ((4, 5), (0, 1))}, np.zeros((9, 3))),
    ("Concat", [[A, A[:, :2], A]], {"axis": 1}, np.hstack([A, A[:, :2], A]).astype(float)),
    ("GatherV2", [A, PLACES], {}, np.array([A[item].astype(float) for item in PLACES])),
    ("GatherV2", [EDGES, i32(2, 6, 3, 0)], {}, [-0.0, math.nan, 0.0, -math.inf]),
    ("GatherV2", [EDGES, np.int32(4)], {}, 2.5),
    ("GatherV2", [CUBE > 0, PLACES % 3], {"axis": 1}, np.stack([CUBE[:, item] > 0 for item in
     PLACES % 3], 1)),
    ("GatherV2", [CUBE, PLACES[:8].reshape(4, 2) % 5], {"axis": 2, "batch_dims": 1},
     np.stack([CUBE[n][:, row].astype(float) for n, row in enumerate(PLACES[:8].reshape(4, 2) % 5)
               ])),
    ("ScatterNd", [PAIRS, LONG[:8]], {"shape": (3, 4)}, counted(PAIRS, LONG[:8], (3, 4))),
    ("ScatterNd", [PAIRS[:, :1], f32(8, 5)], {"shape": (3, 5)},
     counted(PAIRS[:, :1], f32(8, 5), (3, 5))),
    ("ScatterNd", [np.zeros((0, 1), "i4"), np.zeros((0, 3), "f4")], {"shape": (5, 3)},
     np.zeros((5, 3))),
    ("Sum", [CUBE], {"axis": (0, 2)}, [math.fsum(CUBE[:, n].ravel()) for n in range(3)]),
    ("Sum", [A], {"axis": (), "keep_dims": True}, A.astype(float)),
    ("Sum", [LONG > 0], {}, np.int32(sum((LONG > 0).tolist()))),
    ("Sum", [HALF], {"axis": 1}, [math.fsum(row) for row in HALF]),
    ("Prod", [A], {"axis": 1, "keep_dims": True}, [[math.prod(map(float, row))] for row in A]),
    ("Max", [EDGES], {}, math.nan),
    ("Max", [CUBE], {"reduction_indices": (0, 1)}, [max(CUBE[..., n].ravel().tolist()) for n in
     range(5)]),
    ("ArgMax", [TIES], {"axis": 0}, np.int32(1)),
    ("ArgMax", [np.concatenate([EDGES, EDGES])], {"axis": 0}, np.int32(6)),
    ("BatchMatMul", [A, A], {"transpose_b": True},
     [[math.fsum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True)) for b in A]
      for a in A]),
    ("BatchMatMul", [CUBE, CUBE[:1]], {"transpose_a": True},
     np.einsum("bki,kj->bij", CUBE.astype(float), CUBE[0])),
    ("BatchMatMul", [HALF, HALF], {"transpose_a": True},
     np.einsum("ki,kj->ij", HALF.astype(float), HALF)),
    ("BatchMatMul", [np.zeros((6, 0), "f4"), np.zeros((0, 7), "f4")], {}, np.zeros((6, 7))),
    ("TopK", [TIES], {"k": 5}, (i32(9, 9, 9, 9, 4), i32(1, 2, 4, 7, 0))),
    ("TopK", [np.stack([EDGES, EDGES[::-1]])], {"k": 2},
     ([[math.nan, math.inf]] * 2, np.array([[6, 5], [0, 1]], np.int32))),
]  # fmt: skip


@pytest.mark.parametrize("chunk_bytes", ["128MiB", "16B"], indirect=True)
@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "expected"),
    CASES,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)],
)
def test_a_kernel_agrees_with_its_formula(name, inputs, attributes, expected):
    explained = tp.explain(name, inputs, attributes)
    assert explained.how == "native", explained
    found = tp.run_kernel(name, inputs, attributes)
    several = isinstance(expected, tuple)
    for tensor, right in zip(
        found if several else [found], expected if several else [expected], strict=True
    ):
        wide = np.asarray(right)
        actual = tensor.numpy()
        assert tensor.shape == actual.shape == wide.shape
        assert actual.dtype == tensor.dtype.numpy
        assert actual.dtype.kind == wide.dtype.kind
        if actual.dtype.kind in "fc":
            tolerance = 16 * np.finfo(actual.dtype).eps  # a sum of a few terms of size 1
            np.testing.assert_allclose(actual, wide, rtol=tolerance, atol=tolerance)
            if actual.dtype.kind == "f" and name in ("GatherV2", "Reshape", "Slice"):
                np.testing.assert_array_equal(np.signbit(actual), np.signbit(wide))
        else:
            np.testing.assert_array_equal(actual, wide)


@pytest.mark.parametrize("chunk_bytes", ["64B"], indirect=True)
@pytest.mark.parametrize("index", [5, -6])
@pytest.mark.parametrize("length", [5, 40])  # one block, several
def test_index_out_of_range_raises_when_read(index, length):
    x = tp.zeros(length)
    place = index if length == 5 else index * 8
    picked = tp.gather(x, tp.asarray([0, place]))
    message = rf"index {place} is out of range .* length {length}"
    with pytest.raises(tp.errors.OutOfRangeError, match=message):
        picked.numpy()


def test_a_logarithm_near_one_keeps_its_digits():
    """Of 1 + x few are left; its logarithm is x - x**2 / 2."""
    found = tp.log1p(tp.asarray(np.array([1e-9 + 2e-9j]))).numpy()
    np.testing.assert_allclose(found, [1e-9 + 1.5e-18 + (2e-9 - 2e-18) * 1j], rtol=1e-15, atol=0)


@pytest.mark.parametrize("chunk_bytes", ["128MiB", "64B"], indirect=True)
def test_gradients_are_those_of_the_formula():
    x, w = f32(30, 4), f32(4)

    def loss(w):
        return tp.mean(tp.square(tp.tanh(tp.asarray(x) @ w)))

    value, slope = tp.value_and_grad(loss)(tp.asarray(w))
    inner = np.tanh(x.astype(float) @ w)
    assert float(value) == pytest.approx(np.mean(inner**2), rel=1e-5)
    expected = 2 / 30 * x.T.astype(float) @ (inner * (1 - inner**2))
    np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-4, atol=1e-6)

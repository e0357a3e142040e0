"""Random numbers natively: known answers, extreme words, and the same bits by loops."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.algorithms import RANDOM_KEY
from tensorplug.ops.random import box_muller
from tensorplug.ops.random import random as ops
from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.oracle import random as oracle
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.codegen.lanes import Lanes
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.families import philox as native
from tensorplug_cpu.kernels import random as kernels
from tensorplug_cpu.numerics import philox, variates

KEY = np.array([0xA4093822, 0x299F31D0, 0x13198A2E, 0x03707344], np.uint32)
FLOATS = ["float16", "float32", "float64"]

# The vectors of Random123: key and upper half of the counter, first block, result.
KNOWN = [
    ([0] * 4, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([2**32 - 1] * 4, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (KEY, 0x85A308D3_243F6A88, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]


@pytest.mark.parametrize(("key", "start", "expected"), KNOWN)
@pytest.mark.parametrize("count", [1, 9])
def test_known_answers(key, start, expected, count):
    """Of a few blocks, which Python's integers make, and of more, which NumPy does."""
    found = philox.words(np.array(key, np.uint32), start, count)
    assert found.dtype == np.uint32
    assert found[:4].tolist() == expected


@pytest.mark.parametrize("start", [0, 2**32 - 4, 2**63 - 4, 2**64 - 4])
def test_few_blocks_and_many_agree(start):
    many = philox.words(KEY, start, 16)
    for at in range(16):
        few = philox.words(KEY, (start + at) % 2**64, 1)
        np.testing.assert_array_equal(few, many[4 * at : 4 * at + 4])


def extremes(kind):
    """Return words near every power of two and limit, and where the logarithm turns."""
    size = 8 * kind.itemsize
    powers = [m for p in range(size) for m in (1 << p, (1 << size) - (1 << p))]
    turning = int(box_muller.LOW * 2**size)
    near = [m + d for m in (*powers, turning, turning >> 1) for d in range(-2, 3)]
    return np.array([number % (1 << size) for number in near], kind)


@pytest.mark.parametrize(("dtype", "kind"), [("float32", np.uint32), ("float64", np.uint64)])
def test_variates_of_extreme_words(near, dtype, kind):
    precision = box_muller.precision(dt.of(dtype))
    words = extremes(np.dtype(kind))
    found = variates.minus_log(precision, words)[0]
    near(found, oracle.minus_logs(words.tolist(), dtype), dtype, ulp=0.5)
    pairs = np.stack(np.meshgrid(words[::3], words[::4]), axis=-1).ravel()
    found = variates.normals(precision, pairs)
    near(found, oracle.normals(pairs.tolist(), dtype), dtype, ulp=1.5)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("start", [0, 2**32 - 5, 2**63 - 3, 2**64 - 2])
@pytest.mark.parametrize("size", [1 << 15, 33001, 140001])
@pytest.mark.parametrize(
    ("kind", "spec", "dtype"),
    [
        ("bits", ops.RANDOM_BITS, "uint32"),
        *(("uniform", ops.RANDOM_UNIFORM, dtype) for dtype in FLOATS),
        *(("exponential", ops.RANDOM_EXPONENTIAL, dtype) for dtype in FLOATS),
        *(("normal", ops.RANDOM_NORMAL, dtype) for dtype in FLOATS),
    ],
)
def test_loops_give_the_bits_of_arrays(monkeypatch, kind, spec, dtype, size, start):
    """In one thread and in several; NumPy has no part in the first result."""
    found = native.drawer(kind, np.dtype(dtype), size, start)(KEY)
    assert (found.dtype, found.shape) == (np.dtype(dtype), (size,))
    monkeypatch.setenv(JIT, "0")
    kernel = {"bits": kernels.random_bits, "uniform": kernels.random_uniform}.get(kind) or (
        kernels.random_normal if kind == "normal" else kernels.random_exponential
    )
    out = TensorType(dt.of(dtype), (size,))
    expected = kernel(RANDOM_KEY, start=start, out=out)(KEY)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize(("dtype", "kind"), [("float32", np.uint32), ("float64", np.uint64)])
def test_formulas_on_vectors_of_extreme_words(dtype, kind):
    """The words of a loop are any; these are at all limits."""
    precision = box_muller.precision(dt.of(dtype))
    words = extremes(np.dtype(kind))
    words = np.concatenate([words, words[: -len(words) % 8]])
    radii, angles = (
        np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(words, words[::3][:40])
    )
    count = 8
    f = Function(f"pairs_{dtype}", dtype, ("radii", "angles", "one", "two", "logs"), ("size",))
    with f.loop(0, f["size"], count) as at:
        element = f.scalar(np.dtype(kind).name)
        given = [
            Lanes(f, f.load(f[name], at, count, element), kind) for name in ("radii", "angles")
        ]
        pair = variates.normal_pairs(precision, *given, Lanes.sqrt)
        for made, name in zip(pair, ("one", "two"), strict=True):
            f.store(made.value, f[name], at)
        f.store(variates.minus_log(precision, given[0])[0].value, f["logs"], at)
    one, two = np.empty_like(radii), np.empty_like(radii)
    logs = np.empty(radii.shape, dtype)
    f.compiled()(*(x.ctypes.data for x in (radii, angles, one, two, logs)), radii.size)
    with np.errstate(all="ignore"):
        expected = variates.normal_pairs(precision, radii, angles, np.sqrt)
        expected_logs = variates.minus_log(precision, radii)[0]
    np.testing.assert_array_equal(one, expected[0])
    np.testing.assert_array_equal(two, expected[1])
    np.testing.assert_array_equal(logs, expected_logs)

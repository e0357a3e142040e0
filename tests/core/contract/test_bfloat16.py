"""bfloat16: its numbers, promotion, conversions with one rounding, interchange and gradients.

Expected values come from float64 rounded by ``rounded``, which counts in steps of the last digit.
"""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract import narrowing
from tensorplug.errors import CopyNeededError, DTypeError

B = tp.bfloat16
RNG = np.random.default_rng(7)


def rounded(x, digits=8, least=-126, most=128):
    """Return float64 rounded to ``digits`` digits in base 2, halves to even, as float64."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.where(np.isfinite(x), x, 0))
        step = np.ldexp(1.0, np.maximum(exponent - digits, least + 1 - digits))
        result = np.rint(x / step) * step  # exact: the quotient has few digits
        result = np.where(np.abs(result) >= 2.0**most, np.copysign(np.inf, x), result)
    return np.where(np.isfinite(x), result, x)


def bf(values):
    return tp.asarray(values, dtype=B)


def numbers(tensor):
    assert tensor.dtype is B
    return tensor.numpy().astype(np.float64)


EDGES = np.array(
    [
        *(0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan),
        *(1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40),
        *(-(1 + 2.0**-8 + 2.0**-40), 3.39e38, 3.4e38, 1e39, -1e300, 2.0**-133, 2.0**-134),
        *(1.5 * 2.0**-134, 2.0**-126, 1e-45, 1e-320),
    ]
)


def test_it_is_loaded_at_its_first_use():
    code = """
import sys
import tensorplug as tp
x = tp.asarray([1.0, 2.0]) + 1
known = tp.bfloat16.name, tp.result_type(tp.bfloat16, tp.float16), tp.finfo(tp.bfloat16).eps
before = "ml_dtypes" in sys.modules
tp.zeros(2, dtype="bfloat16")
print(known, before, "ml_dtypes" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ("('bfloat16', tensorplug.float32, 0.0078125) False True")


def test_finfo_of_bfloat16():
    limits = ml_dtypes.finfo(ml_dtypes.bfloat16)
    result = tp.finfo(B)
    assert (result.bits, result.eps, result.max, result.min, result.smallest_normal) == (
        16,
        float(limits.eps),
        float(limits.max),
        float(limits.min),
        float(limits.smallest_normal),
    )
    assert (B.compute, B.significand, B.itemsize, B.kind) == (tp.float32, 8, 2, "float")


@pytest.mark.parametrize("source", [np.float64, np.float32, np.float16])
def test_floats_are_rounded_once(source):
    with np.errstate(all="ignore"):
        x = np.concatenate([EDGES, RNG.standard_normal(500) * 10.0 ** RNG.integers(-45, 40, 500)])
        x = x.astype(source)
    expected = rounded(x)
    for actual in (tp.astype(tp.asarray(x), B), bf(x), bf(x.tolist())):
        np.testing.assert_array_equal(numbers(actual), expected)
        np.testing.assert_array_equal(np.signbit(numbers(actual)), np.signbit(expected))


@pytest.mark.parametrize("name", [dtype.name for dtype in sorted(dt.INTEGER, key=str)])
def test_integers_are_rounded_once(name):
    dtype = dt.of(name)
    near = [1 << at for at in range(dtype.bits)]
    odd = [number + offset for number in near for offset in (-1, 0, 1)]
    ties = [(257 << at) + offset for at in range(dtype.bits - 9) for offset in (-1, 0, 1)]
    fit = [int(n) for n in (*odd, *ties) if dtype.min <= n <= dtype.max]
    expected = [_round_integer(number) for number in fit]
    assert numbers(tp.astype(tp.asarray(np.array(fit, name)), B)).tolist() == expected
    back = tp.astype(bf([0.0, 1.75, 100.0]), name)
    assert (back.dtype.name, back.tolist()) == (name, [0, 1, 100])


def _round_integer(number):
    """Return an integer rounded to 8 digits, in integers."""
    drop = max(number.bit_length() - 8, 0)
    whole, rest = number >> drop, number & ((1 << drop) - 1)
    half = 1 << drop >> 1
    up = drop and (rest > half or (rest == half and whole & 1))
    return float((whole + up) << drop)


def test_casts_to_other_kinds():
    x = bf(EDGES)
    kept = rounded(EDGES)
    for target in (tp.float32, tp.float64):
        result = tp.astype(x, target)
        assert result.dtype is target
        np.testing.assert_array_equal(result.numpy(), kept.astype(target.numpy))
    assert tp.astype(x, "bool").tolist() == [number != 0 for number in kept.tolist()]
    assert tp.astype(bf([1.5, -2.0]), "complex64").tolist() == [1.5, -2.0]
    assert tp.astype(bf([300.0, -1.5, math.nan, math.inf]), "int8").tolist() == [44, -1, 0, 0]


PROMOTED = {
    "bool": "bfloat16",
    "int8": "bfloat16",
    "uint64": "bfloat16",
    "float16": "float32",
    "bfloat16": "bfloat16",
    "float32": "float32",
    "float64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
}


@pytest.mark.parametrize(("other", "result"), PROMOTED.items())
def test_promotion(other, result):
    assert tp.result_type(B, other).name == tp.result_type(other, B).name == result
    total = tp.add(bf([1.0]), tp.ones((1,), dtype=other))
    assert (total.dtype.name, total.tolist()) == (result, [2])


@pytest.mark.parametrize("number", [True, 2, 0.5, np.float64(0.5), ml_dtypes.bfloat16(0.5)])
def test_numbers_are_weak(number):
    assert (bf([1.0]) + number).dtype is B
    assert (number + bf([1.0])).dtype is B
    assert (tp.asarray([1.0]) + number).dtype is tp.float32


@pytest.mark.parametrize(
    "spelling", ["bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)]
)
def test_bfloat16_has_several_spellings(spelling):
    assert tp.zeros(1, dtype=spelling).dtype is B
    assert B == spelling  # noqa: SIM300  # B is the dtype
    assert np.dtype(B) == np.dtype(ml_dtypes.bfloat16)


def test_bfloat16_is_shown_read_and_copied():
    x = bf([[0.1, -2.5]])
    assert repr(x) == "Tensor([[ 0.1001, -2.5   ]], dtype=bfloat16, device='cpu')"
    assert x.tolist() == [[0.10009765625, -2.5]]
    assert (x[0, 1].item(), float(x[0, 1]), x.nbytes) == (-2.5, -2.5, 4)
    assert (x.numpy().dtype, np.asarray(x, np.float32).dtype) == (B.numpy, np.float32)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), tp.asarray(x.numpy())):
        assert (other.dtype, other.tolist()) == (B, x.tolist())
    assert tp.asarray([ml_dtypes.bfloat16(3)]).dtype is tp.float32  # as NumPy's scalars in lists


def test_dlpack_and_files(tmp_path):
    x = bf([[0.1, -2.5], [1.0, 4.0]])
    for version in (None, (1, 0)):
        assert tp.from_dlpack(Capsule(x, version), copy=False).tolist() == x.tolist()
    shared = tp.from_dlpack(x.T)
    assert (shared.dtype, shared.tolist()) == (B, x.T.tolist())
    tp.save({"x": x}, tmp_path / "x.safetensors")
    assert b'"BF16"' in (tmp_path / "x.safetensors").read_bytes()
    [(name, loaded)] = tp.load(tmp_path / "x.safetensors").items()
    assert (name, loaded.dtype, loaded.tolist()) == ("x", B, x.tolist())


class Capsule:
    """A producer of DLPack in a version."""

    def __init__(self, x, version):
        self._x, self._version = x, version

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_request):
        return self._x.__dlpack__(max_version=self._version)


def test_torch_shares_it():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = bf([0.1, -2.5])
    taken = torch.from_dlpack(x)
    assert (taken.dtype, taken.tolist()) == (torch.bfloat16, x.tolist())
    back = tp.from_dlpack(taken * 2)
    assert (back.dtype, back.tolist()) == (B, [2 * number for number in x.tolist()])


def test_a_copy_that_is_refused():
    with pytest.raises(CopyNeededError):
        np.asarray(bf([1.0]), np.float32, copy=False)


# Arithmetic ---------------------------------------------------------------------------------


def test_sums_are_taken_in_float32():
    ones = tp.ones((1 << 16,), dtype=B)
    x = rounded(RNG.standard_normal((64, 4096)))
    w = rounded(RNG.standard_normal((4096, 8)))
    cases = {
        "sum": (tp.sum(ones), 65536.0, 0),
        "mean": (tp.mean(ones), 1.0, 0),
        "cumulative_sum": (tp.cumulative_sum(ones)[-1], 65536.0, 0),
        "matmul": (tp.matmul(bf(x), bf(w)), x @ w, np.abs(x) @ np.abs(w) * 2.0**-20),
        "softmax": (tp.nn.softmax(tp.zeros((1, 1 << 12), dtype=B)), 2.0**-12, 0),
        "var": (tp.var(bf(x), axis=1), rounded(x).var(axis=1), 2.0**-18),
    }
    for name, (actual, exact, bound) in cases.items():
        error = np.abs(numbers(actual) - exact)
        assert (error <= np.abs(exact) * 2.0**-8 + bound).all(), name


def test_explain_shows_a_widened_kernel():
    explanation = tp.explain("Softmax", [bf([[1.0, 2.0]])])
    assert (explanation.how, explanation.steps[-1]) == ("widened", ("widened", "in float32"))
    assert [(inner.call.split("(")[0], inner.how) for inner in explanation.inner] == [
        ("Cast", "native"),
        ("Softmax", "native"),
        ("Cast", "native"),
    ]
    assert tp.explain("Softmax", dtype="bfloat16").steps == explanation.steps
    for name in ("Identity", "Reverse", "GatherV2", "Select", "Cast"):
        assert tp.explain(name, dtype="bfloat16").how == "native", name


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_gradients_round_once(dtype):
    """Of 1 - tanh(x)**2, narrow steps would keep no digit where tanh is near 1."""
    x = rounded(np.linspace(-4, 4, 65))
    gradient = tp.grad(lambda x: tp.sum(tp.tanh(x)))(tp.asarray(x, dtype=dtype))
    assert gradient.dtype.name == dtype
    y = tp.tanh(tp.asarray(x, dtype=dtype)).numpy().astype(np.float64)  # what the tape saves
    error = np.abs(gradient.numpy().astype(np.float64) - (1 - y * y))
    assert (error <= (1 - y * y) * dt.of(dtype).eps / 2 + 1e-7).all()


def test_what_counts_as_zero_in_a_pseudo_inverse():
    """The default limit is the dtype's own eps, though the values are computed in float32."""
    x = np.diag([1.0, 0.75 * B.eps])
    assert tp.linalg.pinv(bf(x)).tolist() == [[1, 0], [0, 0]]
    assert tp.linalg.pinv(tp.asarray(x, dtype="float32"))[1, 1].item() > 100


def test_gradients_add_in_float32():
    one = bf(1.0)
    assert tp.grad(lambda one: tp.sum(one * tp.ones((1 << 16,), dtype=B)))(one).item() == 65536
    table, rows = tp.zeros((2, 1), dtype=B), tp.zeros((4096,), dtype="int32")
    gradient = tp.grad(lambda table: tp.sum(tp.take(table, rows, axis=0)))(table)
    assert (gradient.dtype, gradient.tolist()) == (B, [[4096.0], [0.0]])


# Random numbers -----------------------------------------------------------------------------


def test_random_numbers():
    key = tp.random.key(3)
    unit = numbers(tp.random.uniform(key, (5000,), dtype=B))
    assert set((unit * 256).tolist()) == set(range(256))  # 8 bits, and never 1
    normal = numbers(tp.random.normal(key, (5000,), dtype=B))
    wide = tp.random.normal(key, (5000,), dtype="float32").numpy()
    np.testing.assert_array_equal(normal, rounded(wide))


# A conversion of its own ----------------------------------------------------------------------


def test_narrowing_rounds_to_bfloat16():
    with np.errstate(all="ignore"):
        narrow = EDGES.astype(np.float32)
    for values in (EDGES, narrow, np.array(3), np.array([True])):
        with np.errstate(all="ignore"):
            result = narrowing.convert(values, B)
        assert (result.dtype, result.shape) == (B.numpy, values.shape)
        np.testing.assert_array_equal(result.astype(np.float64), rounded(values))


def test_other_dtypes_of_ml_dtypes_are_refused():
    with pytest.raises(DTypeError, match="float8_e3m4"):
        tp.asarray(np.zeros(2, ml_dtypes.float8_e3m4))

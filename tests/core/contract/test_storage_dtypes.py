"""Dtypes for storage: their numbers by their bits, rounding, movement, and what is refused."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from tests.core.support.engines import MemoryBackend
from tests.core.support.storage_formats import (
    FLOATS,
    MOVES,
    STORAGE,
    TOO_LARGE,
    WHOLE,
    moving,
    nearest,
    numbers,
)

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import (
    ArgumentError,
    CopyNeededError,
    DTypeError,
    FileFormatError,
    InterchangeError,
    ShapeError,
)

INF, NAN = math.inf, math.nan


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def stored(dtype: dt.DType) -> tp.Tensor:
    """Return all bit patterns."""
    return tp.asarray(np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_stand_for_what_their_bits_say(dtype):
    wanted = numbers(dtype)
    for wide in ("float32", "float64"):
        found = tp.astype(stored(dtype), wide).numpy()
        assert found.dtype == wide
        np.testing.assert_array_equal(found, wanted)
        signed = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[signed]), np.signbit(wanted[signed]))
    finite = wanted[np.isfinite(wanted)]
    assert (dtype.min, dtype.max) == (finite.min(), finite.max())
    assert dtype.eps == min(x for x in finite if x > 1) - 1


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.name != "float8_e8m0fnu"], ids=str)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_floats_are_rounded_once_to_the_nearest_even(dtype, source):
    finite = np.unique(numbers(dtype)[np.isfinite(numbers(dtype))])
    middles = (finite[1:] + finite[:-1]) / 2
    rng = np.random.default_rng(0)
    given = np.concatenate(
        [finite, middles, rng.uniform(-1, 1, 200) * finite.max(), rng.normal(size=200)]
    ).astype(source)
    toward = [np.nextafter(middles.astype(source), to).astype(source) for to in (-INF, INF)]
    given = np.concatenate([given, *toward])
    wanted = np.array([nearest(dtype, float(x)) for x in given], np.float32)
    found = tp.astype(tp.astype(given, dtype), "float32").numpy()
    np.testing.assert_array_equal(found, wanted)


def test_float64_is_not_rounded_to_float32_first():
    given = np.array([1.0625 + 2.0**-40, 1.0625 - 2.0**-40, 1.0625])
    assert tp.astype(given, "float8_e4m3fn").tolist() == [1.125, 1.0, 1.0]


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_small_powers_are_the_nearest(source):
    given = np.array([0.01, 1, 1.01, 1.49, 1.5, 1.99, 2, 2.99, 3]) * 2.0**-127
    found = tp.astype(tp.astype(given.astype(source), "float8_e8m0fnu"), "float64").numpy()
    np.testing.assert_array_equal(found / 2.0**-127, [1, 1, 1, 1, 2, 2, 2, 2, 4])


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_numbers_that_do_not_fit(dtype):
    x = np.float32([1e9, -INF, NAN])
    for saturate, wanted in zip((False, True), TOO_LARGE[dtype.name], strict=True):
        found = tp.astype(x, dtype, saturate=saturate)
        assert found.dtype is dtype
        np.testing.assert_array_equal(tp.astype(found, "float32").numpy(), np.float32(wanted))


SATURATED = [  # dtype, numbers, dtype, numbers
    ("float32", [127.9, 128, -128.9, -129, 300, NAN], "int8", [127, 127, -128, -128, 127, 0]),
    ("float32", [-0.5, -1, 2.0**32, 4294967040], "uint32", [0, 0, 2**32 - 1, 4294967040]),
    ("float32", [2.0**31, -(2.0**31), INF, -INF], "int32", [2**31 - 1, -(2**31)] * 2),
    ("float16", [INF, 65504, -INF], "int32", [2**31 - 1, 65504, -(2**31)]),
    ("int32", [300, -300, 5], "int8", [127, -128, 5]),
    ("int32", [300, -300, 5], "uint8", [255, 0, 5]),
    ("uint8", [200, 3], "int8", [127, 3]),
    ("int8", [-5, 100], "uint64", [0, 100]),
    ("int64", [2**62, -(2**62)], "float16", [65504, -65504]),
    ("int32", [10**6, -3, 0], "float8_e4m3fn", [448, -3, 0]),
    ("float32", [INF, -INF], "float64", [np.finfo("f8").max, np.finfo("f8").min]),
    ("float64", [1e300, -1e300, NAN], "float32", [np.finfo("f4").max, np.finfo("f4").min, NAN]),
    ("bool", [True, False], "int4", [1, 0]),
    ("float8_e5m2", [57344, -3], "float8_e4m3fn", [448, -3]),
    ("int8", [100, -100, 5], "int4", [7, -8, 5]),
]


@pytest.mark.parametrize(("source", "given", "target", "wanted"), SATURATED)
def test_saturation(source, given, target, wanted):
    found = tp.astype(tp.asarray(given, dtype=source), target, saturate=True)
    assert found.dtype.name == target
    expected = np.array(wanted, tp.asarray(wanted, dtype=target).numpy().dtype)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_saturate_is_for_real_numbers():
    with pytest.raises(DTypeError, match="saturate is for real numbers"):
        tp.astype(tp.ones((1,), dtype="complex64"), "int8", saturate=True)


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_integers_wrap_and_floats_are_truncated(dtype):
    given = np.arange(-40, 40)
    size = 1 << dtype.bits
    wanted = (given - dtype.min) % size + dtype.min
    for source in ("int8", "int32", "float32"):
        found = tp.astype(given.astype(source), dtype)
        assert found.tolist() == wanted.tolist()
    halves = tp.astype(np.float32([0.9, -0.9, 1.5]), dtype)
    assert halves.tolist() == [0, 0, 1]


# Movement --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_movement_keeps_all_bits(dtype, name):
    here, there = MOVES[name]
    array = moving(dtype)
    wanted = there(array.view(np.uint8))
    found = here(tp.asarray(array))
    assert (found.dtype, found.shape) == (dtype, wanted.shape)
    np.testing.assert_array_equal(found.numpy().view(np.uint8), wanted)


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_making_reading_and_showing(dtype):
    assert getattr(tp, dtype.name) is dtype
    assert tp.asarray(1, dtype=dtype.name).dtype is dtype
    ones = tp.full((2,), 1, dtype=dtype)
    assert (ones.tolist(), ones[0].item(), ones.dtype) == ([1, 1], 1, dtype)
    assert type(ones[0].item()) is (int if dtype in dt.WHOLE else float)
    assert repr(ones) == f"Tensor([1, 1], dtype={dtype}, device='cpu')"
    assert tp.asarray(ones.numpy()).dtype is dtype
    assert [dt.of(dtype.numpy), dt.of(dtype.numpy.type)] == [dtype, dtype]
    assert dtype.numpy.itemsize == dtype.itemsize == 1
    padded = tp.pad(ones, [(1, 0)], 1)
    assert (padded.tolist(), padded.dtype) == ([1, 1, 1], dtype)
    assert tp.zeros_like(padded).dtype is dtype
    if dtype in dt.WHOLE:
        with pytest.raises(ArgumentError, match=f"fit into {dtype}"):
            tp.asarray(99, dtype=dtype)


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_questions_about_them(dtype):
    about = (tp.iinfo if dtype in dt.WHOLE else tp.finfo)(dtype)
    assert (about.bits, about.min, about.max) == (dtype.bits, dtype.min, dtype.max)
    for kind in ("bool", "integral", "real floating", "numeric"):
        assert not tp.isdtype(dtype, kind)  # the standard's kinds are for arithmetic
    assert tp.result_type(dtype, dtype) is dtype
    assert dtype.name not in tp.__array_namespace_info__().dtypes()


def test_bits_are_read_as_integers():
    x = tp.asarray([1.0, -448.0], dtype="float8_e4m3fn")
    assert tp.bitcast(x, "uint8").tolist() == [0x38, 0xFE]
    assert tp.bitcast(x, "int8").tolist() == [0x38, -2]
    assert tp.bitcast(tp.bitcast(x, "uint16"), "float8_e4m3fn").tolist() == [1, -448]
    with pytest.raises(DTypeError, match="must be numeric, got bool"):
        tp.bitcast(x, "bool")


BITS = {dtype.name: dtype for dtype in dt.NUMERIC | dt.STORAGE}


def bits_of(array: np.ndarray) -> list[int]:
    """Return the bits of the elements, one after the other, the lowest first."""
    bits = dt.of(array.dtype).bits
    whole = [element.tobytes() for element in array.reshape(-1)]
    return [int.from_bytes(each, "little") >> at & 1 for each in whole for at in range(bits)]


@pytest.mark.parametrize(
    "source", ["int2", "uint4", "float4_e2m1fn", "float8_e5m2", "int8", "float32"]
)
@pytest.mark.parametrize("target", sorted(BITS))
def test_bits_are_read_as_any_dtype(source, target):
    own, other = BITS[source], BITS[target]
    parts = other.bits // own.bits
    shape = (2, 3, parts) if parts > 1 else (2, 4)
    raw = np.random.default_rng(1).integers(0, 256, (*shape, own.itemsize), np.uint8)
    x = (raw & (1 << min(own.bits, 8)) - 1).view(own.numpy)[..., 0]
    found = tp.bitcast(x, target)
    of_one = (own.bits // other.bits,) if own.bits > other.bits else ()
    assert (found.dtype.name, found.shape) == (target, (2, 3) if parts > 1 else (*shape, *of_one))
    assert bits_of(found.numpy()) == bits_of(x)
    if own.bits < other.bits:
        with pytest.raises(ShapeError, match=f"length {parts} to become"):
            tp.bitcast(x[..., 1:], target)


# Files and capsules ----------------------------------------------------------------------

CODES = {  # of the format
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "float4_e2m1fn": "F4",
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_files(dtype, tmp_path):
    path = tmp_path / "x.safetensors"
    x = tp.reshape(stored(dtype), (2, -1))
    tp.save({"x": x, "y": tp.ones((3,))}, path)
    ((name, told),) = [
        item for item in safetensors.deserialize(path.read_bytes()) if item[0] == "x"
    ]
    bits = np.arange(1 << dtype.bits, dtype=np.uint8)
    if dtype.bits == 4:  # two in a byte
        bits = bits[::2] + 16 * bits[1::2]
    assert (name, told["dtype"], told["shape"]) == ("x", CODES[dtype.name], list(x.shape))
    assert bytes(told["data"]) == bits.tobytes()
    found = tp.load(path)["x"]
    assert (found.dtype, found.shape) == (dtype, x.shape)
    np.testing.assert_array_equal(found.numpy().view(np.uint8), x.numpy().view(np.uint8))


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (2, 4), (0, 3)], ids=str)
@pytest.mark.parametrize("dtype", [dtype for dtype in STORAGE if dtype.bits < 8], ids=str)
def test_files_of_packed_elements(dtype, shape, tmp_path):
    path = tmp_path / "x.safetensors"
    rng = np.random.default_rng(2)
    raw = rng.integers(0, 1 << dtype.bits, shape, np.uint8)
    tp.save({"x": raw.view(dtype.numpy), "y": np.float32([1])}, path, metadata={"by": "me"})
    told = dict(safetensors.deserialize(path.read_bytes()))["x"]
    bits = [f"{element:0{dtype.bits}b}"[::-1] for element in raw.reshape(-1).tolist()]
    whole = "".join(bits)
    wanted = [int(whole[at : at + 8][::-1], 2) for at in range(0, len(whole), 8)]
    assert list(told["data"]) == wanted
    full = dtype.name in CODES and not raw.size % 2
    assert told["dtype"] == (CODES[dtype.name] if full else "U8")
    assert told["shape"] == (list(shape) if full else [len(wanted)])
    found = tp.load(path)["x"]
    assert (found.dtype, found.shape) == (dtype, shape)
    np.testing.assert_array_equal(found.numpy().view(np.uint8), raw)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["by"] == "me"


DAMAGED = {  # the record of 2 bytes "x", and of float32 "y"
    "no JSON": "{",
    "no object": "[]",
    "of nothing": '{"z": ["int4", [4]]}',
    "of no bytes": '{"y": ["int4", [4]]}',
    "unknown dtype": '{"x": ["int3", [4]]}',
    "whole bytes": '{"x": ["float8_e5m2", [2]]}',
    "too few": '{"x": ["int4", [2]]}',
    "too many": '{"x": ["int4", [5]]}',
    "negative": '{"x": ["int4", [-2, -2]]}',
    "no integer": '{"x": ["int4", [4.0]]}',
    "huge": '{"x": ["int4", [0, 99999999999999999999]]}',
    "no pair": '{"x": "int4"}',
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_records_of_packed_elements(name, tmp_path):
    path = tmp_path / "x.safetensors"
    arrays = {"x": np.uint8([0x21, 0x43]), "y": np.float32([1])}
    if name == "huge":
        arrays["x"] = np.uint8([])
    safetensors.numpy.save_file(arrays, path, {"tensorplug.packed": DAMAGED[name]})
    with pytest.raises(FileFormatError, match="not a valid safetensors file: "):
        tp.load(path)


def test_the_record_of_packed_elements_is_ours(tmp_path):
    with pytest.raises(ArgumentError, match=r"'tensorplug.packed' is written by save itself"):
        tp.save({"x": tp.ones((2,))}, tmp_path / "x", metadata={"tensorplug.packed": "{}"})


@pytest.mark.parametrize("dtype", [dtype for dtype in FLOATS if dtype.bits == 8], ids=str)
def test_capsules(dtype):
    x = stored(dtype)
    back = tp.from_dlpack(x)
    assert (back.dtype, back.shape) == (dtype, (256,))
    np.testing.assert_array_equal(back.numpy().view(np.uint8), np.arange(256))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_capsules_of_pytorch(dtype):
    torch = pytest.importorskip("torch")
    theirs = torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype))
    ours = tp.from_dlpack(theirs)
    assert ours.dtype.name == dtype
    np.testing.assert_array_equal(ours.numpy().view(np.uint8), np.arange(256))


SHORT = [dtype for dtype in STORAGE if dtype.bits < 8]


@pytest.mark.parametrize("shape", [(8,), (2, 3, 4), (0, 4), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_capsules_of_packed_elements(dtype, shape):
    raw = np.random.default_rng(3).integers(0, 1 << dtype.bits, shape, np.uint8)
    x = tp.asarray(raw.view(dtype.numpy))
    back = tp.from_dlpack(x)
    assert (back.dtype, back.shape) == (dtype, shape)
    np.testing.assert_array_equal(back.numpy().view(np.uint8), raw)
    with pytest.raises(CopyNeededError, match=f"packs {8 // dtype.bits} elements of {dtype}"):
        x.__dlpack__(copy=False)


class Packed:
    """Exports capsules even where no copy is allowed."""

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_options):
        return tp.zeros((2,), dtype="int4").__dlpack__()


def test_packed_elements_cannot_be_shared():
    assert tp.from_dlpack(Packed()).tolist() == [0, 0]
    with pytest.raises(CopyNeededError, match="packed elements, which cannot be unpacked"):
        tp.from_dlpack(Packed(), copy=False)


def test_float4_of_pytorch():
    torch = pytest.importorskip("torch")
    packed = torch.tensor([[0x21, 0x43], [0x65, 0xF7]], dtype=torch.uint8)
    ours = tp.from_dlpack(packed.view(torch.float4_e2m1fn_x2))
    assert (ours.dtype, ours.shape) == (dt.float4_e2m1fn, (2, 4))
    assert ours.tolist() == [[0.5, 1, 1.5, 2], [3, 4, 6, -6]]
    theirs = torch.from_dlpack(ours)
    assert theirs.dtype is torch.float4_e2m1fn_x2
    assert torch.equal(theirs.view(torch.uint8), packed)


@pytest.mark.parametrize("shape", [(), (3,), (4, 5)], ids=str)
def test_what_capsules_do_not_hold(shape):
    with pytest.raises(InterchangeError, match=r"DLPack packs 2 elements of int4 .* no multiple"):
        tp.from_dlpack(tp.zeros(shape, dtype="int4"))
    with pytest.raises(RuntimeError, match="lanes"):
        np.from_dlpack(tp.zeros((2,), dtype="int4"))


# What is refused -------------------------------------------------------------------------

REFUSED = {
    "addition": (lambda x: x + x, r"Add.*convert it with astype"),
    "a number": (lambda x: x + 1, r"Add.*convert it with astype"),
    "a float": (lambda x: x * 2.0, "no common dtype; convert one of them with astype"),
    "another dtype": (lambda x: x + tp.ones((2, 2)), "no common dtype; convert"),
    "negation": (lambda x: -x, "float8_e4m3fn is for storage: convert it with astype"),
    "product": (lambda x: x @ x, "is for storage"),
    "sum": (tp.sum, "is for storage"),
    "exponential": (tp.exp, "is for storage"),
    "comparison": (lambda x: tp.equal(x, x), "is for storage"),
    "order": (tp.sort, "is for storage"),
    "set": (tp.unique_values, "is for storage"),
    "range": (lambda x: tp.arange(3, dtype=x.dtype), "convert the result with astype"),
    "draw": (lambda x: tp.random.normal(tp.random.key(0), (2,), dtype=x.dtype), "floating"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arithmetic_is_refused_with_advice(name):
    call, text = REFUSED[name]
    with pytest.raises(DTypeError, match=text):
        call(tp.ones((2, 2), dtype="float8_e4m3fn"))


def test_a_device_says_which_it_stores():
    tp.register_backend("small", lambda: MemoryBackend("small", dt.FIXED))
    try:
        with tp.use_backend("small"), pytest.raises(DTypeError, match="float8_e5m2"):
            tp.asarray([1.0], dtype="float8_e5m2")
    finally:
        tp.remove_backend("small")


def test_a_backend_may_declare_more():
    x = tp.asarray([1.5, -2.0], dtype="float8_e4m3fn")

    def negative(x):
        return (-x.astype(np.float32)).astype(x.dtype)

    storing = [*dt.NUMERIC, dt.float8_e4m3fn]
    with tp.register_kernel("Neg", "cpu", negative, dtypes=storing, override=True):
        found = tp.negative(x)
        assert (found.tolist(), found.dtype) == ([-1.5, 2.0], x.dtype)
        with pytest.raises(DTypeError, match="float8_e5m2 is for storage"):
            tp.negative(tp.ones((1,), dtype="float8_e5m2"))
    with pytest.raises(DTypeError, match="float8_e4m3fn is for storage"):
        tp.negative(x)


def test_ml_dtypes_is_imported_when_one_is_used():
    code = """
import sys
import tensorplug as tp

with tp.use_backend("cpu"):
    x = tp.quantize(tp.ones((2, 2)), 0.5)
    tp.quantized_matmul(x, x, 0.5)
    assert "ml_dtypes" not in sys.modules
    tp.astype(x, "int4")
assert "ml_dtypes" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)

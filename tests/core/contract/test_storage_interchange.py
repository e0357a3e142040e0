"""Dtypes for storage in files and in other libraries' hands: packed elements, capsules."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from tests.core.contract.test_storage_dtypes import stored
from tests.core.support.storage_formats import (
    FLOATS,
    STORAGE,
)

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import (
    ArgumentError,
    CopyNeededError,
    FileFormatError,
    InterchangeError,
)

pytestmark = pytest.mark.usefixtures("on_the_cpu")


CODES = {  # of the format
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "float4_e2m1fn": "F4",
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_safetensors_files_keep_all_bits(dtype, tmp_path):
    path = tmp_path / "x.safetensors"
    x = tp.reshape(stored(dtype), (2, -1))
    tp.save({"x": x, "y": tp.ones((3,))}, path)
    ((name, text),) = [
        item for item in safetensors.deserialize(path.read_bytes()) if item[0] == "x"
    ]
    bits = np.arange(1 << dtype.bits, dtype=np.uint8)
    if dtype.bits == 4:  # two in a byte
        bits = bits[::2] + 16 * bits[1::2]
    assert (name, text["dtype"], text["shape"]) == ("x", CODES[dtype.name], list(x.shape))
    assert bytes(text["data"]) == bits.tobytes()
    result = tp.load(path)["x"]
    assert (result.dtype, result.shape) == (dtype, x.shape)
    np.testing.assert_array_equal(result.numpy().view(np.uint8), x.numpy().view(np.uint8))


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (2, 4), (0, 3)], ids=str)
@pytest.mark.parametrize("dtype", [dtype for dtype in STORAGE if dtype.bits < 8], ids=str)
def test_files_of_packed_elements(dtype, shape, tmp_path):
    path = tmp_path / "x.safetensors"
    rng = np.random.default_rng(2)
    raw = rng.integers(0, 1 << dtype.bits, shape, np.uint8)
    tp.save({"x": raw.view(dtype.numpy), "y": np.float32([1])}, path, metadata={"by": "me"})
    text = dict(safetensors.deserialize(path.read_bytes()))["x"]
    bits = [f"{element:0{dtype.bits}b}"[::-1] for element in raw.reshape(-1).tolist()]
    whole = "".join(bits)
    expected = [int(whole[at : at + 8][::-1], 2) for at in range(0, len(whole), 8)]
    assert list(text["data"]) == expected
    full = dtype.name in CODES and not raw.size % 2
    assert text["dtype"] == (CODES[dtype.name] if full else "U8")
    assert text["shape"] == (list(shape) if full else [len(expected)])
    result = tp.load(path)["x"]
    assert (result.dtype, result.shape) == (dtype, shape)
    np.testing.assert_array_equal(result.numpy().view(np.uint8), raw)
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
def test_dlpack_capsules_keep_all_bytes_of_float8(dtype):
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

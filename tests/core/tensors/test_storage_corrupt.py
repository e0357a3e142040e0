"""Files that are truncated, corrupt or hostile: one class of error, and nothing is executed."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import tensorplug as tp
from tensorplug.errors import DTypeError, FileFormatError

pytestmark = pytest.mark.usefixtures("sharing_engine")


def file_of(entries, data=b""):
    header = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + data


def entry(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


SOUND = file_of(
    {"x": entry("F32", [2], 0, 8), "y": entry("BOOL", [1], 8, 9)}, struct.pack("<2f?", 1, 2, True)
)


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


FILES = {
    "nothing": b"",
    "no header": struct.pack("<Q", 0),
    "a header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "a header of 2**64 bytes": b"\xff" * 100,
    "no JSON": file_of(b"{'x'}"),
    "no dict": file_of([1]),
    "not UTF-8": file_of(b'{"\xff":1}'),
    "nested a million times": file_of(b"[" * 1_000_000),
    "metadata that is no text": file_of({"__metadata__": {"a": 1}}),
    "an entry that is no entry": file_of({"x": 3}),
    "an unknown dtype": file_of({"x": entry("F99", [1], 0, 4)}, bytes(4)),
    "an entry beyond the data": file_of({"x": entry("F32", [4], 0, 16)}, bytes(4)),
    "an entry before the data": file_of({"x": entry("F32", [1], -4, 0)}, bytes(4)),
    "an entry backwards": file_of({"x": entry("F32", [1], 4, 0)}, bytes(4)),
    "a shape of another size": file_of({"x": entry("F32", [3], 0, 8)}, bytes(8)),
    "a negative shape": file_of({"x": entry("F32", [-2], 0, 8)}, bytes(8)),
    "a shape that overflows": file_of({"x": entry("F32", [2**62, 4], 0, 0)}),
    "a size beyond 64 bits": file_of({"x": entry("F32", [2**64], 0, 0)}),
    "a size beyond NumPy's, and none": file_of({"x": entry("F32", [0, 2**63], 0, 0)}),
    "the largest size, and none": file_of({"x": entry("F32", [0, 2**64 - 1], 0, 0)}),
    "too many dimensions": file_of({"x": entry("F32", [1] * 70, 0, 4)}, bytes(4)),
    "entries that overlap": file_of(
        {"x": entry("F32", [2], 0, 8), "y": entry("F32", [1], 4, 8)}, bytes(8)
    ),
    "a hole": file_of({"x": entry("F32", [1], 0, 4), "y": entry("F32", [1], 8, 12)}, bytes(12)),
    "one name twice": file_of(
        b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
        b'"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        bytes(8),
    ),
    "one name of many twice": file_of(
        "{{{},{}}}".format(
            ",".join(f'"{at}":{json.dumps(entry("F32", [0], 0, 0))}' for at in range(200_000)),
            f'"199999":{json.dumps(entry("F32", [0], 0, 0))}',
        ).encode()
    ),
    "numbers that Python does not print": file_of(
        {"x": entry("U8", [10**4300 - 1], 0, 10**4300 - 1)}
    ),
    "metadata that are false": file_of({"__metadata__": 0, "x": entry("F32", [0], 0, 0)}),
    "a long name": file_of({"x" * 10**6: entry("F32", [1], 0, 0)}),
    "a long shape": file_of({"x": entry("F32", [2] * 10**5, 0, 4)}, bytes(4)),
    "a long dtype": file_of({"x": entry("F" * 10**6, [1], 0, 4)}, bytes(4)),
    "packed bytes that are none": file_of(
        {"__metadata__": {"tensorplug.packed": json.dumps({"y" * 10**6: ["int4", [1]]})}}
    ),
    "more than the entries": SOUND + b"!",
    "bool that is neither": file_of({"x": entry("BOOL", [2], 0, 2)}, b"\x01\x02"),
    "an archive of NumPy's": b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'}" + bytes(200),
    "a zip": b"PK\x03\x04" + bytes(200),
}


def test_the_sound_one(path):
    path.write_bytes(SOUND)
    assert {name: x.tolist() for name, x in tp.load(path).items()} == {"x": [1, 2], "y": [True]}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_unsound(path, content):
    path.write_bytes(content)
    with pytest.raises(
        FileFormatError, match=r"model.safetensors is not a valid safetensors file: "
    ) as caught:
        tp.load(path)
    assert len(str(caught.value).removeprefix(f"load: {path}")) < 1000


@pytest.mark.parametrize("size", range(len(SOUND)))
def test_truncated(path, size):
    path.write_bytes(SOUND[:size])
    with pytest.raises(FileFormatError):
        tp.load(path)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_unpickled(path, tmp_path, protocol):
    mark = tmp_path / "executed"
    data = pickle.dumps(Bomb(mark), protocol)
    pickle.loads(data)
    assert mark.exists()  # so it would be seen
    mark.unlink()
    for content in (
        data,
        file_of(data),
        file_of({"x": entry("U8", [len(data)], 0, len(data))}, data),
    ):
        path.write_bytes(content)
        try:
            x = tp.load(path)["x"]
        except FileFormatError:
            continue
        assert bytes(x.numpy()) == data
    assert not mark.exists()


def test_any_byte_may_be_wrong(path):
    random = np.random.default_rng(7)
    outcomes = set()
    for at in range(len(SOUND)):
        for value in {0, 255, *random.integers(0, 256, 4).tolist()}:
            content = bytearray(SOUND)
            content[at] = value
            path.write_bytes(content)
            try:
                tp.load(path)
            except (FileFormatError, DTypeError) as error:
                outcomes.add(type(error))
            else:
                outcomes.add(None)
    assert {FileFormatError, None} <= outcomes


def test_names_not_asked_for_are_not_read(path):
    entries = {"x": entry("F32", [1], 0, 4), "y": entry("F32", [1] * 70, 4, 8)}
    path.write_bytes(file_of(entries, bytes(8)))
    assert tp.load(path, names=["x"])["x"].tolist() == [0]
    with pytest.raises(FileFormatError, match="'y'"):
        tp.load(path)


def test_unaligned_entries(path):
    data = b"\x01" + struct.pack("<d", 2.5)
    path.write_bytes(file_of({"a": entry("U8", [1], 0, 1), "x": entry("F64", [1], 1, 9)}, data))
    x = tp.load(path)["x"]
    assert (x.tolist(), x.numpy().flags.aligned) == ([2.5], True)
    assert safetensors.numpy.load_file(path)["x"].tolist() == [2.5]

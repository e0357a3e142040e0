"""The memory of a device: a limit, giving back, and the message when none is left."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from tests.opencl.conftest import require_device

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import BackendMemoryError, SettingsError
from tensorplug.testing import isolated_engine
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.memory import pool
from tensorplug_opencl.memory.pool import LIMIT, parse_limit

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("1", 1),
        ("1000", 1000),
        (" 512MiB ", 512 * MIB),
        ("512M", 512 * MIB),
        ("512 m", 512 * MIB),
        ("2GB", 2 * 10**9),
        ("1.5g", 3 * 512 * MIB),
        ("3KiB", 3072),
        ("1TiB", 1 << 40),
        ("7 b", 7),
        ("", None),
        (" ", None),
    ],
)
def test_limits(text, nbytes):
    assert parse_limit(text) == nbytes


@pytest.mark.parametrize("text", ["0", "-1", "much", "1 2", "5 XB", "1e9", "nan", "0.5", "M", "٣"])
def test_no_limits(text):
    if text == "٣":  # a digit, if not ours
        assert parse_limit(text) == 3
        return
    with pytest.raises(SettingsError, match=f"{LIMIT}={text!r}: must be"):
        parse_limit(text)


@pytest.fixture
def limited(monkeypatch):
    """Return a backend that may have 8 MiB."""
    require_device()
    monkeypatch.setenv(LIMIT, "8 MiB")
    opened = OpenCLBackend.open(None)
    yield opened
    opened.close()


def floats(count):
    return np.zeros(count, np.float32)


def test_the_limit_is_never_passed(limited):
    kept = [limited.from_host(floats(MIB // 4)) for _ in range(7)]
    with pytest.raises(BackendMemoryError, match=f"{LIMIT} allows 8,388,608 bytes") as caught:
        limited.from_host(floats(MIB // 2))
    assert "no room for 2,097,152 bytes" in str(caught.value)
    assert limited.memory()["active_bytes"] + limited.memory()["held_bytes"] <= 8 * MIB
    assert limited.memory()["limit_bytes"] == 8 * MIB
    assert [limited.to_host(buffer).size for buffer in kept] == [MIB // 4] * 7  # nothing is lost
    del kept[:3]
    again = limited.from_host(floats(MIB // 2))
    assert not limited.to_host(again).any()


def test_kept_pieces_make_room(monkeypatch, limited):
    """Pieces of another size are given back: they count against the limit too."""
    monkeypatch.setattr(limited.runtime.memory, "_wait", lambda: pytest.fail("it must not wait"))
    for count in (MIB, MIB // 2, MIB // 4):
        buffer = limited.from_host(floats(count))
        del buffer
    assert limited.memory()["held_bytes"] > 6 * MIB
    limited.from_host(floats(3 * MIB // 2))
    assert limited.memory()["held_bytes"] <= 8 * MIB


def test_the_limit_is_the_engine_s_too(monkeypatch):
    require_device()
    monkeypatch.setenv(LIMIT, "5MiB")
    with isolated_engine("opencl"):
        x = tp.ones((1 << 19,))
        with pytest.raises(BackendMemoryError, match="The largest tensors are float32"):
            tp.concat([x, x])
        y = x + 1.0
        assert y[0].item() == 2.0
    monkeypatch.setenv(LIMIT, "plenty")
    with pytest.raises(SettingsError, match=f"{LIMIT}='plenty'"), isolated_engine("opencl"):
        tp.ones(3)


def test_the_largest_holders_are_named(backend):
    large = [backend.from_host(floats((300, 100))) for _ in range(2)]
    whole = backend.from_host(floats((50, 100)))
    view = whole.view((10,), 5)
    small = [backend.from_host(np.zeros(number, np.int8)) for number in range(1, 8)]
    assert backend.runtime.memory.find_largest()[:3] == [
        "float32[300,100] (2 of 120,000 bytes)",
        "float32[50,100] (20,000 bytes)",
        "int8[7] (7 bytes)",
    ]
    room = 4 * backend.runtime.device.global_mem_size
    with pytest.raises(BackendMemoryError) as caught:
        backend.runtime.empty(TensorType(dt.uint8, (room,)))
    message = str(caught.value)
    assert f"no room for {room:,} bytes: tensors hold" in message
    assert "The largest tensors are float32[300,100] (2 of 120,000 bytes); float32[50" in message
    assert f"{backend.runtime.device.max_mem_alloc_size:,} in one piece" in message
    assert message.count("int8") == 3  # only five kinds are named
    assert [backend.to_host(buffer).any() for buffer in (*large, view, *small)] == [False] * 10


def test_tensors_of_other_devices_are_not_named(backend):
    other = OpenCLBackend.open(None)
    foreign = other.from_host(floats((77, 7)))
    assert not any("77" in line for line in backend.runtime.memory.find_largest())
    assert other.runtime.memory.find_largest() == ["float32[77,7] (2,156 bytes)"]
    assert foreign.memory is not None


def test_cycles_are_collected_before_it_gives_up(limited):
    gc.collect()
    cycle = [limited.from_host(floats(MIB))]
    cycle.append(cycle)
    del cycle
    buffer = limited.from_host(floats(3 * MIB // 2))
    assert not limited.to_host(buffer).any()


def test_trimming(backend):
    buffer = backend.from_host(floats(MIB))
    kept = backend.from_host(np.arange(5))
    assert backend.trim() == 0
    del buffer
    held = backend.memory()["held_bytes"]
    assert held >= 4 * MIB
    assert abs(backend.trim() - held) < 8  # the pool rounds pieces up
    assert backend.memory()["held_blocks"] == 0
    assert backend.to_host(kept).tolist() == [0, 1, 2, 3, 4]


def test_sizes_that_vary_leave_little_behind(monkeypatch, backend):
    monkeypatch.setattr(pool, "SPARE", 2 * MIB)
    largest = 0
    for power in range(16, 22):
        for sixteenth in range(16, 32):  # pieces of one size do not serve the others
            nbytes = (sixteenth << power) // 16
            backend.runtime.prepare_empty(TensorType(dt.uint8, (nbytes,)))()
            largest = max(largest, nbytes)
            assert backend.memory()["held_bytes"] <= 2 * MIB + 3 * largest


def test_trimming_from_the_facade():
    require_device()
    with isolated_engine("opencl"):
        (tp.ones((1 << 18,)) + 1.0).numpy()
        held = tp.memory()["opencl"].backend["held_bytes"]
        assert held >= MIB
        assert abs(tp.trim_memory("opencl") - held) < 8


@pytest.mark.parametrize(
    ("make", "nbytes"),
    [
        (lambda: tp.ones((33,), dtype="int16"), 66),
        (lambda: tp.ones((4,), dtype="complex64"), 32),
        (lambda: tp.ones((11,), dtype="int32")[3:5], 44),  # a view keeps all of its memory
        (lambda: tp.ones((5,), dtype="complex64") * 2j, 40),
        (lambda: tp.fft.rfft(tp.ones((9,), dtype="float32")), 40),
        (lambda: tp.fft.irfft(tp.ones((6,), dtype="complex64"), n=10), 40),
        (lambda: tp.ones((3, 3), dtype="complex64") @ tp.ones((3, 1), dtype="complex64"), 24),
        (lambda: tp.cumsum(tp.ones((7,), dtype="complex64")), 56),
    ],
    ids=["int16", "complex", "view", "product", "rfft", "irfft", "matrices", "sums"],
)
def test_memory_counts_the_bytes_that_tensors_need(make, nbytes):
    require_device()
    with isolated_engine("opencl"):
        make()  # with the constants and tables of its kernels
        before = tp.memory()["opencl"]
        kept = make()
        after = tp.memory()["opencl"]
        assert kept.size
        assert (after.tensors - before.tensors, after.bytes - before.bytes) == (1, nbytes)
        assert after.backend["active_bytes"] - before.backend["active_bytes"] == nbytes

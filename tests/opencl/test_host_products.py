"""Products by NumPy's BLAS in memory that the host shares, where the user asks for it."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import SettingsError
from tensorplug_opencl import settings
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.kernels import gemm, host_products, matrix_products

from .test_asynchrony import SPIN, TURNS, spun
from .test_gemm import matrix, numbers, product


@pytest.fixture
def multiplying(monkeypatch, backend):
    """Return a backend that uses BLAS, and the list of the products that BLAS computes."""
    if not backend.runtime.shares_memory:
        pytest.skip("the device shares no memory with the host")
    monkeypatch.setattr(backend.runtime, "uses_blas", True)
    made = []
    prepare = host_products._prepare
    monkeypatch.setattr(host_products, "_prepare", lambda *all_: made.append(1) or prepare(*all_))
    return backend, made


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("a", "b"), [((70, 65), (65, 90)), ((3, 64, 128), (128, 64)), ((2, 1, 80, 70), (3, 70, 64))]
)
def test_layouts(multiplying, dtype, turned, a, b):
    backend, made = multiplying
    if dt.of(dtype) not in backend.dtypes:
        pytest.skip(f"the device has no {dtype}")
    left, right = numbers(a, dtype, turned=turned[0]), numbers(b, dtype, turned=turned[1])
    found = product(backend, left, right, before=5)
    assert (found.dtype, len(made)) == (np.dtype(dtype), 1)
    np.testing.assert_array_equal(found, left.astype(float) @ right)


def test_an_epilogue(multiplying):
    backend, made = multiplying
    a, b, bias = numbers((128, 64)), numbers((64, 96)), numbers((96,))
    found = product(backend, a, b, bias=bias)
    assert made
    np.testing.assert_array_equal(found, a.astype(float) @ b + bias)


DENSE = np.zeros((64, 64), np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (DENSE[:63], DENSE),  # too small
        (DENSE.astype(np.int32), DENSE.astype(np.int32)),
        (np.zeros((1, 1 << 9), np.float32), np.zeros((1 << 9, 1 << 9), np.float32)),  # a vector
        (np.zeros((64, 128), np.float32)[:, ::2], DENSE),  # BLAS wants neighbours
        (np.broadcast_to(DENSE[0], (64, 64)), DENSE),  # and rows that do not overlap
        (
            np.zeros((8, 1 << 12), np.float32),
            np.zeros((1 << 12, 8), np.float32),
        ),  # C is not shared
    ],
    ids=["small", "int32", "vector", "strided", "repeated", "result"],
)
def test_what_the_device_computes(multiplying, a, b):
    backend, made = multiplying
    shape = (a.shape[0], b.shape[1])
    operands = [matrix(array, ()) for array in (a, b, np.zeros(shape, a.dtype))]
    of = gemm.Product(dt.of(a.dtype), (), *a.shape, shape[1], *operands, 1 << 20)
    assert host_products.make_multiplier(backend.runtime, of) is None
    assert not made


def test_it_follows_the_device_s_work_and_is_followed(multiplying):
    """The host multiplies what the device has still to write, in memory that it still uses."""
    backend, made = multiplying
    runtime = backend.runtime
    launch = runtime.launch(SPIN, 2, [np.int32(TURNS // 4)], 4)
    type_ = TensorType(dt.float32, (64, 64))
    options = {"transpose_a": False, "transpose_b": False, "backend": backend, "out": type_}
    multiply = matrix_products.batch_mat_mul(type_, type_, **options)
    x = backend.from_host(np.zeros((64, 64), np.int32))
    y = backend.from_host(np.full((64, 64), 3, np.int32))
    one = backend.from_host(np.eye(64, dtype=np.float32))
    launch(x, y)
    first = multiply(one, y.reinterpret(dt.float32, (64, 64)))
    second = multiply(first, one)
    last = backend.from_host(np.zeros((64, 64), np.int32))
    launch(x, last)
    assert len(made) == 1
    for found in (first, second):
        bits = backend.to_host(found).view(np.int32)
        tiny = np.array(spun(TURNS // 4)).view(np.float32)
        assert np.isfinite(tiny)
        assert (bits[0, :4] == tiny.view(np.int32)).all()
    assert (backend.to_host(last)[0, :4] == spun(TURNS // 4)).all()


def test_its_time_is_measured(multiplying):
    backend, _ = multiplying
    a = numbers((512, 512))
    end = backend.measure()
    product(backend, a, a)
    assert end() > 100_000  # 2 ** 28 operations take longer than that


def test_operands_in_other_memory(multiplying):
    """A table that a kernel multiplies by is not in the pool."""
    backend, made = multiplying
    a = numbers((64, 64))
    table = backend.runtime.upload_table(a)
    assert not table.is_shared
    type_ = TensorType(dt.float32, (64, 64))
    multiply = matrix_products.batch_mat_mul(
        type_, type_, transpose_a=False, transpose_b=False, backend=backend, out=type_
    )
    found = backend.to_host(multiply(table, backend.from_host(a)))
    assert made
    np.testing.assert_array_equal(found, a @ a)


@pytest.mark.parametrize(("value", "expected"), [("", False), ("0", False), (" 1 ", True)])
def test_the_setting(monkeypatch, target, value, expected):
    monkeypatch.setenv(settings.BLAS, value)
    assert settings.read_blas() is expected
    opened = OpenCLBackend(target)
    assert opened.runtime.uses_blas is (expected and opened.runtime.shares_memory)
    opened.close()


def test_other_values(monkeypatch):
    monkeypatch.setenv(settings.BLAS, "yes")
    with pytest.raises(SettingsError, match="TENSORPLUG_OPENCL_BLAS='yes': must be 1"):
        settings.read_blas()

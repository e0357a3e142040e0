"""Products in every possible way, on any device, against float64."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyopencl as cl
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import KernelRefusedError
from tensorplug.ops.matrix_products import BATCH_MAT_MUL
from tensorplug.ops.nn import fused
from tensorplug_opencl.codegen import layouts
from tensorplug_opencl.machine.limits import Limits
from tensorplug_opencl.products import gemm, panels, tiled_products
from tensorplug_opencl.products.gemm import Epilogue, Product
from tensorplug_opencl.products.matrices import Matrix

if TYPE_CHECKING:
    from tensorplug_opencl.memory.buffers import DeviceBuffer

WAYS = [*panels.SIZES, *tiled_products.TILES]
SMALL = [panels.SIZES[-1], tiled_products.TILES[-1]]  # built soonest


@pytest.fixture(scope="module")
def opened(context):
    return context.device.backend


def matrix(array: np.ndarray, batch: tuple[int, ...]) -> Matrix:
    """Return the layout of ``array``, a view of a dense one."""
    steps = [step // array.itemsize for step in array.strides]
    lead = len(batch) - (array.ndim - 2)
    own = [
        0 if length == 1 else step
        for length, step in zip(array.shape[:-2], steps[:-2], strict=True)
    ]
    return Matrix(steps[-2], steps[-1], (*(0 for _ in range(lead)), *own))


def on_device(opened, array: np.ndarray, before: int = 0) -> DeviceBuffer:
    """Return a buffer with the memory under ``array``, ``before`` elements from its start."""
    base = array if array.base is None else array.base
    padded = np.concatenate([np.full(before, 99, array.dtype), base.ravel()])
    whole = opened.from_host(padded)
    return whole.view((base.size,), before)


def product(opened, a, b, *, way=None, cut=None, before=0, bias=None):
    """Return the product of views of dense arrays, computed in a given way."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = (*shape, a.shape[-2], b.shape[-1])
    dtype = dt.of(a.dtype)
    target = layouts.row_major(out)
    epilogue, more = gemm.NO_EPILOGUE, []
    if bias is not None:
        epilogue = Epilogue("x + bias", (("bias", Matrix(0, 1, (0,) * len(shape))),))
        more = [opened.from_host(bias)]
    of = Product(
        dtype,
        shape,
        a.shape[-2],
        a.shape[-1],
        b.shape[-1],
        matrix(a, shape),
        matrix(b, shape),
        Matrix(target[-2], target[-1], target[:-2]),
        max(a.size, b.size, int(np.prod(out))),
        epilogue,
    )
    result = opened.runtime.empty(TensorType(dtype, out))
    multiply = gemm.make_multiplier(opened.runtime, of, way, cut)
    multiply(on_device(opened, a, before), on_device(opened, b, before), *more, result)
    return opened.to_host(result)


def numbers(shape, dtype="float32", *, turned=False):
    rng = np.random.default_rng(14)
    if not turned:
        return rng.integers(-9, 9, shape).astype(dtype)
    swapped = (*shape[:-2], shape[-1], shape[-2])
    return rng.integers(-9, 9, swapped).astype(dtype).swapaxes(-1, -2)


# Some drivers take seconds to build a way, so that each is tried with one of the two.
@pytest.mark.parametrize(
    ("way", "turned"), [(way, number % 2 == 1) for number, way in enumerate(WAYS)], ids=str
)
def test_every_way_with_sizes_that_nothing_divides(opened, way, turned):
    a, b = numbers((2, 35, 69), turned=turned), numbers((69, 133), turned=turned)
    try:
        actual = product(opened, a, b, way=way, cut=1, before=3)
    except KernelRefusedError as refused:
        if way in SMALL:
            raise
        pytest.skip(f"this device has not got what it takes: {refused}")
    np.testing.assert_array_equal(actual, a.astype(float) @ b)


@pytest.mark.parametrize("takes", [1, 2, 3])
def test_a_driver_that_takes_more_local_memory_than_declared(monkeypatch, opened, takes):
    """As rusticl does, which reports it after the build: smaller forms are tried."""
    runtime = opened.runtime
    real, refused = runtime.launch, []

    def greedy(source, *args, **options):
        launch = real(source, *args, **options)
        local = launch.kernel.get_work_group_info(
            cl.kernel_work_group_info.LOCAL_MEM_SIZE, runtime.device
        )
        if takes * local > 64 << 10:
            refused.append(local)
            raise KernelRefusedError(f"it takes {takes * local} bytes")
        return launch

    monkeypatch.setattr(runtime, "launch", greedy)
    a, b = numbers((200, 150)), numbers((150, 260))
    np.testing.assert_array_equal(product(opened, a, b), a.astype(float) @ b)
    assert refused == sorted(refused, reverse=True)
    assert bool(refused) == runtime.is_cpu


@pytest.mark.parametrize("way", SMALL, ids=str)
@pytest.mark.parametrize("cut", [1, 2, 7])
def test_slices_of_the_inner_axis_and_an_epilogue(opened, way, cut):
    a, b, bias = numbers((3, 130)), numbers((130, 40)), numbers((40,))
    actual = product(opened, a, b, way=way, cut=cut, bias=bias)
    np.testing.assert_array_equal(actual, a.astype(float) @ b + bias)


@pytest.mark.parametrize("way", SMALL, ids=str)
def test_few_columns_are_turned_with_their_epilogue(opened, way):
    a, b, bias = numbers((2, 50, 33)), numbers((2, 33, 3)), numbers((3,))
    actual = product(opened, a, b, way=way, cut=1, bias=bias)
    np.testing.assert_array_equal(actual, a.astype(float) @ b + bias)


@pytest.mark.parametrize("way", SMALL, ids=str)
def test_integers_wrap(opened, way):
    a, b = numbers((9, 40), "int8") * 10, numbers((40, 9), "int8") * 10
    with np.errstate(over="ignore"):
        expected = a @ b
    np.testing.assert_array_equal(product(opened, a, b, way=way, cut=2), expected)


@pytest.mark.parametrize("way", SMALL, ids=str)
@pytest.mark.parametrize("value", [0.1, 1 / 3])
@pytest.mark.parametrize("cut", [1, 3])
@pytest.mark.parametrize("columns", [5, 37])  # some; a whole panel, stored in vectors, and some
def test_long_sums_of_equal_terms_keep_their_digits(opened, way, value, cut, columns):
    length = 40_000
    a = np.full((2, length), value, np.float32)
    b = np.full((length, columns), value, np.float32)
    exact = float(a[0, 0]) * float(b[0, 0]) * length
    error = np.abs(product(opened, a, b, way=way, cut=cut) - exact).max()
    assert error <= np.finfo(np.float32).eps * np.log2(length) * exact


@pytest.mark.parametrize("way", SMALL, ids=str)
@pytest.mark.parametrize("columns", [2, 37])
def test_infinities_and_nan_in_long_sums(opened, way, columns):
    a, b = np.ones((4, 3000), np.float32), np.ones((3000, columns), np.float32)
    a[0, 5], a[1, 2000], a[2, 7], a[2, 2500] = np.inf, np.nan, np.inf, -np.inf
    actual = product(opened, a, b, way=way, cut=1)
    np.testing.assert_array_equal(
        actual, np.repeat([[np.inf], [np.nan], [np.nan], [3000]], columns, 1)
    )


@pytest.mark.parametrize(
    ("a", "b"), [((2, 1, 3, 4), (3, 4, 2)), ((3, 4), (2, 4, 2)), ((2, 3, 4), (1, 4, 2))]
)
def test_batches_broadcast(call, a, b):
    left, right = numbers(a), numbers(b)
    np.testing.assert_array_equal(call(BATCH_MAT_MUL, left, right), left @ right)


def test_large_tiles_where_the_device_has_room(opened):
    tiles = tiled_products.TILES[0]
    assert not tiled_products.fits(opened.runtime, dt.float32, tiles._replace(depth=1 << 20))
    assert not tiled_products.fits(opened.runtime, dt.float32, tiles._replace(high=1, wide=1))


def test_tiles_are_chosen_by_shape(opened):
    def best(rows, columns, batch=()):
        none = Matrix(0, 0, ())
        of = Product(dt.float32, batch, rows, 64, columns, none, none, none, 1)
        return tiled_products.list_suited(opened.runtime, of)[0]

    assert best(4096, 4096).rows == 128
    assert best(2, 4096).rows == 4
    assert best(64, 64, (512,)).rows <= 64


def test_bias_for_every_matrix_of_a_batch(call):
    a, b, bias, slope = numbers((2, 5, 3)), numbers((3, 4)), numbers((2, 5, 4)), numbers((4,))
    actual = call(fused.FUSED_MAT_MUL, a, b, bias, slope, activation="prelu")
    total = a @ b + bias
    np.testing.assert_array_equal(actual, np.where(total < 0, total * slope, total))


class Cores(NamedTuple):
    """A runtime of a processor: what choosing blocks asks of it."""

    device: Any
    lanes: dict[str, int]
    limits: Limits = Limits()


@pytest.mark.parametrize(
    ("sizes", "by_rows", "memory", "expected"),
    [
        # Panels of 6 rows and 32 columns. A is read in place, so that blocks are tall.
        ((64, 784, 256), True, 1 << 18, (11, 1)),
        ((512, 512, 512), True, 1 << 18, (43, 1)),
        ((1024, 128, 512), False, 1 << 18, (57, 2)),  # B lies by columns: it takes longest
        ((1024, 128, 512), True, 1 << 16, (4, 2)),
        ((6, 1000, 32), True, 1 << 18, (1, 1)),
        ((6, 1000, 4096), True, 1 << 18, (1, 4)),
    ],
)
def test_blocks_are_as_large_as_two_cores_allow(sizes, by_rows, memory, expected):
    widths = {f"native_vector_width_{kind}": 16 for kind in ("float", "double", "int", "long")}
    device = SimpleNamespace(max_compute_units=2, local_mem_size=memory, **widths)
    rows, inner, columns = sizes
    b = Matrix(columns, 1, ()) if by_rows else Matrix(1, inner, ())
    of = Product(
        dt.float32, (), *sizes, Matrix(inner, 1, ()), b, Matrix(columns, 1, ()), rows * columns
    )
    runtime = Cores(device, {})
    fitting = panels.list_suited(runtime, of)
    blocks = panels._rate_blocks(runtime, of)
    assert panels._choose_block(blocks, fitting[0])[1:] == expected
    assert fitting[-1] == panels.Panels(1, 1)

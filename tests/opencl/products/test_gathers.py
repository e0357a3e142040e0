"""Operands that are gathered from images: their digits, and products of them."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug_opencl.codegen import layouts
from tensorplug_opencl.products import gathers, gemm, panels, product_texts, tiled_products
from tensorplug_opencl.products.gathers import Bound, Digit, Gathered, gather
from tensorplug_opencl.products.matrices import Matrix
from tensorplug_opencl.products.product_texts import Product
from tensorplug_opencl.products.tiled_products import Tiles
from tensorplug_opencl.windows import implicit
from tensorplug_opencl.windows.sliding import Convolution

SMALL = [panels.SIZES[-1], tiled_products.TILES[-1]]  # built soonest


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 7, 16, 641, 65_537, 2**30 + 3, 2**31 - 1])
def test_magic_numbers_divide(bits, divisor):
    factor, shift = gathers.find_magic(divisor, bits)
    assert 0 <= factor < 2**bits
    assert 0 <= shift < bits
    near = [times * divisor + off for times in (0, 1, 2, 1000) for off in (-1, 0, 1)]
    most = 2 ** (bits - 1) - 1
    for number in [*range(200), most - 1, most, most // divisor * divisor - 1, *near]:
        if 0 <= number <= most:
            assert (number + (number * factor >> bits)) >> shift == number // divisor


def test_gathers_that_never_lie_outside_are_matrices():
    rows = [Digit(3, 40), Digit(4, 10, 0, 1), Digit(5, 2, 1, 1)]
    columns = [Digit(2, 1, 1, 1)]
    bounds = [Bound(0, 4), Bound(0, 6)]
    assert gather(rows, columns, 0, bounds) == Matrix(2, 1, ())
    actual = gather(rows, columns, 0, bounds, simplified=False)
    assert actual == Gathered(tuple(rows), tuple(columns), 0, tuple(bounds))
    for low, size in ((-1, 6), (0, 5)):
        actual = gather(rows, columns, 0, [bounds[0], Bound(low, size)])
        assert isinstance(actual, Gathered)
        assert actual.rows == tuple(rows)


def test_neighbours_that_do_not_continue_stay_digits():
    actual = gather([Digit(3, 100), Digit(1, 7), Digit(4, 10), Digit(2, 5)], [Digit(5, 1)], 3)
    assert actual == Gathered((Digit(3, 100), Digit(8, 5)), (Digit(5, 1),), 3, ())


@pytest.mark.parametrize(
    ("rows", "columns", "by_rows"),
    [
        ([Digit(64, 64)], [Digit(9, 640), Digit(64, 1)], True),
        ([Digit(2, 4096), Digit(64, 1)], [Digit(9, 64)], False),
        ([Digit(28, 3)], [Digit(3, 84), Digit(3, 3), Digit(3, 1)], True),
    ],
)
def test_neighbours_are_those_on_the_same_lines_of_memory(rows, columns, by_rows):
    operand = Gathered(tuple(rows), tuple(columns), 0, ())
    assert operand.by_rows is by_rows
    assert operand.turned.by_rows is not by_rows


@pytest.fixture
def opened(context):
    return context.device.backend


# Some drivers take a second for each program, so not every combination is tried.
@pytest.mark.parametrize("way", SMALL, ids=str)
@pytest.mark.parametrize(("bits", "cut", "turned"), [(32, 1, False), (64, 3, True)])
def test_products_with_all_three_gathered(opened, monkeypatch, way, bits, cut, turned):
    """x in windows of 2 from one place before it on, y from its end, into every third place."""
    if bits == 64:
        monkeypatch.setattr(layouts, "NARROW_LIMIT", 0)
    rng = np.random.default_rng(15)
    x, y = (rng.integers(-9, 9, size).astype(np.float32) for size in (12, 9 * 7))
    wide = np.concatenate([[0], x, [0]])
    left = np.array([[wide[row + tap] for tap in range(9)] for row in range(6)])
    right = y[::-1].reshape(9, 7)
    expected = np.full((7, 22), 77.0)
    expected[:, 3:21:3] = (left @ right).T
    of = Product(
        dt.float32,
        (),
        6,
        9,
        7,
        gather([Digit(6, 1, 0, 1)], [Digit(3, 3, 0, 3), Digit(3, 1, 0, 1)], -1, [Bound(-1, 12)]),
        gather([Digit(3, -21), Digit(3, -7)], [Digit(7, -1)], 9 * 7 - 1, simplified=False),
        gather([Digit(6, 3)], [Digit(7, 22)], 3, simplified=False),
        7 * 22,
    )
    result = opened.from_host(np.full((7, 22), 77, np.float32))
    arrays = opened.from_host(x), opened.from_host(y)
    if turned:
        of, arrays = of.turned, arrays[::-1]
    gemm.make_multiplier(opened.runtime, of, way, cut)(*arrays, result)
    np.testing.assert_array_equal(opened.to_host(result), expected)


def test_arguments_of_the_largest_products_fit(opened):
    """OpenCL guarantees 1024 bytes: three axes with strides, channels first, 64-bit indices."""
    attributes = {
        "strides": (2, 2, 2),
        "dilations": (1, 1, 1),
        "pad": "same",
        "data_format": "NCDHW",
        "dim_rounding_mode": None,
    }
    shapes = (2, 8, 9, 9, 9), (3, 3, 3, 8, 6), (2, 6, 5, 5, 5)
    of = Convolution.of(opened, dt.float32, shapes, attributes)
    more = dict.fromkeys(("blocks_down", "blocks_across", "down", "across"), 1)  # of panels
    product = implicit.make_product(of)
    constants = product_texts.list_constants(product, np.dtype(np.uint64), more)
    pointers_and_offsets = 3 * 2 * 8
    assert sum(constant.nbytes for constant in constants) + pointers_and_offsets <= 1024


def test_tiles_of_many_elements(opened):
    """Work-items each bring multiple elements, which share their row or their column."""
    rng = np.random.default_rng(16)
    x = rng.integers(-9, 9, (2, 9, 11, 5)).astype(np.float32)
    dy = rng.integers(-9, 9, (2, 9, 11, 37)).astype(np.float32)
    attributes = {"strides": (1, 1), "dilations": (1, 1), "pad": "same", "data_format": "NHWC"}
    of = Convolution.of(
        opened,
        dt.float32,
        (x.shape, (3, 3, 5, 37), dy.shape),
        {**attributes, "dim_rounding_mode": None},
    )
    product = implicit.make_product(of)
    result = opened.runtime.empty(TensorType(dt.float32, of.filter))
    multiply = gemm.make_multiplier(opened.runtime, product, Tiles(16, 16, 8, 2, 4), 1)
    multiply(opened.from_host(x), opened.from_host(dy), result)
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2))
    expected = np.einsum("nhwcij,nhwo->ijco", windows, dy)
    np.testing.assert_array_equal(opened.to_host(result), expected)

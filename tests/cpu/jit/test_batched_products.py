"""Stacks of products by native loops, and grouped convolutions of programs, which become such."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.jit.codegen import functions
from tensorplug_cpu.jit.families import batched_products
from tensorplug_cpu.jit.loops import calls

pytest.importorskip("llvmlite")

# the first axes; rows, inner, columns
PRODUCTS = [
    ((4,), 49, 6, 28),
    ((3,), 17, 5, 7),  # fewer columns than lanes
    ((2,), 1, 3, 1),
    ((2, 3), 26, 34, 34),  # a short vector at the end
    ((1, 4), 100, 11, 68),
    ((5, 1), 25, 40, 136),
    ((2,), 30, 512, 83),  # five vectors, and part of one
    ((7,), 64, 2, 96),
]
DTYPES = ["float32", "float64"]
RNG = np.random.default_rng(21)


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """On the CPU, for any size, in as many blocks as there may be."""
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "always")
    monkeypatch.setattr(batched_products, "_PRODUCTS", 1)
    with tp.use_backend("cpu"):
        yield


def numbers(shape, dtype):
    """Return multiples of 1/8, whose sums of products are exact."""
    return (np.random.default_rng(len(shape)).integers(-8, 9, shape) / 8).astype(dtype)


def turns(stack):
    """Return the permutation that puts rows before the last axis of several matrices, and back."""
    axis = max(axis for axis, length in enumerate(stack) if length > 1)
    rank = len(stack) + 2
    to_rows = (*range(axis), rank - 2, *range(axis, rank - 2), rank - 1)
    return to_rows, tuple(np.argsort(to_rows))


def same(found, expected, dtype):
    assert (found.shape, found.dtype) == (expected.shape, dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("stack", "rows", "inner", "columns"), PRODUCTS)
def test_products(stack, rows, inner, columns, dtype):
    a, b = numbers((*stack, rows, inner), dtype), numbers((*stack, inner, columns), dtype)
    expected = np.einsum("...ij,...jk->...ik", a.astype("f8"), b.astype("f8"))
    run = batched_products.batched_product(a.shape, b.shape, a.dtype, transpose_b=False)
    same(run(a, b), expected, dtype)
    same(run(a, np.asfortranarray(b)), expected, dtype)
    same(run(np.repeat(a, 2, axis=-1)[..., ::2], b), expected, dtype)
    turned = np.ascontiguousarray(b.swapaxes(-1, -2))
    other = batched_products.batched_product(a.shape, turned.shape, a.dtype, transpose_b=True)
    same(other(a, turned), expected, dtype)
    # The rows of the groups of an image lie in turn; so do those of the result.
    to_rows, back = turns(stack)
    apart = np.ascontiguousarray(a.transpose(to_rows)).transpose(back)
    found = run(apart, b)
    same(found, expected, dtype)
    assert found.transpose(to_rows).flags.c_contiguous


@pytest.mark.parametrize("epilogue", ["linear", "relu", "relu6", "slope"])
@pytest.mark.parametrize("columns", [3, 37, 64])
def test_endings(columns, epilogue):
    a, b = numbers((2, 3, 19, 40), "f4"), numbers((2, 3, 40, columns), "f4")
    a[0, 1, 2, 3] = np.nan
    bias, slope = numbers((2, 3, 1, columns), "f4"), numbers((columns,), "f4")
    run = batched_products.batched_product(a.shape, b.shape, a.dtype, transpose_b=False)
    plain = np.einsum("...ij,...jk->...ik", a.astype("f8"), b.astype("f8")) + bias
    assert np.isnan(plain).any()
    assert (plain < 0).any()
    assert (plain > 6).any()
    expected = {
        "linear": plain,
        "relu": np.maximum(plain, 0),
        "relu6": np.clip(plain, 0, 6),
        "slope": np.where(plain < 0, (plain * slope).astype("f4"), plain),
    }[epilogue]
    same(run(a, b, bias, slope, epilogue), expected, np.float32)


@pytest.mark.parametrize("columns", range(1, 150))
def test_panels_cover_every_column_once(columns):
    panels = batched_products.cut(4, 11, columns)
    assert [panel.first for panel in panels] == [0, *(panel.stop for panel in panels[:-1])]
    assert panels[-1].stop == columns
    for panel in panels:
        assert 1 <= panel.height <= 11
        assert panel.vectors <= 3
        assert -(-(panel.stop - panel.first) // panel.lanes) % panel.vectors == 0


@pytest.mark.parametrize("width", [16, 32, 64])
def test_vectors_of_every_width(monkeypatch, width):
    """What is written for other processors is right too."""
    monkeypatch.setattr(functions, "vector_bytes", lambda: width)
    test_products((2, 3), 26, 34, 34, "float32")
    test_products((3,), 17, 5, 7, "float64")


@pytest.mark.parametrize("columns", [16, 32, 48])
@pytest.mark.parametrize("width", [16, 32, 64])
def test_lower_tiles_cover_all_rows(monkeypatch, width, columns):
    monkeypatch.setattr(functions, "vector_bytes", lambda: width)
    lower = set()
    for rows in range(1, 60):
        panels = batched_products.cut(4, rows, columns, whole=True)
        for panel in panels:
            count = -(-rows // panel.height)
            assert panel.lower == (count * panel.height > rows)
            assert rows - count * (panel.height - 1) >= 0
            lower.add(panel.lower)
    assert lower == {False, True}
    for rows in (17, 19, 23, 32):
        test_products((3,), rows, 9, columns, "float32")


def test_inner_sizes_and_stacks_share_code():
    known = set()
    for count, inner in ((3, 9), (5, 10), (2, 64)):
        a, b = numbers((count, 20, inner), "f4"), numbers((count, inner, 32), "f4")
        run = batched_products.batched_product(a.shape, b.shape, a.dtype, transpose_b=False)
        same(run(a, b), np.einsum("ijk,ikl->ijl", a.astype("f8"), b.astype("f8")), np.float32)
        known.add(batched_products.batched_function.cache_info().currsize)
    assert len(known) == 1


def test_the_same_bits_in_any_number_of_threads(monkeypatch):
    a, b = (RNG.standard_normal(shape, "f4") for shape in ((4, 300, 50), (4, 50, 70)))
    results = []
    for least in (1, 1 << 60):
        monkeypatch.setattr(calls, "_SHARED", least)
        run = batched_products.batched_product(a.shape, b.shape, a.dtype, transpose_b=False)
        results.append(run(a, b))
    np.testing.assert_array_equal(*results)


DECLINED = {
    "one product": ((1, 64, 64), (1, 64, 64), "float32"),
    "one matrix": ((4, 64, 64), (64, 64), "float32"),
    "matrices of several products": ((4, 64, 64), (1, 64, 64), "float32"),
    "many terms": ((4, 64, 513), (4, 513, 64), "float32"),
    "many columns": ((4, 64, 64), (4, 64, 513), "float32"),
    "integers": ((4, 64, 64), (4, 64, 64), "int32"),
    "nothing": ((4, 0, 64), (4, 64, 64), "float32"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_what_blas_does(name):
    a, b, dtype = DECLINED[name]
    assert batched_products.batched_product(a, b, np.dtype(dtype), transpose_b=False) is None


def test_small_products_stay_with_blas(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "1")
    large, small = (4, 64, 64), (4, 32, 32)
    for shape in (large, small):
        found = batched_products.batched_product(
            shape, shape, np.dtype("float32"), transpose_b=False
        )
        assert (found is None) == (shape == small)


CLOSE = {"float16": 2e-3, "float32": 2e-6, "float64": 2e-15}
ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),  # by NumPy
    "leakyrelu": lambda x: np.where(x < 0, 0.25 * x, x),
}


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_fused_kernel(activation, dtype):
    """A bias for each product of a stack, bound or not: the same bits."""
    a, b, bias = (
        (RNG.standard_normal(shape) / 4).astype(dtype)
        for shape in ((4, 30, 24), (4, 24, 40), (4, 1, 40))
    )
    wide = [x.astype("f8") for x in (a, b, bias)]
    expected = ACTIVATIONS[activation](np.einsum("nij,njk->nik", *wide[:2]) + wide[2])

    def f(x, *others):
        matrices, bias = others
        return tp.nn.fused_matmul(
            x, matrices, bias=bias, activation=activation, leakyrelu_alpha=0.25
        )

    tensors = [tp.asarray(x) for x in (a, b, bias)]
    found = f(*tensors)
    assert (found.shape, str(found.dtype)) == (expected.shape, dtype)
    bound = CLOSE[dtype] * 8
    np.testing.assert_allclose(found.numpy(), expected, rtol=bound, atol=bound)
    constant = tp.compile(lambda x: f(x, *tensors[1:]))
    for _ in range(2):
        np.testing.assert_array_equal(constant(tensors[0]).numpy(), found.numpy())


def grouped(x, filter, groups, stride, dilation, pad):
    """Return a convolution [N,H,W,C] in float64, by a loop over groups, places and taps."""
    x, filter = x.astype("f8"), filter.astype("f8")
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    height, width, own, filters = filter.shape
    sizes = [
        (length - (taps - 1) * dilation - 1) // stride + 1
        for length, taps in zip(x.shape[1:3], (height, width), strict=True)
    ]
    result = np.zeros((len(x), *sizes, filters))
    each = filters // groups
    for group in range(groups):
        channels, outputs = (slice(group * count, (group + 1) * count) for count in (own, each))
        for i in range(height):
            for j in range(width):
                first, last = (
                    slice(at * dilation, at * dilation + (size - 1) * stride + 1, stride)
                    for at, size in zip((i, j), sizes, strict=True)
                )
                pixels = x[:, first, last, channels]
                taps = filter[i, j, :, outputs]
                result[..., outputs] += np.einsum("nhwc,cf->nhwf", pixels, taps)
    return result


# images, height, width, channels; groups; filters; taps; stride, dilation, padding
CONVOLUTIONS = {
    "two groups": ((1, 7, 7), 6, 2, 8, 1, 1, 1, 0),
    "odd sizes": ((2, 9, 5), 15, 3, 21, 1, 1, 1, 0),
    "groups of two": ((1, 8, 6), 16, 8, 24, 1, 1, 1, 0),
    "fewer filters": ((3, 6, 7), 32, 4, 4, 1, 1, 1, 0),
    "one group": ((1, 7, 7), 6, 1, 8, 1, 1, 1, 0),
    "one channel each": ((1, 7, 7), 6, 6, 12, 1, 1, 1, 0),
    "stride": ((2, 9, 9), 8, 2, 12, 1, 2, 1, 0),
    "padding": ((1, 5, 5), 8, 4, 8, 1, 1, 1, 1),
    "three taps": ((2, 9, 8), 12, 3, 18, 3, 1, 1, 1),
    "dilated": ((1, 11, 10), 12, 2, 10, 3, 2, 2, 2),
}


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("end", ["nothing", "bias", "relu", "residual"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_grouped_convolutions_of_programs(name, end, data_format):
    size, channels, groups, filters, taps, stride, dilation, pad = CONVOLUTIONS[name]
    x = RNG.standard_normal((*size, channels), "f4")
    filter = RNG.standard_normal((taps, taps, channels // groups, filters), "f4")
    bias = RNG.standard_normal(filters, "f4")
    expected = grouped(x, filter, groups, stride, dilation, pad)
    residual = RNG.standard_normal(expected.shape, "f4")
    first = data_format == "NCHW"
    place = (lambda y: np.moveaxis(y, -1, 1)) if first else (lambda y: y)
    constants = [tp.asarray(each) for each in (filter, bias)]

    def f(image, other):
        y = tp.nn.conv2d(
            image,
            constants[0],
            stride,
            pad,
            dilations=dilation,
            groups=groups,
            data_format=data_format,
        )
        if end == "nothing":
            return y
        row = tp.reshape(constants[1], (-1, 1, 1)) if first else constants[1]
        y = y + row
        if end == "residual":
            y = y + other
        return y if end == "bias" else tp.nn.relu(y)

    if end != "nothing":
        expected = expected + bias
    if end == "residual":
        expected = expected + residual
    if end in {"relu", "residual"}:
        expected = np.maximum(expected, 0)
    given = [tp.asarray(np.ascontiguousarray(place(each))) for each in (x, residual)]
    expected = place(expected)
    program = tp.compile(f)
    for found in (program(*given), program(*given), f(*given)):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(program(*given).numpy(), program(*given).numpy())


def test_a_bias_moves_into_the_products_of_groups():
    """Between them are Transposes and Reshapes, in either order of channels."""
    x, filter, bias = (
        tp.asarray(RNG.standard_normal(shape, "f4"))
        for shape in ((1, 9, 9, 16), (1, 1, 4, 24), 24)
    )

    def kernels(f):
        text = repr(tp.compile(f).program(x))
        words = ["_FusedMatMul", "BatchMatMul", "Add", "Relu"]
        return [text.count(f" = {word}(") for word in words]

    def convolved(x):
        return tp.nn.conv2d(x, filter, groups=4)

    assert kernels(lambda x: convolved(x) + bias) == [1, 0, 0, 0]
    assert kernels(lambda x: tp.nn.relu(bias + convolved(x))) == [1, 0, 0, 0]
    # The elementwise calls behind it keep what is not constant, and need no bias any more.
    wide = tp.concat([x, x[..., :8]], axis=-1)
    assert kernels(lambda x: tp.nn.relu(convolved(x) + bias + wide)) == [1, 0, 1, 1]
    # What differs from row to row, or is used elsewhere too, stays where it is.
    assert kernels(lambda x: convolved(x) + wide) == [0, 1, 1, 0]
    assert kernels(lambda x: tp.nn.relu(convolved(x))) == [0, 1, 0, 1]

    def twice(x):
        y = convolved(x)
        return y + bias, y

    assert kernels(twice) == [0, 1, 1, 0]


def test_gradients_do_not_change():
    x, filter, bias = (
        tp.asarray(RNG.standard_normal(shape)) for shape in ((1, 5, 4, 6), (1, 1, 3, 4), 4)
    )

    def loss(x):
        return tp.sum(tp.nn.relu(tp.nn.conv2d(x, filter, groups=2) + bias) ** 2)

    right = tp.grad(loss)(x).numpy()
    y = grouped(x.numpy(), filter.numpy(), 2, 1, 1, 0) + bias.numpy()
    upstream = 2 * np.maximum(y, 0)
    taps = filter.numpy()[0, 0]
    expected = np.concatenate(
        [upstream[..., 2 * g : 2 * g + 2] @ taps[:, 2 * g : 2 * g + 2].T for g in range(2)], -1
    )
    for found in (
        right,
        tp.compile(tp.grad(loss))(x).numpy(),
        tp.grad(tp.compile(loss))(x).numpy(),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)

"""Products in tiles, by C, LLVM and OpenCL's drivers, against the interpreter."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, TensorType, groups
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops import native
from tensorplug_loops.dialects import c
from tensorplug_loops.schedule import plan
from tensorplug_loops.statements import Barrier, Let, Shared, inside

from . import by_llvm

pytestmark = pytest.mark.usefixtures("compiled_quickly")
GPU = replace(c.MACHINE, neighbours=True, group_size=256, cores=4, shared_bytes=1 << 15)
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 64, 97]
DTYPES = [dt.float32, dt.float32, dt.float64, dt.float16, dt.int32, dt.int8, dt.uint16]


def in_standard_c(group):
    return native.compile_group(group, machine=c.MACHINE)


def wide(group):
    return by_llvm.compile_group(group, vector_bytes=64)


def by_groups(group):
    return native.compile_group(group, machine=GPU)


def by_small_groups(group):
    return native.compile_group(group, machine=replace(GPU, group_size=64))


COMPILERS = {
    "C": native.compile_group,
    "standard C": in_standard_c,
    "C, as on GPUs": by_groups,
    "C, as on GPUs of small groups": by_small_groups,
    "LLVM": by_llvm.compile_group,
    "LLVM, wide": wide,
}
each_compiler = pytest.mark.parametrize("compile_group", COMPILERS.values(), ids=COMPILERS)


class Draft:
    """A product that is being made, of a ``random.Random``."""

    def __init__(self, random):
        self.random, self.numbers = random, np.random.default_rng(random.randrange(1 << 30))
        self.dtype = random.choice(DTYPES)
        self.inputs, self.arrays = [], []
        kinds = ["batch"] * random.choice([0, 0, 1, 2])
        kinds += ["rows"] * random.choice([1, 1, 1, 2]) + ["columns"] * random.choice([1, 1, 1, 2])
        random.shuffle(kinds)
        kinds += ["inner"] * random.choice([1, 1, 2, 3])
        self.kinds = kinds
        self.shape = [random.choice(LENGTHS[: 5 if len(kinds) > 4 else None]) for _ in kinds]
        if random.random() < 0.2:  # several blocks
            self.shape[-1] = random.choice([511, 700, 1100])

    def array(self, dtype, shape):
        low = 0 if dtype in dt.UNSIGNED else -4
        return self.numbers.integers(low, 5, shape).astype(dtype.numpy)

    def along(self, spans):
        return tuple(n for n, spanned in zip(self.shape, spans, strict=True) if spanned)

    def factor(self, kind):
        """Return an expression that varies along the axes of a kind: of the dtype."""
        random, rank = self.random, len(self.shape)
        axes = [at for at, each in enumerate(self.kinds) if each in {kind, "batch", "inner"}]
        random.shuffle(axes) if random.random() < 0.5 else None
        own = self.dtype
        if own in {dt.int32, dt.float32} and random.random() < 0.3:
            own = {dt.int32: dt.int8, dt.float32: dt.float16}[own]
        index, buffer, outside = [], [], None
        for axis in axes:
            if random.random() < 0.15:  # a window, or a slice
                step, at = random.choice([1, 1, 2, -1]), random.randint(0, 2)
                ends = sorted([at, at + step * (self.shape[axis] - 1)])
                shift = -min(0, ends[0])
                index.append(ex.axis(axis) * step + (at + shift))
                buffer.append(ends[1] + shift + 1)
            else:
                index.append(ex.axis(axis))
                buffer.append(self.shape[axis])
        if len(axes) > 1 and random.random() < 0.2:  # two axes together, with padding
            index[:2] = [index[0] + index[1] - 1]
            buffer[:2] = [max(1, buffer[0] + buffer[1] - 3)]
            outside = 0
        type_ = TensorType(own, tuple(buffer))
        if random.random() < 0.15:  # a gather along the first axis
            rows = buffer[0]
            whole = tuple(at == axes[0] for at in range(rank))
            if outside is None and isinstance(index[0].value, int) and index[0].op == "axis":
                ids = GroupInput(TensorType(dt.int64, (self.shape[axes[0]],)), whole)
                self.inputs.append(ids)
                self.arrays.append(self.numbers.integers(0, rows, self.shape[axes[0]]))
                index[0] = ex.parameter(len(self.inputs) - 1, dt.int64)
        operand = groups.mapped(
            type_, index, tuple(self.shape), tuple(self.inputs), outside=outside
        )
        self.inputs.append(operand)
        self.arrays.append(self.array(own, type_.shape))
        value = ex.cast(ex.parameter(len(self.inputs) - 1, own), self.dtype)
        if random.random() < 0.2:
            value = value * 2 + 1
        return value

    def group(self):
        random, kinds = self.random, self.kinds
        left, right = self.factor("rows"), self.factor("columns")
        if random.random() < 0.3:
            left, right = right, left
        kept = tuple(kind != "inner" for kind in kinds)
        axes = tuple(not each for each in kept)
        type_ = TensorType(
            self.dtype, tuple(n for n, k in zip(self.shape, kept, strict=True) if k)
        )
        bias = None
        if random.random() < 0.4:
            spans = tuple(each and random.random() < 0.5 for each in kept)
            shape = self.along(spans)
            bias = len(self.inputs)
            self.inputs.append(GroupInput(TensorType(self.dtype, shape), spans))
            self.arrays.append(self.array(self.dtype, shape))
        value = ex.parameter(len(self.inputs), self.dtype)
        outputs = [value]
        if bias is not None:
            total = value + ex.parameter(bias, self.dtype)
            outputs = [ex.where(total < 0, ex.constant(0, self.dtype), total)]
        if random.random() < 0.2:
            outputs.append(value * 2)
        return Group(
            "product",
            tuple(self.shape),
            tuple(self.inputs),
            (Reduction("sum", left * right, axes),),
            tuple(GroupOutput(each, type_, kept) for each in outputs),
        )


def is_in_tiles(group, machine):
    return any(
        "columns" in {n.name for n in each.kernel.numbers}
        for each in plan(group, machine).launches
    )


def assert_same(found, wanted):
    for own, other in zip(found, wanted, strict=True):
        assert (own.dtype, own.shape) == (other.dtype, other.shape)
        if own.dtype.kind in "iu":
            np.testing.assert_array_equal(own, other)
        else:
            # Sums of whole numbers: exact, but for a narrow float, which the interpreter rounds.
            rtol = 1e-2 if own.itemsize == 2 else 1e-6
            np.testing.assert_allclose(own, other, rtol=rtol, atol=1e-6)


@each_compiler
@given(st.integers(0, 1 << 40))
@example(31005)  # a window that reaches beyond its array along the axis of vectors
@settings(max_examples=15, deadline=None)
def test_random_products(compile_group, seed):
    draft = Draft(random.Random(seed))
    group = draft.group()
    with np.errstate(all="ignore"):
        wanted = interpreter(group)(*draft.arrays)
    assert_same(compile_group(group)(*draft.arrays), wanted)


def matmul(m, n, k, dtype=dt.float32):
    a = GroupInput(TensorType(dtype, (m, k)), (True, False, True))
    b = groups.mapped(TensorType(dtype, (k, n)), [ex.axis(2), ex.axis(1)], (m, n, k))
    total = Reduction("sum", ex.parameter(0, dtype) * ex.parameter(1, dtype), (False, False, True))
    out = GroupOutput(ex.parameter(2, dtype), TensorType(dtype, (m, n)), (True, True, False))
    return Group("matmul", (m, n, k), (a, b), (total,), (out,))


@each_compiler
@pytest.mark.parametrize("shape", [(0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 40, 9), (40, 1, 9)])
def test_no_rows_and_few(compile_group, shape):
    group = matmul(*shape)
    arrays = [np.ones(each.type.shape, np.float32) for each in group.inputs]
    assert_same(compile_group(group)(*arrays), interpreter(group)(*arrays))


WINDOWS = [  # images, channels, filters; sizes of image and window; stride, dilation, pad
    ((2, 5, 32), (7, 9), (3, 2), 1, 1, 1),
    ((3, 1, 7), (8, 8), (3, 3), 1, 2, 3),
    ((1, 14, 40), (9, 6), (2, 3), 3, 1, 2),
    ((2, 16, 16), (1, 17), (1, 5), 2, 3, 6),
    ((5, 3, 16), (12, 21), (3, 3), 1, 1, 1),  # items share the sums
]


def gradient_of_filter(counts, size, window, stride, dilation, pad):
    batch, channels, filters = counts
    places = [
        (n + 2 * pad - dilation * (k - 1) - 1) // stride + 1
        for n, k in zip(size, window, strict=True)
    ]
    shape = (*window, channels, filters, batch, *places)
    kh, kw, channel, filter, image, row, column = map(ex.axis, range(7))
    index = [image, row * stride + kh * dilation - pad, column * stride + kw * dilation - pad]
    x = TensorType(dt.float32, (batch, *size, channels))
    dy = TensorType(dt.float32, (batch, *places, filters))
    inputs = (
        groups.mapped(x, [*index, channel], shape, outside=0),
        groups.mapped(dy, [image, row, column, filter], shape),
    )
    value = ex.parameter(0, dt.float32) * ex.parameter(1, dt.float32)
    kept = (True,) * 4 + (False,) * 3
    out = GroupOutput(ex.parameter(2, dt.float32), TensorType(dt.float32, shape[:4]), kept)
    total = Reduction("sum", value, tuple(not each for each in kept))
    return Group("gradient of a filter", shape, inputs, (total,), (out,))


@each_compiler
@pytest.mark.parametrize("case", WINDOWS)
def test_windows_are_read_where_they_lie(compile_group, case):
    group = gradient_of_filter(*case)
    rng = np.random.default_rng(2)
    arrays = [rng.integers(-4, 5, each.type.shape).astype(np.float32) for each in group.inputs]
    assert_same(compile_group(group)(*arrays), interpreter(group)(*arrays))
    launches = plan(group, native.describe()).launches
    copied = {
        each.name for launch in launches for each in launch.kernel.body if isinstance(each, Shared)
    }
    assert copied == {"t"}  # a tile's sums, but no rows


def test_sums_of_many_products_are_accurate():
    """The factors are read where they lie, or copied; a sum is one of blocks, or of slices."""
    for m, n, k in ((16, 64, 60_000), (5, 300, 60_000), (70, 520, 5_000)):
        group = matmul(m, n, k)
        rng = np.random.default_rng(1)
        a, b = (rng.random(each.type.shape, np.float32) for each in group.inputs)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        for run in (native.compile_group, in_standard_c, by_groups, wide):
            np.testing.assert_allclose(run(group)(a, b)[0], exact, rtol=1e-6)


def test_a_work_group_reads_a_tile_of_both_factors_once():
    (launch,) = plan(matmul(500, 510, 70), GPU).launches
    assert launch.items == 4 * 4
    shared = [each.length for each in launch.kernel.body if isinstance(each, Shared)]
    assert shared == [16 * (128 + 4), 16 * (128 + 4)]
    assert launch.kernel.group_size == 256


def test_few_results_share_the_inner_axis():
    first, second = plan(matmul(40, 30, 10_000), GPU).launches
    assert (first.kernel.group_size, first.items) == (128, 2 * 4)
    assert second.kernel.group_size == 1


def test_one_program_serves_many_sizes():
    texts = set()
    for m in range(40, 400, 20):
        program = plan(matmul(m, m + 37, 2 * m), native.describe())
        texts.add(tuple(c.write(launch.kernel) for launch in program.launches))
    assert len(texts) <= 8  # by rows of a tile, and by whether there are several blocks


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (5, 90), (200, 7)])
def test_neighbours_who_exchange_values_wait_for_no_one(rows, columns):
    machine = replace(GPU, exchange=8)
    (launch,) = plan(matmul(rows, columns, 100), machine).launches
    body = launch.kernel.body
    values = [each.value for each in inside(body) if isinstance(each, Let)]
    assert launch.kernel.group_size == 8
    assert any(value.op == "broadcast" for value in values)
    assert not any(isinstance(each, Barrier) for each in inside(body))

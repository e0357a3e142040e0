"""Groups of the whole language by the system's C compiler and by LLVM, against the interpreter."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplug.plugin import (
    Expression,
    Group,
    GroupInput,
    GroupOutput,
    Reduction,
    TensorType,
    groups,
    narrowing,
)
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops import native
from tensorplug_loops.dialects import c, llvm
from tensorplug_loops.schedule import plan
from tensorplug_loops.statements import Let, Loop, inside

from . import by_llvm
from .random_groups import draw

pytestmark = pytest.mark.usefixtures("compiled_quickly")
F, INT = dt.float32, dt.int64
WHOLE = (True, True)
X = ex.parameter(0, F)


GROUPS = replace(c.MACHINE, neighbours=True, group_size=4, cores=2, shared_bytes=1 << 15)
COMPILERS = {
    "C": native.compile_group,
    "C, in work-groups": partial(native.compile_group, machine=GROUPS),
    "LLVM": by_llvm.compile_group,
    "LLVM, wide": partial(by_llvm.compile_group, vector_bytes=64),
}
each_compiler = pytest.mark.parametrize("compile_group", COMPILERS.values(), ids=COMPILERS)


def assert_same(found, wanted, rtol=1e-6):
    assert len(found) == len(wanted)
    for own, other in zip(found, wanted, strict=True):
        assert (own.dtype, own.shape) == (other.dtype, other.shape)
        if own.dtype.kind in "biu":
            np.testing.assert_array_equal(own, other)
        else:
            wide = own.astype(np.float64), other.astype(np.float64)
            np.testing.assert_allclose(*wide, rtol=rtol)


@each_compiler
@given(st.integers(0, 1 << 40))
@settings(max_examples=25, deadline=None)
def test_random_groups(compile_group, seed):
    group, arrays = draw(random.Random(seed))
    with np.errstate(all="ignore"):
        wanted = interpreter(group)(*arrays)
    assert_same(compile_group(group)(*arrays), wanted)


@each_compiler
@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64], ids=str)
def test_functions(compile_group, dtype):
    type_, whole = TensorType(dtype, (301,)), (True,)
    arrays = [np.linspace(*ends, 301).astype(dtype.numpy) for ends in ((-3, 3), (2, 5))]
    outputs = tuple(
        GroupOutput(ex.function(name, *(ex.parameter(at, dtype) for at in range(n))), type_, whole)
        for name, n in ex.FUNCTIONS.items()
    )
    group = Group("functions", (301,), (GroupInput(type_, whole),) * 2, (), outputs)
    with np.errstate(all="ignore"):
        wanted = interpreter(group)(*arrays)
    assert_same(compile_group(group)(*arrays), wanted, rtol=8 * dtype.eps)


CASTS = [dt.bool_, *sorted(dt.INTEGER, key=str), *sorted(dt.FLOATING, key=str)]


@each_compiler
@pytest.mark.parametrize("source", CASTS, ids=str)
def test_casts(compile_group, source):
    """Of every number that is hard for its dtype, to all dtypes."""
    rng = np.random.default_rng(3)
    if source is dt.bool_:
        x = np.array([False, True])
    elif source in dt.INTEGER:
        x = rng.integers(source.min, source.max, 999, source.numpy, endpoint=True)
        # 257 and its like lie between two bfloat16; others lie beside them.
        ties = [(257 << by) + more for by in range(55) for more in (-1, 0, 1)]
        hard = [source.min, source.max, 0, *(tie for tie in ties if tie <= source.max)]
        x[: len(hard)] = hard
        x[400:] >>= rng.integers(0, 8 * source.itemsize, x[400:].shape, source.numpy)
    else:
        with np.errstate(over="ignore"):
            x = (rng.standard_normal(999) * 10.0 ** rng.integers(-40, 39, 999)).astype(
                source.numpy
            )
            x[:9] = [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.9, 65520.0, 2.0**-25, -1.5]
    type_ = TensorType(source, x.shape)
    outputs = tuple(
        GroupOutput(ex.cast(ex.parameter(0, source), dtype), TensorType(dtype, x.shape), (True,))
        for dtype in CASTS
    )
    group = Group("casts", x.shape, (GroupInput(type_, (True,)),), (), outputs)
    with np.errstate(all="ignore"):
        assert_same(compile_group(group)(x), interpreter(group)(x), rtol=0)


ROUNDED = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "atan2": np.arctan2,
}


@each_compiler
@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16], ids=str)
def test_a_narrow_result_is_one_number_whoever_reads_it(compile_group, dtype):
    """What is stored, what a cast to float32 reads and what a comparison sees are equal."""
    rng, type_, whole = np.random.default_rng(8), TensorType(dtype, (400,)), (True,)
    with np.errstate(all="ignore"):
        arrays = [
            (rng.standard_normal(400) * 2.0 ** rng.integers(-16, 17, 400)).astype(dtype.numpy)
            for _ in range(2)
        ]
    hard = [dtype.max, dtype.smallest_normal, np.inf, np.nan, -0.0, 65504.0]
    arrays[0][:6], arrays[1][:6] = hard, hard[::-1]
    outputs = []
    for name, function in ROUNDED.items():
        root = ex.apply(name, *(ex.parameter(at, dtype) for at in range(function.nin)))
        if name not in ex.FUNCTIONS:
            root = Expression("cast", dtype, (root,))  # the end of a call
        wide = ex.cast(root, F)
        outputs += [
            GroupOutput(each, TensorType(each.dtype, (400,)), whole)
            for each in (root, wide, ex.apply("equal", ex.cast(wide, dtype), root))
        ]
    group = Group("steps", (400,), (GroupInput(type_, whole),) * 2, (), tuple(outputs))
    results = iter(compile_group(group)(*arrays))
    for name, function in ROUNDED.items():
        stored, read, same = (next(results) for _ in range(3))
        with np.errstate(all="ignore"):
            exact = function(*(each.astype(np.float32) for each in arrays[: function.nin]))
            wanted = narrowing.convert(exact, dtype).astype(np.float32)
        np.testing.assert_array_equal(stored.astype(np.float32), read, err_msg=name)
        rtol = dtype.eps * (name in ex.FUNCTIONS)
        np.testing.assert_allclose(read, wanted, rtol=rtol, err_msg=name)
        np.testing.assert_array_equal(same, ~np.isnan(read), err_msg=name)


@each_compiler
def test_bits_of_bfloat16_by_shifts_of_ones_own(compile_group):
    """A cast of bits that a group shifts by another number is no rounding that it can undo."""
    bits = np.arange(0, 1 << 31, 7654321, np.uint32)
    type_, whole = TensorType(dt.uint32, bits.shape), (True,)
    shifted = ex.cast(ex.parameter(0, dt.uint32) >> 15, dt.uint16)
    root = ex.cast(ex.bitcast(shifted, dt.bfloat16), F)
    output = GroupOutput(root, TensorType(F, bits.shape), whole)
    group = Group("bits", bits.shape, (GroupInput(type_, whole),), (), (output,))
    (actual,) = compile_group(group)(bits)
    wanted = ((bits >> 15).astype(np.uint16).astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(actual, wanted)


@each_compiler
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_division_by_a_constant_zero(compile_group, zero):
    x = np.array([1.5, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    type_ = TensorType(F, x.shape)
    output = GroupOutput(X / zero, type_, (True,))
    group = Group("divided", x.shape, (GroupInput(type_, (True,)),), (), (output,))
    with np.errstate(all="ignore"):
        (actual,) = compile_group(group)(x)
        np.testing.assert_array_equal(actual, x / np.float32(zero))


def row_sums(m, n):
    type_ = TensorType(F, (m, n))
    total = Reduction("sum", X, (False, True))
    out = GroupOutput(ex.parameter(1, F), TensorType(F, (m,)), (True, False))
    return Group("sums", (m, n), (GroupInput(type_, WHOLE),), (total,), (out,))


def softmax(m, n):
    type_ = TensorType(F, (m, n))
    term = ex.function("exp", X - ex.parameter(1, F))
    axes = (False, True)
    return Group(
        "softmax",
        (m, n),
        (GroupInput(type_, WHOLE),),
        (Reduction("max", X, axes), Reduction("sum", term, axes)),
        (GroupOutput(term / ex.parameter(2, F), type_, WHOLE),),
    )


def windows(m, n):
    index = [ex.axis(0) * 2 + ex.axis(1) - 1]
    operand = groups.mapped(TensorType(F, (m,)), index, (m // 2, n), outside=0.0)
    largest = Reduction("max", X, (False, True))
    out = GroupOutput(ex.parameter(1, F), TensorType(F, (m // 2,)), (True, False))
    return Group("windows", (m // 2, n), (operand,), (largest,), (out,))


def scan(m, n):
    type_ = TensorType(F, (m, n))
    total = Reduction("sum", X, (False, True), running=True)
    out = GroupOutput(ex.parameter(1, F), type_, WHOLE)
    return Group("scan", (m, n), (GroupInput(type_, WHOLE),), (total,), (out,))


def gathered(m, n):
    row = GroupInput(TensorType(INT, (m,)), (True, False))
    index = [ex.parameter(0, INT), ex.axis(1)]
    table = groups.mapped(TensorType(F, (50, n)), index, (m, n), [row])
    out = GroupOutput(ex.parameter(1, F) * 2, TensorType(F, (m, n)), WHOLE)
    return Group("gathered", (m, n), (row, table), (), (out,))


def segments(m, n):
    row = GroupInput(TensorType(INT, (m,)), (True, False))
    x = GroupInput(TensorType(F, (m, n)), WHOLE)
    out = GroupOutput(
        ex.parameter(1, F),
        TensorType(F, (50, n)),
        WHOLE,
        index=(ex.parameter(0, INT), ex.axis(1)),
        combine="sum",
        initial=ex.constant(0, F),
    )
    return Group("segments", (m, n), (row, x), (), (out,))


def first_largest(m, n):
    a, i, b, j = (ex.parameter(at, (F, INT)[at % 2]) for at in range(4))
    later = ex.apply("less", a, b)
    fold = groups.Fold(
        (X, ex.axis(1)),
        (ex.constant(float("-inf"), F), ex.constant(0, INT)),
        (ex.where(later, b, a), ex.where(later, j, i)),
        (False, True),
    )
    operand = GroupInput(TensorType(F, (m, n)), WHOLE)
    out = GroupOutput(ex.parameter(2, INT), TensorType(INT, (m,)), (True, False))
    return Group("first largest", (m, n), (operand,), (), (out,), (fold,))


@pytest.mark.parametrize(
    "make",
    [row_sums, softmax, windows, scan, gathered, segments, first_largest],
    ids=lambda make: make.__name__,
)
def test_one_program_serves_all_lengths(make):
    """Of 50 lengths, and the first and the last are computed."""
    texts, vectors = set(), set()
    rng = np.random.default_rng(0)
    for number in range(50):
        m, n = 8 + 3 * number, 5 + 2 * number
        group = make(m, n)
        program = plan(group, c.MACHINE)
        texts.add(tuple(c.write(launch.kernel) for launch in program.launches))
        lanes = plan(group, by_llvm.machine(64))
        vectors.add(tuple(llvm.write(launch.kernel) for launch in lanes.launches))
        if number in {0, 49}:
            arrays = [
                rng.integers(0, 50, each.type.shape)
                if each.type.dtype is INT
                else rng.standard_normal(each.type.shape).astype(np.float32)
                for each in group.inputs
            ]
            found, wanted = native.compile_group(group)(*arrays), interpreter(group)(*arrays)
            np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-5)
    assert len(texts) <= 3  # of few terms, of short rows, and others
    assert len(vectors) <= 5  # likewise, and of short vectors


def repeated(shape, spans):
    """Return the group that adds to an array one that is repeated along some axes."""
    x = GroupInput(TensorType(F, shape), (True,) * len(shape))
    own = tuple(length for length, spanned in zip(shape, spans, strict=True) if spanned)
    total = X - ex.parameter(1, F)
    inputs = (x, GroupInput(TensorType(F, own), spans))
    return Group("repeated", shape, inputs, (), (GroupOutput(total, x.type, x.spans),))


@each_compiler
def test_one_program_serves_all_repetitions(compile_group):
    """Of 14 ways to repeat rows: of one axis, of two, of up to four, and with two in an item."""
    texts = set()
    for rank in (2, 3, 4):
        shape = (3, 4, 5, 33)[-rank:]
        for outer in itertools.product((False, True), repeat=rank - 1):
            group = repeated(shape, (*outer, True))
            texts |= {c.write(launch.kernel) for launch in plan(group, c.MACHINE).launches}
            arrays = [
                np.arange(each.type.size, dtype=np.float32).reshape(each.type.shape)
                for each in group.inputs
            ]
            assert_same(compile_group(group)(*arrays), interpreter(group)(*arrays))
    assert len(texts) == 4


@each_compiler
def test_long_sums_are_accurate(compile_group):
    x = np.full((2, 300_001), np.float32(0.1))
    for dtype in (dt.float32, dt.float64, dt.float16):
        own = x.astype(dtype.numpy)
        type_ = TensorType(dtype, own.shape)
        total = Reduction("sum", ex.parameter(0, dtype), (False, True))
        out = GroupOutput(ex.parameter(1, dtype), TensorType(dtype, (2,)), (True, False))
        group = Group("sum", own.shape, (GroupInput(type_, WHOLE),), (total,), (out,))
        (found,) = compile_group(group)(own)
        exact = own.astype(np.longdouble).sum(1)
        np.testing.assert_allclose(found.astype(np.longdouble), exact, rtol=dtype.eps)


def test_the_text_can_be_read():
    run = native.compile_group(softmax(30, 40))
    assert "expf(" in run.source
    assert run.source.count("void run(") == 1


def test_names_are_no_types():
    """WGSL has i32, u32, f16 and f32: an index named i32 hid the type."""
    letters = set()
    for seed in range(30):
        program = plan(draw(random.Random(seed))[0], GROUPS)
        for launch in program.launches if program else ():
            letters |= {each.index[0] for each in inside(launch.kernel.body) if type(each) is Loop}
            letters |= {each.name[0] for each in inside(launch.kernel.body) if type(each) is Let}
    assert letters
    assert not letters & set("iuf")


def test_a_compiler_that_is_not_there(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    native.command.cache_clear()
    with pytest.raises(native.CompilationError, match="no-such-compiler"):
        native.command()

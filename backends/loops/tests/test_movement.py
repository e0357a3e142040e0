"""Groups that move elements: by every compiler of loops, against the interpreter."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, TensorType, groups
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops import held, native
from tensorplug_loops.dialects import c
from tensorplug_loops.machine import Machine
from tensorplug_loops.schedule import pieces, plan, scatters
from tensorplug_loops.schedule.forms import form_of
from tensorplug_loops.schedule.loops import Loops
from tensorplug_loops.statements import Shared

from .random_groups import draw
from .test_dialects import COMPILERS, assert_same, each_compiler

GROUPS = Machine(
    neighbours=True,
    group_size=64,
    shared_bytes=1 << 16,
    functions=frozenset(ex.FUNCTIONS),
)
F = dt.float32
A, B = ex.axis(0), ex.axis(1)


def numbers(shape, seed=1):
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.float32)


def written(shape, index, target, initial=0):
    """Return the group that writes a dense input to an index of an output."""
    inputs = [GroupInput(TensorType(F, shape), (True,) * len(shape))]
    first = ex.constant(initial, F)
    if initial is None:
        inputs.append(GroupInput(TensorType(F, target), (False,) * len(shape)))
        first = ex.parameter(1, F)
    output = GroupOutput(
        ex.parameter(0, F),
        TensorType(F, target),
        (True,) * len(shape),
        index=tuple(index),
        combine="last",
        initial=first,
    )
    return Group("written", shape, tuple(inputs), (), (output,))


@each_compiler
@pytest.mark.parametrize("initial", [2, None])
@pytest.mark.parametrize(
    ("shape", "index", "target", "is_nest"),
    [
        ((7, 40), (2 * A, B + 3), (14, 50), True),
        ((7, 40), (6 - A, 3 * B + 1), (9, 130), True),
        ((7, 40), (2 * B, A), (80, 7), True),
        ((7, 40), (ex.constant(1, dt.int64), A, B * 2), (3, 9, 80), True),
        ((300,), (4 * A + 2,), (1200,), True),
        ((7, 40), (A + B,), (46,), False),  # elements meet
        ((7, 40), (A, B + 3), (7, 40), False),  # some lie outside
    ],
)
def test_elements_that_never_meet(compile_group, shape, index, target, initial, is_nest):
    """A nest writes them; others go through loops in row-major order."""
    group = written(shape, index, target, initial)
    arrays = [numbers(shape), numbers(target, 2)][: 2 - (initial is not None)]
    assert_same(compile_group(group)(*arrays), interpreter(group)(*arrays))
    assert scatters.never_meet(Loops(group)) is is_nest


@pytest.mark.parametrize(("steps", "launches"), [(3, 70), (24, 10), (60, 5), (90, 3), (210, 1)])
def test_long_loops_are_several_launches_of_one_kernel(steps, launches):
    """Each goes on where the one before ended, so that the last element written remains."""
    group = written((5, 7, 2), (A + B, B + ex.axis(2)), (11, 8))
    program = plan(group, Machine(steps=steps))
    of = [each for each in program.launches if each.kernel.name == group.name]
    assert (len(of), len({id(each.kernel) for each in of})) == (launches, 1)
    assert all(each.steps <= steps for each in of)
    array = numbers((5, 7, 2))
    assert_same(native.Run(program, 1)(array), interpreter(group)(array))


@pytest.mark.parametrize("long", [True, False])
def test_floats_become_indices(long):
    """Without integers of 64 bits, a number that no index reaches stays out of reach."""
    x = np.float32([1.75, -2.5, np.nan, 2.0**31, -(2.0**32) - 512, 2.0**32 + 512, np.inf])
    type_ = TensorType(dt.int64, x.shape)
    value = ex.cast(ex.parameter(0, F), dt.int64)
    output = GroupOutput(value, type_, (True,))
    group = Group(
        "indices", x.shape, (GroupInput(TensorType(F, x.shape), (True,)),), (), (output,)
    )
    (found,) = native.Run(plan(group, replace(c.MACHINE, long=long)), 1)(x)
    most = 2**31 - 128
    ends = [1 << 31, -(1 << 32) - 512, (1 << 32) + 512, 0] if long else [most, -most, most, most]
    assert found.tolist() == [1, -2, 0, *ends]


def turned(shape, perm, dtype=F, outside=None, costly=False):
    """Return the group of x, turned and shifted, and others of the output's shape."""
    target = tuple(shape[axis] for axis in perm)
    index = [ex.axis(perm.index(axis)) for axis in range(len(shape))]
    if outside is not None:
        index[0] = index[0] - 2
    type_, whole = TensorType(dtype, target), (True,) * len(target)
    x = groups.mapped(TensorType(dtype, shape), index, target, outside=outside)
    y, column = GroupInput(type_, whole), (True,) + (False,) * (len(target) - 1)
    z = GroupInput(TensorType(dtype, target[:1]), column)
    a, b, row = (ex.parameter(at, dtype) for at in range(3))
    value = ex.where(a < b, b, a)
    if costly:
        value = ex.function("sin", ex.function("exp", value * 0.01))
    outputs = tuple(
        GroupOutput(each, type_, whole) for each in (a, value, ex.where(a < b, row, a))
    )
    return Group("turned", target, (x, y, z), (), outputs)


def by_groups(group):
    return native.Run(plan(group, GROUPS), 1)


@pytest.mark.parametrize(
    "compile_group", [*COMPILERS.values(), by_groups], ids=[*COMPILERS, "work-groups"]
)
@pytest.mark.parametrize(
    ("shape", "perm", "options"),
    [
        ((64, 64), (1, 0), {}),
        ((67, 131), (1, 0), {}),
        ((9, 8), (1, 0), {}),
        ((3, 40, 21), (0, 2, 1), {"outside": 5}),
        ((3, 40, 2, 21), (0, 3, 2, 1), {}),
        ((70, 5, 9), (2, 1, 0), {"costly": True}),
        ((33, 70), (1, 0), {"dtype": dt.int8}),
        ((33, 70), (1, 0), {"dtype": dt.float64}),
        ((33, 70), (1, 0), {"dtype": dt.bool_, "outside": True}),
        ((33, 70), (1, 0), {"dtype": dt.bfloat16}),
    ],
)
def test_tiles(compile_group, shape, perm, options):
    group = turned(shape, perm, **options)
    (launch,) = plan(group, c.MACHINE).launches
    assert any(isinstance(each, Shared) for each in launch.kernel.body)
    arrays = [
        np.random.default_rng(at).integers(0, 100, each.type.shape).astype(each.type.dtype.numpy)
        for at, each in enumerate(group.inputs)
    ]
    assert_same(compile_group(group)(*arrays), interpreter(group)(*arrays))


def test_axes_that_no_tile_covers():
    """Short ones, those of one dense axis, and tiles for which a work-group has no memory."""
    for shape, perm in [((7, 100), (1, 0)), ((100, 7), (1, 0)), ((4, 9, 50), (1, 0, 2))]:
        assert form_of(Loops(turned(shape, perm)), c.MACHINE, split=False).tiled is None
    crossed = Loops(turned((50, 50), (1, 0)))
    assert form_of(crossed, GROUPS, split=False).tiled == (0, 1)
    assert form_of(crossed, replace(GROUPS, shared_bytes=8000), split=False).tiled is None


def joined(parts, axis=1, rows=64):
    """Return the group that joins matrices with these numbers of columns, or rows, by tests."""
    shape = [rows, rows]
    shape[axis] = sum(parts)
    inputs, value, end = [], None, 0
    for length in parts:
        own = list(shape)
        own[axis] = length
        index = [ex.axis(0), ex.axis(1)]
        index[axis] = index[axis] - end
        type_ = TensorType(F, tuple(own))
        inputs.append(groups.mapped(type_, index, tuple(shape), outside=0))
        x = ex.parameter(len(inputs) - 1, F)
        value = x if value is None else ex.where(ex.axis(axis) < end, value, x)
        end += length
    output = GroupOutput(value, TensorType(F, tuple(shape)), (True, True))
    return Group("joined", tuple(shape), tuple(inputs), (), (output,))


def padded(shape, pads, step=1):
    """Return the group that reads every element, or every second one, with 1 around them."""
    target = tuple(n + 2 * pad for n, pad in zip(shape, pads, strict=True))
    index = [step * ex.axis(at) - pad for at, pad in enumerate(pads)]
    x = groups.mapped(TensorType(F, shape), index, target, outside=1)
    output = GroupOutput(ex.parameter(0, F), TensorType(F, target), (True,) * len(shape))
    return Group("padded", target, (x,), (), (output,))


def mirrored(length, pad):
    """Return the group that repeats the elements at both ends backwards."""
    at = ex.axis(1) - pad
    at = ex.where(at < 0, -1 - at, at)
    at = ex.where(at > length - 1, 2 * length - 1 - at, at)
    shape = 256, length + 2 * pad
    x = groups.mapped(TensorType(F, (256, length)), [ex.axis(0), at], shape)
    output = GroupOutput(ex.parameter(0, F), TensorType(F, shape), (True, True))
    return Group("mirrored", shape, (x,), (), (output,))


def banded(rows, columns):
    """Return the group of 1 to the left of a column and in the first rows, else x."""
    type_, whole = TensorType(F, (rows, columns)), (True, True)
    left, first = B < 30, ex.apply("less_equal", A, 49)
    value = ex.where(ex.apply("logical_or", left, first), 1, ex.parameter(0, F))
    return Group(
        "banded", type_.shape, (GroupInput(type_, whole),), (), (GroupOutput(value, type_, whole),)
    )


@each_compiler
@pytest.mark.parametrize(
    ("group", "launches"),
    [
        (joined([200, 100, 20, 40]), 4),
        (joined([200, 100, 20, 40], axis=0), 4),
        (joined([8, 8]), 1),  # too small
        (padded((200, 300), (3, 9)), 5),
        (padded((20, 50, 60, 3), (0, 1, 2, 0)), 5),
        (padded((200, 300), (0, 0), step=2), 3),  # the second half lies outside
        (mirrored(400, 50), 3),
        (banded(200, 300), 3),
    ],
    ids=lambda each: each.name if isinstance(each, Group) else "",
)
def test_pieces(compile_group, group, launches):
    """No element compares its index, if there are enough elements."""
    assert len(plan(group, c.MACHINE).launches) == launches
    arrays = [numbers(each.type.shape, at) for at, each in enumerate(group.inputs)]
    assert_same(compile_group(group)(*arrays), interpreter(group)(*arrays))
    kept = replace(c.MACHINE, neighbours=True)
    assert len(plan(group, kept).launches) == 1


@each_compiler
@given(st.integers(0, 1 << 40))
@settings(max_examples=12, deadline=None)
def test_random_pieces(compile_group, seed):
    group, arrays = draw(random.Random(seed))
    with np.errstate(all="ignore"):
        wanted = interpreter(group)(*arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_LEAST", 1)
        found = compile_group(group)(*arrays)
    assert_same(found, wanted)


@each_compiler
@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_short_last_axes(compile_group, length):
    """They are no loops; neither where the one before is cut into segments."""
    shape, whole = (3, 20000, length), (True, True, True)
    index = [ex.axis(2), ex.axis(0), ex.axis(1)]
    x = groups.mapped(TensorType(F, (length, 3, 20000)), index, shape)
    y = GroupInput(TensorType(F, shape), whole)
    value = ex.where(ex.axis(2) < 1, ex.parameter(0, F), ex.parameter(1, F))
    group = Group("short", shape, (x, y), (), (GroupOutput(value, TensorType(F, shape), whole),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_MOST", 0)
        form = form_of(Loops(group), c.MACHINE, split=False)
        assert form.tail == (length if length < 5 else 0)
        arrays = [numbers(each.type.shape, at) for at, each in enumerate(group.inputs)]
        assert_same(compile_group(group)(*arrays), interpreter(group)(*arrays))


@each_compiler
def test_reductions_of_single_elements_beside_what_is_crossed(compile_group):
    """Their axis is no loop, but they are reductions: neither tiles nor short axes are theirs."""
    for shape in [(40, 1, 30), (4000, 1, 3)]:
        x = groups.mapped(TensorType(F, shape[::-1]), [ex.axis(2), ex.axis(1), ex.axis(0)], shape)
        kept = (True, False, True)
        total = Reduction("sum", ex.parameter(0, F), (False, True, False))
        output = GroupOutput(ex.parameter(1, F) * 2, TensorType(F, shape[::2]), kept)
        group = Group("one each", shape, (x,), (total,), (output,))
        array = numbers(shape[::-1])
        assert_same(compile_group(group)(array), interpreter(group)(array))


def chosen(dtype, value):
    """Return the group that gathers rows, and has a value in the place of some elements."""
    rows = GroupInput(TensorType(dt.int32, (4,)), (True, False))
    is_kept = GroupInput(TensorType(dt.bool_, (3,)), (False, True))
    index = [ex.cast(ex.parameter(0, dt.int32), dt.int64), B]
    table = groups.mapped(TensorType(dtype, (5, 3)), index, (4, 3), (rows, is_kept), outside=value)
    kept = ex.where(ex.parameter(1, dt.bool_), ex.parameter(2, dtype), ex.constant(value, dtype))
    output = GroupOutput(kept, TensorType(dtype, (4, 3)), (True, True))
    return Group("chosen", (4, 3), (rows, is_kept, table), (), (output,))


@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int8, dt.complex64])
def test_what_is_only_moved_is_moved_as_bits(dtype):
    group = chosen(dtype, True)
    own = held.in_bits(group)
    bits = own.outputs[0].type.dtype
    assert (bits in dt.UNSIGNED, bits.itemsize) == (True, dtype.itemsize)
    assert [each.type.dtype for each in own.inputs] == [dt.int32, dt.bool_, bits]
    table = np.random.default_rng(0).integers(0, 256, 15 * bits.itemsize, np.uint8)
    table = table.view(bits.numpy).reshape(5, 3)
    rows, is_kept = np.int32([3, 0, 7, 4]), np.array([True, False, True])
    (found,) = interpreter(own)(rows, is_kept, table)
    (wanted,) = interpreter(group)(rows, is_kept, table.view(dtype.numpy))
    np.testing.assert_array_equal(found, wanted.view(bits.numpy))


def test_one_group_moves_all_dtypes_of_a_size():
    assert held.in_bits(chosen(dt.float32, 0)).key() == chosen(dt.uint32, 0).key()


@pytest.mark.parametrize("dtype", [dt.float32, dt.int32])
def test_what_is_computed_keeps_its_dtype(dtype):
    type_, x = TensorType(dtype, (4,)), ex.parameter(0, dtype)
    for expression in x + x, ex.where(x < ex.constant(0, dtype), ex.constant(0, dtype), x):
        output = GroupOutput(expression, type_, (True,))
        group = Group("computed", (4,), (GroupInput(type_, (True,)),), (), (output,))
        assert held.in_bits(group) is group
    met = written((4,), [A], (5,))
    met = replace(met, outputs=(replace(met.outputs[0], combine="sum"),))
    assert held.in_bits(met) is met

"""What is planned by a recording is what is planned anew: equal kernels, equal numbers."""

from __future__ import annotations

import random
import re
from dataclasses import replace

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
)
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops import templates
from tensorplug_loops.dialects import c
from tensorplug_loops.forms.extents import pad
from tensorplug_loops.forms.joining import concat
from tensorplug_loops.forms.movement import transpose
from tensorplug_loops.forms.table import Operand
from tensorplug_loops.machine import Machine
from tensorplug_loops.recording import MISSED, compute, record
from tensorplug_loops.schedule import plan
from tensorplug_loops.templates import arguments, repeat, sized

from .by_llvm import machine
from .random_groups import draw

F = dt.float32
X, Y = ex.parameter(0, F), ex.parameter(1, F)
GPU = Machine(neighbours=True, group_size=256, cores=8, shared_bytes=1 << 16, wide=False)
MACHINES = {"C": c.MACHINE, "LLVM": machine(64), "vectors": Machine(32, lanes=16), "GPU": GPU}
each_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
SIZES = [1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 33, 64, 129, 256, 257, 700, 1025, 5000, 70000]


class Recorded:
    """Plans of ``make(sizes)``, by all that was recorded."""

    def __init__(self, make, machine):
        self._plan = lambda sizes: plan(make(sizes), machine)
        self._recorded = []
        self.programs = set()

    def check(self, sizes):
        """Compare what is recorded with what is planned anew; record what is not known."""
        found = [each(*sizes) for each in self._recorded]
        if all(each is MISSED for each in found):  # kernels may be written meanwhile
            self._recorded.append(record(self._plan, sizes))
            found.append(self._recorded[-1](*sizes))
        wanted = self._plan(sizes)  # equal kernels are one object
        for each in wanted.launches:
            if id(each.kernel) not in self.programs:
                assert not re.search(r"<[sv]\d+>", repr(each.kernel)), "a size in a kernel"
        self.programs |= {id(each.kernel) for each in wanted.launches}
        assert all(each is MISSED or each == wanted for each in found), sizes

    def __len__(self):
        return len(self._recorded)


def resized(group):
    """Return the sizes of a group and the numbers in its indices, and what makes it of others."""
    nodes = ex.linearize(group.expressions())
    constants = [each for each in nodes if each.op == "constant" and each.dtype is dt.int64]
    ends = [*group.inputs, *group.outputs]
    sizes = [*group.shape, *(each.value for each in constants)]
    sizes += [size for each in ends for size in each.type.shape]

    def make(sizes):
        rest = iter(sizes)
        shape = tuple(next(rest) for _ in group.shape)
        values = [next(rest) for _ in constants]
        types = [TensorType(e.type.dtype, tuple(next(rest) for _ in e.type.shape)) for e in ends]
        values = {str(each): value for each, value in zip(constants, values, strict=True)}
        new = {}
        roots = ex.unify(group.expressions())
        for node in ex.linearize(roots):
            operands = tuple(new[id(each)] for each in node.operands)
            value = node.value if operands else values.get(str(node), node.value)
            new[id(node)] = Expression(node.op, node.dtype, operands, value)
        made = group.rewritten([new[id(root)] for root in roots])
        count = len(made.inputs)
        inputs = [replace(e, type=t) for e, t in zip(made.inputs, types[:count], strict=True)]
        outputs = [replace(e, type=t) for e, t in zip(made.outputs, types[count:], strict=True)]
        return replace(made, shape=shape, inputs=tuple(inputs), outputs=tuple(outputs))

    return sizes, make


@each_machine
@given(st.integers(0, 1 << 40))
@settings(max_examples=40, deadline=None)
def test_random_groups(machine, seed):
    source = random.Random(seed)
    group, _ = draw(source)
    sizes, make = resized(group)
    recorded = Recorded(make, machine)
    recorded.check(sizes)
    for _ in range(6):
        own = [source.choice(SIZES) if source.random() < 0.4 else size for size in sizes]
        recorded.check(own)


def dense(*shape, spans=None):
    return GroupInput(TensorType(F, shape), spans or (True,) * len(shape))


def softmax(sizes):
    shape, axes = tuple(sizes), (False, True)
    reductions = Reduction("max", X, axes), Reduction("sum", ex.function("exp", X - Y), axes)
    value = ex.function("exp", X - Y) / ex.parameter(2, F)
    output = GroupOutput(value, TensorType(F, shape), (True, True))
    return Group("softmax", shape, (dense(*shape),), reductions, (output,))


def columns(sizes):
    shape = tuple(sizes)
    output = GroupOutput(Y / shape[0], TensorType(F, shape[1:]), (False, True))
    return Group("mean", shape, (dense(*shape),), (Reduction("sum", X, (True, False)),), (output,))


def total(sizes):
    shape = (2, *sizes)
    output = GroupOutput(Y, TensorType(F, ()), (False,) * 3)
    return Group("sum", shape, (dense(*shape),), (Reduction("sum", X, (True,) * 3),), (output,))


def scan(sizes):
    shape = tuple(sizes)
    output = GroupOutput(Y, TensorType(F, shape), (True, True))
    reduction = Reduction("sum", X, (False, True), running=True)
    return Group("running sum", shape, (dense(*shape),), (reduction,), (output,))


def outer(sizes):
    shape = tuple(sizes)
    ends = dense(shape[0], spans=(True, False)), dense(*shape)
    return Group(
        "x + y", shape, ends, (), (GroupOutput(X + Y, TensorType(F, shape), (True, True)),)
    )


def matrices(sizes):
    m, n = sizes
    ends = dense(m, n, spans=(True, False, True)), dense(40, n, spans=(False, True, True))
    sums = Reduction("sum", X * Y, (False, False, True))
    output = GroupOutput(ex.parameter(2, F), TensorType(F, (m, 40)), (True, True, False))
    return Group("product", (m, 40, n), ends, (sums,), (output,))


def joined(sizes):
    m, n = sizes
    shapes = (3, m, 7), (3, n, 7)
    xs = [Operand(TensorType(F, shape), at) for at, shape in enumerate(shapes)]
    (form,) = concat(xs, axis=1, out=TensorType(F, (3, m + n, 7)))(3)
    return form.group


def transposed(sizes):
    m, n = sizes
    return transpose(
        Operand(TensorType(F, (2, m, n)), 0), perm=(0, 2, 1), out=TensorType(F, (2, n, m))
    ).group


def padded(sizes):
    m, n = sizes
    return pad(
        Operand(TensorType(F, (m, n)), 0),
        paddings=((0, 3), (n, 2)),
        constant_value=1.5,
        out=TensorType(F, (m + 3, 2 * n + 2)),
    ).group


AROUND = sorted(
    {1 << bit for bit in range(18)}
    | {(1 << bit) - 1 for bit in range(1, 18)}
    | {(1 << bit) + 1 for bit in range(18)}
)


@each_machine
@pytest.mark.parametrize(
    "make",
    [softmax, columns, total, scan, outer, matrices, joined, transposed, padded],
)
def test_around_thresholds(machine, make):
    """One size grows over all that schedules compare with; decisions differ, and are found."""
    for other in (1, 5, 300):
        for turned in (False, True):
            recorded = Recorded(make, machine)
            for size in AROUND:
                recorded.check((size, other) if turned else (other, size))
            assert len(recorded) < len(AROUND) // 2, (other, turned)
            assert len(recorded) > 1 or len(recorded.programs) < 4


def test_sizes_decide():
    """What is compared, counted by or kept must be the same again; what is computed is not."""

    def function(sizes):
        a, b = sizes
        known = {64: "found"}.get(b, "missing")
        return a * b + 1, -(-a // 4), known, [0] * (a > 10), max(a, 3)

    recorded = record(function, (12, 64))
    assert recorded(12, 64) == function((12, 64))
    assert recorded(100, 64) == function((100, 64))
    assert recorded(10, 64) is MISSED
    assert recorded(12, 65) is MISSED


def test_calls_are_computed():
    recorded = record(lambda sizes: (compute(float.hex, sizes[0] / 8), sizes[0]), [3])
    assert recorded(5) == ("0x1.4000000000000p-1", 5)


def test_no_size_outlives_its_recording():
    kept = []
    record(kept.extend, [7])
    with pytest.raises(AssertionError, match="outlives"):
        kept[0] + 1
    with pytest.raises(AssertionError, match="outlives"):
        record(lambda _: kept[0], [7])


def test_repeated():
    """The first call runs the function, the second one records it; sizes that decide do again."""
    calls = []

    def function(sizes):
        calls.append(sizes)
        return sizes[0] * 2 if sizes[0] < 100 else 0

    key = object()
    assert [repeat(key, [size], function) for size in (5, 6, 7, 8, 300, 9, 301)] == [
        *(10, 12, 14, 16, 0, 18, 0)
    ]
    assert len(calls) == 3


def test_keys_that_never_come_again_make_room(monkeypatch):
    monkeypatch.setattr(templates, "_MET", 8)
    monkeypatch.setattr(templates, "_met", {})
    monkeypatch.setattr(templates, "_recorded", {})
    for number in range(100):
        assert repeat(number, [3], lambda sizes: sizes[0]) == 3
        assert repeat(f"twice {number % 3}", [number], lambda sizes: sizes[0] + 1) == number + 1
    assert len(templates._met) == 8
    assert set(templates._recorded) == {"twice 0", "twice 1", "twice 2"}


def test_groups_of_equal_expressions_have_one_key():
    one, two, other = (sized(softmax(shape)) for shape in ((3, 4), (5, 6), (3, 4)))
    assert one.key != other.key  # their expressions are other objects
    group = one.group
    turned = replace(group, shape=(5, 6))
    assert sized(turned).key == one.key
    assert sized(turned).group == turned
    assert two.sizes == [5, 6, 5, 6, 5, 6]


def test_arguments():
    """Places and shapes are sizes; other attributes are told apart exactly."""
    x = TensorType(F, (3, 4))
    first = arguments([x, None, [x]], {"begin": (0, 2), "axis": 1, "out": x})
    assert first.sizes == [3, 4, 3, 4, 0, 2, 3, 4]
    types, asked = first.at([5, 6, 7, 8, 1, 3, 9, 10])
    assert types == [TensorType(F, (5, 6)), None, [TensorType(F, (7, 8))]]
    assert asked == {"begin": (1, 3), "axis": 1, "out": TensorType(F, (9, 10))}
    keys = [arguments([x], {"value": value}).key for value in (0, 0.0, -0.0, False, 1, True, "0")]
    assert len(set(keys)) == len(keys)

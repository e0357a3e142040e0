"""Groups that LLVM compiles: layouts, memory, threads, and what is declined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_cpu.jit.codegen import compiler, settings
from tensorplug_cpu.jit.groups import kernels, threads
from tensorplug_cpu.jit.groups.team import Team

pytestmark = pytest.mark.skipif(not compiler.is_available(), reason="llvmlite is not installed")

SHAPES = [
    (1,),
    (5,),
    (1000,),
    (40000,),
    (100003,),
    (3, 7),
    (1, 16),
    (300, 1),
    (2, 70001),
    (513, 129),
    (5000, 3),
    (17, 4, 33),
    (3, 40, 5, 7),
]


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setenv(settings.JIT, "always")


def shrink(shape, spans):
    return tuple(length for length, spanned in zip(shape, spans, strict=True) if spanned)


def make(shape, inputs, reductions, outputs):
    """Return a group of (dtype, spans), (op, expression, axes) and (expression, spans)."""

    def of(dtype, spans):
        return TensorType(dtype, shrink(shape, spans)), spans

    read = tuple(GroupInput(*of(*each)) for each in inputs)
    written = tuple(GroupOutput(root, *of(root.dtype, spans)) for root, spans in outputs)
    return Group("test", shape, read, tuple(Reduction(*each) for each in reductions), written)


def run(group, arrays):
    before = [array.copy() for array in arrays]
    results = kernels.compile_group(group)(*arrays)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    for result, output in zip(results, group.outputs, strict=True):
        assert result.flags.c_contiguous
        assert (result.dtype, result.shape) == (output.type.dtype.numpy, output.type.shape)
    return results


def draw(dtype, shape, seed=0):
    generator = np.random.default_rng(seed)
    if dtype is dt.bool_:
        return generator.random(shape) < 0.5
    if dtype in dt.INTEGER:
        return generator.integers(0, 9, shape).astype(dtype.numpy)
    return generator.uniform(-2, 2, shape).astype(dtype.numpy)


def softmax(shape, axes):
    x, largest, total = (ex.parameter(k, dt.float32) for k in range(3))
    power = ex.function("exp", x - largest)
    whole, kept = (True,) * len(shape), tuple(not axis for axis in axes)
    return make(
        shape,
        [(dt.float32, whole)],
        [("max", x, axes), ("sum", power, axes)],
        [(power / total, whole), (ex.function("log", total) + largest, kept)],
    )


def layer_norm(shape, axes):
    whole, kept = (True,) * len(shape), tuple(not axis for axis in axes)
    count = int(np.prod(shrink(shape, axes)))
    x, scale, offset, total, squares = (ex.parameter(k, dt.float32) for k in range(5))
    centred = x - total / count
    deviation = ex.apply("sqrt", squares / count + 1e-5)
    return make(
        shape,
        [(dt.float32, whole), (dt.float32, axes), (dt.float32, axes)],
        [("sum", x, axes), ("sum", centred * centred, axes)],
        [(centred / deviation * scale + offset, whole), (deviation, kept)],
    )


def test_inputs_of_any_layout():
    shape = (60, 50)
    x, y = draw(dt.float32, (50, 60)).T, draw(dt.float32, (120, 100))[::-2, 1::2]
    whole = (True, True)
    group = make(
        shape,
        [(dt.float32, whole)] * 2,
        [],
        [(ex.parameter(0, dt.float32) - ex.parameter(1, dt.float32), whole)],
    )
    np.testing.assert_array_equal(run(group, [x, y])[0], x - y)
    odd = np.frombuffer(bytearray(4 * 3000 + 1), np.uint8)[1:].view(np.float32).reshape(shape)
    assert not odd.flags.aligned
    odd[...] = x
    np.testing.assert_array_equal(run(group, [odd, y])[0], x - y)


@pytest.mark.parametrize("make_group", [softmax, layer_norm])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((900, 800), (False, True)), ((900, 800), (True, False)), ((9, 80000), (True, True))],
)
def test_the_same_bits_in_any_number_of_threads(monkeypatch, make_group, shape, axes):
    group = make_group(shape, axes)
    arrays = [draw(dt.float32, each.type.shape, at) for at, each in enumerate(group.inputs)]
    found = []
    for count in (0, 1, 3):
        team = Team()
        team.have(count)
        monkeypatch.setattr(threads, "team", team)
        monkeypatch.setattr(threads, "SHARED_WORK", 1)
        found.append([result.tobytes() for _ in range(9) for result in run(group, arrays)])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if len(shape) > 1] + [(777,)])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float16, dt.int8], ids=str)
def test_outputs_into_the_memory_of_inputs(shape, dtype):
    """The bits are those of new memory, with other dtypes and outputs beside."""
    rng = np.random.default_rng(5)
    whole, last = (True,) * len(shape), (*(False,) * (len(shape) - 1), True)
    x, y = ex.parameter(0, dtype), ex.parameter(1, dtype)
    row = ex.parameter(2, dt.float32)
    group = make(
        shape,
        [(dtype, whole), (dtype, whole), (dt.float32, last)],
        [],
        [(x * y + x, whole), (ex.cast(x, dt.float32) + row, whole), (x - y, whole)],
    )
    if last != whole:  # computed by a kernel of its own
        narrow = GroupOutput(row * 2, TensorType(dt.float32, shape[-1:]), last)
        group = replace(group, outputs=(*group.outputs, narrow))
    arrays = [
        rng.integers(-9, 9, each.type.shape).astype(each.type.dtype.numpy) for each in group.inputs
    ]
    wanted = run(group, arrays)
    into = [1, None, 0, None]
    outputs = [replace(each, into=at) for each, at in zip(group.outputs, into, strict=False)]
    found = kernels.compile_group(replace(group, outputs=tuple(outputs)))(*arrays)
    for each, right, at in zip(found, wanted, into, strict=False):
        assert (at is None) or each is arrays[at]
        np.testing.assert_array_equal(each, right)


def test_what_is_declined(monkeypatch):
    def added(dtype, shape):
        x = ex.parameter(0, dtype)
        spans = (True,) * len(shape)
        return make(shape, [(dtype, spans)], [], [(x + x, spans)])

    assert kernels.compile_group(added(dt.complex64, (9,))) is None
    assert kernels.compile_group(added(dt.float32, (0, 3))) is None
    monkeypatch.setenv(settings.JIT, "1")
    assert kernels.compile_group(added(dt.float32, (9,)))
    monkeypatch.setenv(settings.JIT, "0")
    assert kernels.compile_group(added(dt.float32, (1 << 20,))) is None


def test_a_refusal_declines(monkeypatch):
    def refuse(*_arguments):
        raise compiler.CompilationError("LLVM: no")

    monkeypatch.setattr(threads, "compile_function", refuse)
    monkeypatch.setattr(kernels, "_modules", {})  # other lengths may have it
    group = softmax((6, 10), (False, True))
    assert kernels.compile_group(group) is None


def test_an_input_is_read_before_an_output_takes_its_memory():
    """The second output reads the input in whose memory the first one is written."""
    type_, span = TensorType(dt.float32, (3, 20000)), (True, True)
    a, b = (ex.parameter(at, dt.float32) for at in (0, 1))
    outputs = (GroupOutput(b + b, type_, span, into=0), GroupOutput(a * b, type_, span))
    group = Group("overwritten", type_.shape, (GroupInput(type_, span),) * 2, (), outputs)
    x, y = np.random.default_rng(0).random((2, *type_.shape), np.float32)
    twice, product = kernels.compile_group(group)(x.copy(), y)
    np.testing.assert_array_equal(twice, y + y)
    np.testing.assert_array_equal(product, x * y)

"""Groups as kernels: each operation in each dtype, in vectors and one by one; each layout."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    TensorType,
    expressions,
)
from tensorplug.plugin import dtypes as dt

RNG = np.random.default_rng(11)
COUNT = 1100  # a run of a work-item of a CPU, and a part of the next whose last vector is short
FLOATS = (dt.float16, dt.float32, dt.float64)
INTEGERS = tuple(sorted(dt.INTEGER, key=str))
parameter, apply = expressions.parameter, expressions.apply


@pytest.fixture(params=["vectors", "elements"])
def device(request, backend):
    """Return a backend in the form for CPUs, and in the form for GPUs."""
    backend.runtime.is_cpu = request.param == "vectors"
    return backend


def make_group(shape: Any, inputs: Any, outputs: Any) -> Group:
    """Return a group; ``inputs`` are (dtype, spans), ``outputs`` expressions for all elements."""
    full = (True,) * len(shape)

    def own(dtype: Any, spans: Any) -> TensorType:
        return TensorType(dtype, tuple(n for n, each in zip(shape, spans, strict=True) if each))

    return Group(
        "test",
        shape,
        tuple(GroupInput(own(dtype, spans), spans) for dtype, spans in inputs),
        (),
        tuple(GroupOutput(each, own(each.dtype, full), full) for each in outputs),
    )


def run(backend: Any, group: Group, *arrays: Any) -> list[Any]:
    """Run a group; check its outputs' types."""
    call = backend.compile_group(group)
    assert call is not None
    results = call(*map(backend.from_host, arrays))
    assert [result.type for result in results] == [output.type for output in group.outputs]
    return [backend.to_host(result) for result in results]


def numbers(dtype: Any, *shape: int) -> Any:
    """Return numbers with the special ones of their dtype among them."""
    count = prod(shape)
    if dtype is dt.bool_:
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype in dt.INTEGER:
        limits = np.iinfo(dtype.name)
        made = RNG.integers(limits.min, limits.max, count, dtype.numpy, endpoint=True)
        made[::3] = RNG.integers(0, 70, made[::3].size).astype(dtype.numpy)
        special = [0, 1, limits.max, limits.min, limits.max - 1, limits.min + 1, limits.max]
    else:
        made = (RNG.standard_normal(count) * 9).astype(dtype.numpy)
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5]
    made[: len(special)] = special
    made[30 : 30 + len(special) ** 2] = np.repeat(np.array(special, made.dtype), len(special))
    return made.reshape(shape)


def repeat_special(x: Any) -> Any:
    """Return other numbers, so that each pair of special ones occurs."""
    made = RNG.permutation(x)
    count = 7 if x.dtype.kind in "iu" else 9
    made[30 : 30 + count**2] = np.tile(x[:count], count)
    return made


def shift(function: Any) -> Any:
    """Return NumPy's shift, with all bits out for a number that is not among those of a type."""

    def shifted(a: Any, b: Any) -> Any:
        bits = 8 * a.itemsize
        inside = (b >= 0) & (b < bits)
        gone = (
            a >> a.dtype.type(bits - 1)
            if function is np.right_shift and a.dtype.kind == "i"
            else 0
        )
        shifted_in = function(a, np.where(inside, b, 0).astype(b.dtype))
        return np.where(inside, shifted_in, np.asarray(gone, a.dtype))

    return shifted


def floor_divide(a: Any, b: Any) -> Any:
    """Return NumPy's quotients, but infinity divided by a number is infinite, not NaN."""
    endless = np.isinf(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
    quotients = np.floor_divide(a, b)
    return np.where(endless, a / b, quotients).astype(a.dtype) if endless.any() else quotients


ARITHMETIC = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor_divide": floor_divide,
    "remainder": np.remainder,
    "negative": np.negative,
    "abs": np.abs,
}
COMPARED = {"equal": np.equal, "less": np.less, "less_equal": np.less_equal}
OF_FLOATS = {
    "divide": np.divide,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sqrt": np.sqrt,
    "copysign": np.copysign,
}
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
}
SHIFTS = {
    "bitwise_left_shift": shift(np.left_shift),
    "bitwise_right_shift": shift(np.right_shift),
}
LOGICAL = {
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
}
KINDS = {
    "integers": (INTEGERS, ARITHMETIC | COMPARED | BITS | SHIFTS),
    "floats": (FLOATS, ARITHMETIC | COMPARED | OF_FLOATS),
    "booleans": ((dt.bool_,), LOGICAL | COMPARED | BITS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_operation(device, kind):
    dtypes, operations = KINDS[kind]
    for dtype in dtypes:
        if dtype not in device.dtypes:
            continue
        a = numbers(dtype, COUNT)
        b = repeat_special(a)
        roots = []
        for op in operations:
            count = expressions.OPERATIONS[op].operands
            roots.append(apply(op, *(parameter(at, dtype) for at in range(count))))
        for op, root in zip(operations, roots, strict=True):
            group = make_group((COUNT,), [(dtype, (True,))] * len(root.operands), [root])
            (result,) = run(device, group, *(a, b)[: len(root.operands)])
            with np.errstate(all="ignore"):
                right = operations[op](*(a, b)[: len(root.operands)])
            assert result.dtype == right.dtype, (op, dtype)
            np.testing.assert_array_equal(result, right, err_msg=f"{op} of {dtype}")


def wrap(x: Any, target: Any) -> Any:
    """Return floats as integers, by Python's integers of any length."""
    whole = [int(each) if np.isfinite(each) else 0 for each in x]
    return np.array([each % 2**64 for each in whole], np.uint64).astype(target.numpy)


def test_every_conversion(device):
    known = [*FLOATS, *INTEGERS, dt.bool_]
    for source in known:
        x = numbers(source, COUNT)
        if source in FLOATS:
            with np.errstate(over="ignore"):
                for at, power in enumerate((14, 40, 62)):
                    x[200 + 100 * at : 300 + 100 * at] *= np.ldexp(x.dtype.type(1), power)
        targets = [target for target in known if target is not source]
        roots = [expressions.cast(parameter(0, source), target) for target in targets]
        results = run(device, make_group((COUNT,), [(source, (True,))], roots), x)
        for target, result in zip(targets, results, strict=True):
            with np.errstate(all="ignore"):
                wrapped = source in FLOATS and target in dt.INTEGER
                right = wrap(x, target) if wrapped else x.astype(target.numpy)
            np.testing.assert_array_equal(result, right, err_msg=f"{source} to {target}")


def test_bits(device):
    pairs = ((dt.float16, dt.int16), (dt.float32, dt.uint32), (dt.float64, dt.int64))
    for real, whole in pairs:
        x = numbers(real, COUNT)
        forth = expressions.bitcast(parameter(0, real), whole)
        back = expressions.bitcast(forth ^ 1, real)
        results = run(device, make_group((COUNT,), [(real, (True,))], [forth, back]), x)
        bits = x.view(whole.numpy)
        number = ~np.isnan(x)  # widening may change the bits of NaN
        np.testing.assert_array_equal(results[0][number], bits[number])
        right = (bits ^ 1).view(real.numpy)
        np.testing.assert_array_equal(results[1][number], right[number])


def test_mixed_dtypes_and_multiple_outputs(device):
    x, y, n, c = (parameter(at, d) for at, d in enumerate(
        (dt.float32, dt.float64, dt.int8, dt.bool_)
    ))  # fmt: skip
    wide = expressions.cast(x, dt.float64) * y
    less = apply("logical_or", wide < 1.5, c)
    small = expressions.where(less, n, 3)
    outputs = [
        wide,
        less,
        small,
        expressions.where(c, less, n > 0),
        expressions.cast(less, dt.float32),
    ]
    arrays = [numbers(p.dtype, COUNT) for p in (x, y, n, c)]
    group = make_group((COUNT,), [(p.dtype, (True,)) for p in (x, y, n, c)], outputs)
    results = run(device, group, *arrays)
    a, b, m, d = arrays
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b
    under = (product < 1.5) | d
    right = [
        product,
        under,
        np.where(under, m, np.int8(3)),
        np.where(d, under, m > 0),
        under.astype(np.float32),
    ]
    for result, expected in zip(results, right, strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shape", [(3, 37, 5), (2, 1, 700), (1, 1, 1)])
def test_inputs_repeat_along_axes(device, shape):
    spans = [(True, True, True), (False, True, False), (True, False, True), (False,) * 3,
             (False, False, True), (True, False, False)]  # fmt: skip
    arrays = [
        RNG.standard_normal([n if each else 1 for n, each in zip(shape, own, strict=True)])
        .astype(np.float32)
        for own in spans
    ]  # fmt: skip
    total = parameter(0, dt.float32)
    for at in range(1, len(spans)):
        total = total * 2.0 + parameter(at, dt.float32)
    group = make_group(shape, [(dt.float32, own) for own in spans], [total])
    flat = [
        array.reshape([n for n, each in zip(shape, own, strict=True) if each])
        for array, own in zip(arrays, spans, strict=True)
    ]
    (result,) = run(device, group, *flat)
    right = arrays[0]
    for array in arrays[1:]:
        right = right * np.float32(2) + array
    np.testing.assert_array_equal(result, right)


def test_elementary_functions(device, near):
    x = np.concatenate([np.linspace(-3, 3, 500), [0.0, -0.0, 1e-30, 700.0, -700.0]])
    for dtype, wide in ((dt.float32, np.float64), (dt.float64, np.longdouble)):
        operand = x.astype(dtype.numpy)
        names = {"exp": np.exp, "expm1": np.expm1, "tanh": np.tanh, "sin": np.sin}
        roots = [expressions.function(name, parameter(0, dtype)) for name in names]
        results = run(device, make_group((x.size,), [(dtype, (True,))], roots), operand)
        for name, result in zip(names, results, strict=True):
            with np.errstate(all="ignore"):
                near(result, names[name](operand.astype(wide)), dtype, ulp=2)


def test_constants(device):
    values = {
        dt.float32: [np.inf, -np.inf, np.nan, -0.0, 0.1, 1e-45, 3e38],
        dt.float64: [0.1, 5e-324, -1.5],
        dt.int8: [-128, 127],
        dt.int64: [-(2**63), 2**63 - 1],
        dt.uint64: [2**64 - 1],
        dt.bool_: [True, False],
    }
    for dtype, own in values.items():
        roots = [
            expressions.where(parameter(0, dt.bool_), expressions.constant(v, dtype),
                              expressions.constant(v, dtype))
            for v in own
        ]  # fmt: skip
        group = make_group((40,), [(dt.bool_, (True,))], roots)
        for value, result in zip(own, run(device, group, np.ones(40, bool)), strict=True):
            right = np.full(40, value, dtype.numpy)
            np.testing.assert_array_equal(result, right)
            if dtype in FLOATS:
                np.testing.assert_array_equal(np.signbit(result), np.signbit(right))


def test_what_is_declined(device):
    full = (True,)
    z = parameter(0, dt.complex64)
    assert device.compile_group(make_group((9,), [(dt.complex64, full)], [z * z])) is None
    many = [(dt.float32, full)] * 80
    sums = parameter(0, dt.float32)
    for at in range(1, 80):
        sums = sums + parameter(at, dt.float32)
    assert device.compile_group(make_group((9,), many, [sums])) is None


def test_a_group_without_elements(device):
    group = make_group((0, 3), [(dt.float32, (True, True))], [parameter(0, dt.float32) * 2.0])
    (result,) = run(device, group, np.zeros((0, 3), np.float32))
    assert result.shape == (0, 3)


def test_programs_serve_all_numbers(device):
    """Groups that differ in bounds and lengths share a program; their results differ."""
    x = RNG.standard_normal(40).astype(np.float32)
    built = []
    for low, high in ((-0.25, 0.75), (0.1, 0.3)):
        p = parameter(0, dt.float32)
        clipped = apply("minimum", apply("maximum", p, low), high)
        (result,) = run(device, make_group((40,), [(dt.float32, (True,))], [clipped]), x)
        np.testing.assert_array_equal(result, np.clip(x, np.float32(low), np.float32(high)))
        built.append(device.memory()["programs"])
    assert built[0] == built[1]


@pytest.mark.parametrize("dtype", [dt.float32, dt.int32, dt.int8])
def test_a_likely_choice_is_a_choice(device, dtype):
    """In vectors with no, some and all lanes that need the second choice, also one inside."""
    full = (True,)
    x = parameter(0, dtype)
    inner = expressions.where(x < 70, x - 3, x * x, likely=True)
    root = expressions.where(x < 50, x + 1, inner + inner, likely=True) * 2
    group = make_group((COUNT,), [(dtype, full)], [root])
    for share in (0.0, 0.05, 1.0):
        array = RNG.integers(-9, 9, COUNT).astype(dtype.numpy)
        array[RNG.random(COUNT) < share] += np.array(62, dtype.numpy)
        rare = np.where(array < 70, array - 3, array * array)
        expected = np.where(array < 50, array + 1, rare + rare) * dtype.numpy.type(2)
        np.testing.assert_array_equal(run(device, group, array)[0], expected)

"""Operations of groups, by LLVM and by NumPy: each with each dtype, on edges and at random."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    SettingsError,
    TensorType,
    expressions,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu import blocks
from tensorplug_cpu.blocks import groups
from tensorplug_cpu.jit.codegen import settings
from tensorplug_cpu.jit.codegen.compiler import is_available
from tensorplug_cpu.jit.groups import kernels
from tensorplug_cpu.numerics import casting

COMPILERS = {
    "LLVM": pytest.param(
        kernels.compile_group,
        marks=pytest.mark.skipif(not is_available(), reason="llvmlite is not installed"),
    ),
    "NumPy": blocks.compile_group,
}
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, -7.25, 1e-7, 300.0, -70000.0]
FLOATS += [np.inf, -np.inf, np.nan, 6e-8, 2.0**31, -(2.0**31), 2.0**32 + 2.0**10, 2.0**63]
WIDE = [2.0**64 + 2.0**13, -(2.0**70), 1e300, 5e-324, 1 + 2.0**-30, 2049 + 2.0**-20, 65519.999]
WHOLE = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 64, 100]


def samples(dtype):
    """Return edges of a dtype and some more."""
    generator = np.random.default_rng(5)
    kind = dtype.numpy
    if dtype is dt.bool_:
        return np.array([False, True, True])
    if dtype in dt.FLOATING:
        edges = [*FLOATS, *(WIDE if dtype is dt.float64 else [])]
        edges += [dtype.max, dtype.smallest_normal, dtype.eps]
        with np.errstate(all="ignore"):
            return np.array([*edges, *generator.normal(size=7)]).astype(kind)
    if dtype in dt.COMPLEX:
        return (generator.normal(size=20) + 1j * generator.normal(size=20)).astype(kind)
    own = np.iinfo(kind)
    edges = [own.min, own.max, own.min + 1, *WHOLE]
    edges += [-1, -2, -8, -64] if dtype in dt.SIGNED else []
    return np.array(edges, kind)


def tuples(dtypes):
    """Return all combinations of samples, one array for each operand."""
    grid = np.meshgrid(*map(samples, dtypes), indexing="ij")
    return [np.ascontiguousarray(each.reshape(-1)) for each in grid]


@pytest.fixture(params=COMPILERS.values(), ids=COMPILERS)
def evaluate(request, monkeypatch):
    """Compute an expression of as many parameters as there are arrays, in several blocks."""
    monkeypatch.setenv(settings.JIT, "always")
    for name, size in (("LEAST", 1), ("BLOCK", 64), ("_SHARED", 500)):
        monkeypatch.setattr(groups, name, size)

    def run(root, arrays):
        types = [TensorType(dt.of(each.dtype), each.shape) for each in arrays]
        inputs = tuple(GroupInput(each, (True,)) for each in types)
        shape = arrays[0].shape
        output = GroupOutput(root, TensorType(root.dtype, shape), (True,))
        call = request.param(Group("test", shape, inputs, (), (output,)))
        if call is None:
            lacks = {dt.bfloat16} if request.param is blocks.compile_group else dt.COMPLEX
            nodes = expressions.linearize([root])
            assert lacks & {each.dtype for each in nodes} or "erfc" in {each.op for each in nodes}
            pytest.skip("LLVM has no complex numbers, NumPy neither bfloat16 nor erfc")
        (result,) = call(*arrays)
        return result

    return run


def floor_divide(a, b):
    """Divide and round down; NumPy makes NaN of an infinite dividend."""
    quotient = np.floor_divide(a, b)
    if a.dtype.kind != "f":
        return quotient
    return np.where(np.isinf(a), a / b, quotient)


FORMULAS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "floor_divide": floor_divide,
    "remainder": np.remainder,
    "negative": np.negative,
    "abs": np.absolute,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sqrt": np.sqrt,
    "copysign": np.copysign,
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "where": np.where,
}
ZEROS_OF_ANY_SIGN = {"maximum", "minimum"}
CASES = [
    (name, dtype)
    for name in FORMULAS
    for dtype in sorted(expressions.OPERATIONS[name].dtypes, key=str)
]


def compare(actual, expected, *, signs=True):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if actual.dtype.kind == "V":  # NumPy finds no NaN in bfloat16
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(actual, expected)
    if signs and actual.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_an_operation(evaluate, name, dtype):
    operation = expressions.OPERATIONS[name]
    dtypes = [dtype] * operation.operands
    if name == "where":
        dtypes[0] = dt.bool_
    arrays = tuples(dtypes)
    root = expressions.apply(name, *map(expressions.parameter, range(len(dtypes)), dtypes))
    with np.errstate(all="ignore"):
        given = [each.astype(dt.of(each.dtype).compute.numpy, copy=False) for each in arrays]
        expected = np.asarray(FORMULAS[name](*given)).astype(root.dtype.numpy, copy=False)
    compare(evaluate(root, arrays), expected, signs=name not in ZEROS_OF_ANY_SIGN)


def test_every_operation_is_tested():
    assert set(FORMULAS) | {"fma"} == set(expressions.OPERATIONS)


@pytest.mark.parametrize("dtype", sorted(dt.FLOATING - dt.WIDENED, key=str), ids=str)
def test_fma_rounds_once_or_twice(evaluate, dtype):
    generator = np.random.default_rng(6)
    arrays = [generator.normal(size=1000).astype(dtype.numpy) for _ in range(3)]
    actual = evaluate(
        expressions.apply("fma", *(expressions.parameter(k, dtype) for k in range(3))), arrays
    )
    a, b, c = (array.astype(np.longdouble) for array in arrays)
    once = (a * b + c).astype(dtype.numpy)
    twice = ((arrays[0] * arrays[1]) + arrays[2]).astype(dtype.numpy)
    assert actual.dtype == dtype.numpy
    near = np.abs(actual - once) <= np.spacing(np.abs(once))
    assert (near | (actual == twice)).all()


CASTS = [
    (source, target)
    for source in sorted(dt.FIXED - dt.COMPLEX, key=str)
    for target in sorted(dt.FIXED - dt.COMPLEX, key=str)
    if source is not target
]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=str)
def test_a_cast(evaluate, source, target):
    (array,) = tuples([source])
    root = expressions.cast(expressions.parameter(0, source), target)
    with np.errstate(all="ignore"):
        expected = casting.converter(source, target)(array)
    compare(evaluate(root, [array]), expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [(dt.float32, dt.int32), (dt.uint64, dt.float64), (dt.int16, dt.float16), (dt.int8, dt.uint8)],
    ids=str,
)
def test_a_bitcast(evaluate, source, target):
    (array,) = tuples([source])
    root = expressions.bitcast(expressions.parameter(0, source), target)
    compare(evaluate(root, [array]).view(np.uint8), array.view(target.numpy).view(np.uint8))


@pytest.mark.parametrize("name", expressions.FUNCTIONS)
@pytest.mark.parametrize("dtype", sorted(dt.FLOATING, key=str), ids=str)
def test_a_function(evaluate, name, dtype):
    """The accuracy of the expansions has its own tests; here, that each is computed at all."""
    generator = np.random.default_rng(7)
    count = expressions.FUNCTIONS[name]
    arrays = [generator.uniform(0.1, 0.9, 100).astype(dtype.numpy) for _ in range(count)]
    if name == "acosh":
        arrays[0] += dtype.numpy.type(1)
    formula = {"erf": np.vectorize(__import__("math").erf)}.get(name) or getattr(np, name, None)
    if formula is None:
        formula = np.vectorize(__import__("math").erfc)
    wide = [array.astype(np.float64) for array in arrays]
    expected = formula(*wide).astype(dtype.numpy)
    root = expressions.function(name, *(expressions.parameter(k, dtype) for k in range(count)))
    actual = evaluate(root, arrays)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_almost_equal_nulp(actual, expected, nulp=8)


@pytest.mark.parametrize("dtype", sorted(dt.FIXED - dt.COMPLEX, key=str), ids=str)
def test_constants(evaluate, dtype):
    (array,) = tuples([dtype])
    values = [True] if dtype is dt.bool_ else [3, -1] if dtype in dt.SIGNED else [3]
    values += [0.1, -0.0, float("inf"), float("nan"), 1e6] if dtype in dt.FLOATING else []
    for value in values:
        root = expressions.where(
            expressions.apply("equal", *[expressions.parameter(0, dtype)] * 2),
            expressions.constant(value, dtype),
            expressions.parameter(0, dtype),
        )
        with np.errstate(all="ignore"):
            number = np.array(value).astype(dtype.numpy)
            expected = np.where(np.equal(array, array), number, array)
        compare(evaluate(root, [array]), expected.astype(dtype.numpy))


@pytest.mark.parametrize("value", ["2", "yes", "ALWAYS"])
def test_a_wrong_setting(monkeypatch, value):
    monkeypatch.setenv(settings.JIT, value)
    with pytest.raises(SettingsError, match=f"TENSORPLUG_CPU_JIT='{value}': must be 0, 1 or"):
        settings.least_elements()


@pytest.mark.parametrize(("value", "least"), [("0", None), ("1", 1 << 15), ("", 1 << 15)])
def test_the_setting(monkeypatch, value, least):
    monkeypatch.setenv(settings.JIT, value)
    assert settings.least_elements() == least
    if least:
        assert settings.is_worthwhile(least)
        assert not settings.is_worthwhile(least - 1)
    else:
        assert not settings.is_worthwhile(1 << 40)

"""Elementwise kernels walk their operands: on CPUs in runs, on GPUs one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.shapes import broadcast
from tensorplug.contract.spec import TensorType
from tensorplug.ops.elementwise import arithmetic
from tensorplug_opencl.codegen import pointwise
from tensorplug_opencl.codegen.pointwise import Formula
from tensorplug_opencl.codegen.walks import RUN

GROUP = 8 * RUN  # elements of a group of work-items, on a CPU


@pytest.fixture(params=["runs", "one by one"])
def device(request, backend):
    """Return a backend that writes programs for CPUs, or for GPUs."""
    backend.runtime.is_cpu = request.param == "runs"
    return backend


def compute(backend, formula, **inputs):
    """Return a formula's values for arrays of one dtype."""
    out = broadcast(*(operand.shape for operand in inputs.values()))
    types = {
        name: TensorType(dt.of(operand.dtype), operand.shape) for name, operand in inputs.items()
    }
    result = TensorType(next(iter(types.values())).dtype, out)
    kernel = pointwise.prepare_formula(backend.runtime, "test", formula, types, result)
    return backend.to_host(kernel(*(backend.from_host(operand) for operand in inputs.values())))


# Whole, a number, a row, a column, and both ways at once; ends within and at runs and groups.
SHAPES = [
    [(1,), (1,), (1,)],
    [(RUN - 1,), (), (RUN - 1,)],
    [(RUN,), (1,), (RUN,)],
    [(GROUP + 1,), (GROUP + 1,), ()],
    [(7, 300), (300,), (7, 1)],
    [(3, RUN), (RUN,), (3, 1)],
    [(5, 1, 33), (4, 1), (33,)],
    [(2, 3, 5, 7), (3, 1, 7), (2, 1, 5, 1)],
    [(GROUP // 2, 3), (3,), (GROUP // 2, 1)],
    [(1, 40), (50, 1), (1, 40)],
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_every_element_meets_its_own(device, shapes):
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-1000, 1000, shape) for shape in shapes)
    actual = compute(device, Formula("a - 3 * b + 5 * c", ring=True), a=a, b=b, c=c)
    np.testing.assert_array_equal(actual, a - 3 * b + 5 * c)


def test_views_with_an_offset_are_read_from_there(device):
    type_ = TensorType(dt.int32, (4, 5))
    whole = device.from_host(np.arange(60, dtype=np.int32))
    kernel = pointwise.prepare_formula(
        device.runtime,
        "test",
        Formula("a + b"),
        {"a": type_, "b": TensorType(dt.int32, (5,))},
        type_,
    )
    actual = device.to_host(kernel(whole.view((4, 5), 7), whole.view((5,), 50)))
    np.testing.assert_array_equal(actual, np.arange(7, 27).reshape(4, 5) + np.arange(50, 55))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


# Functions that formulas may call: the formula, NumPy's counterpart, and the dtypes.
CALLED = {
    "floor_div(a, b)": (np.floor_divide, ("float32", "float64", "int8", "int64", "uint16")),
    "floor_mod(a, b)": (np.remainder, ("float32", "float64", "int8", "int64", "uint16")),
    "power(a, b)": (np.power, ("uint8", "uint64")),
    "logistic(a) * b": (lambda a, b: sigmoid(a) * b, ("float16", "float32", "float64")),
    "(A)wrapped(a) + b": (lambda a, b: np.trunc(a) + b, ("float32", "float64")),
    "a_sqrt(b) + a_fabs(a)": (lambda a, b: np.sqrt(b) + np.abs(a), ("float32", "float64")),
}


@pytest.mark.parametrize("formula", CALLED)
def test_functions_that_formulas_call(device, near, formula):
    function, dtypes = CALLED[formula]
    for dtype in dtypes:
        if dt.of(dtype) not in device.dtypes:
            continue
        unsigned = formula.startswith(("(A)", "power")) or dtype.startswith("u")
        a = np.arange(0 if unsigned else -60, 100).astype(dtype)
        b = (1 + np.arange(a.size) % 7).astype(dtype)
        near(compute(device, Formula(formula), a=a, b=b), function(a, b), dtype, ulp=3)


def test_programs_depend_on_the_way_of_walking_not_on_sizes(device):
    for length in (3, 70, 5000):
        for left in ((length, 4), (4,)):
            compute(device, Formula("a + b"), a=np.zeros(left), b=np.zeros((length, 4)))
    assert len(device.runtime.programs) == 2


def test_an_input_that_is_the_result_is_not_copied(device):
    type_ = TensorType(dt.int8, (3,))
    kernel = pointwise.prepare_formula(device.runtime, "test", Formula("x"), {"x": type_}, type_)
    buffer = device.from_host(np.zeros(3, np.int8))
    assert kernel(buffer) is buffer


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_are_exact_for_quotients_of_any_size(call, near, dtype):
    rng = np.random.default_rng(2)
    a = (rng.normal(size=4000) * 10.0 ** rng.uniform(-30, 30, 4000)).astype(dtype)
    b = (rng.normal(size=4000) * 10.0 ** rng.uniform(-30, 30, 4000)).astype(dtype)
    b[:2000] = (a[:2000] / rng.integers(1, 1 << 21, 2000)).astype(dtype)  # nearly whole
    rest = np.fmod(a, b)  # which is exact
    turned = np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    near(call(arithmetic.MOD, a, b), turned, dtype)


def test_sums_of_many_arrays_lose_little(call):
    """One after the other, 0.1 a thousand times is 99.999 in float32."""
    actual = call(arithmetic.ADD_N, [np.full(3, 0.1, np.float32)] * 1000)
    assert abs(actual - np.float32(100)).max() <= 2e-5

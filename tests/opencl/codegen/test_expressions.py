"""Groups as kernels: constants, what is declined, and which programs serve several groups."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    KernelRefusedError,
    TensorType,
    expressions,
)
from tensorplug.plugin import dtypes as dt

RNG = np.random.default_rng(11)
FLOATS = (dt.float16, dt.float32, dt.float64)
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
    with pytest.raises(KernelRefusedError, match="81 arrays are too many"):
        device.compile_group(make_group((9,), many, [sums]))


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

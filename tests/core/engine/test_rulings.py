"""What dtypes decide of calls is decided once, for all sizes."""

from __future__ import annotations

import pytest
from tests.core.support import engines
from tests.core.support.engines import expect, using

import tensorplug as tp
from tensorplug.contract import attributes
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import KernelTable
from tensorplug.engine import resolution
from tensorplug.errors import KernelNotFoundError, KernelRefusedError
from tensorplug.ops.elementwise.arithmetic import SQUARED_DIFFERENCE


@pytest.fixture
def asked(monkeypatch):
    """The calls for which all ways to run are tried."""
    specs = []

    def resolve(engine, plan):
        specs.append(plan.describe())
        return resolve_all(engine, plan)

    resolve_all = resolution.resolve
    monkeypatch.setattr(resolution, "resolve", resolve)
    return specs


def test_further_sizes_only_prepare_the_kernel(engine, asked):
    for length in (1, 2, 3):
        expect(tp.negative(tp.ones(length)), "float32", (length,), [-1] * length)
    asked.remove("Neg(x=float32[1])")
    with tp.register_kernel("Neg", "memory", lambda x: x * 100, override=True):
        for length in (4, 5):
            expect(tp.negative(tp.ones(length)), "float32", (length,), [100] * length)
    expect(tp.negative(tp.ones(6)), "float32", (6,), [-1] * 6)
    assert [each for each in asked if each.startswith("Neg")] == [
        "Neg(x=float32[4])",
        "Neg(x=float32[6])",
    ]
    assert len(engine.devices.active.rulings) == len({each.partition("[")[0] for each in asked})


def test_a_kernel_may_decline_some_sizes(asked):
    kernels = KernelTable()

    @kernels.prepare(SQUARED_DIFFERENCE)
    def prepare(a, b):
        if a.size > 2:
            raise KernelRefusedError("too long")
        return lambda a, b: a * 0 + 100  # noqa: ARG005

    engine = engines.make({"memory": [engines.basic_kernels(), kernels]})
    with using(engine), tp.register_kernel("Sub", "memory", lambda a, b: a - b):
        for length, value in ((1, 100), (3, 4), (2, 100), (4, 4)):
            x, y = tp.asarray([5.0] * length), tp.asarray([3.0] * length)
            expect(tp.squared_difference(x, y), "float32", (length,), [value] * length)
    assert [each for each in asked if each.startswith("Squared")] == [
        f"SquaredDifference(a=float32[{length}], b=float32[{length}])" for length in (1, 3, 4)
    ]


def test_the_dtype_of_the_output_decides_too(asked):
    spec = KernelSpec(
        "Counts",
        ("x",),
        lambda x, *, dtype: tp.TensorType(dtype, x.shape),
        attributes={"dtype": attributes.dtype()},
        typed_by="",
    )
    with (
        using(engines.make()),
        tp.register_kernel(spec, "memory", lambda x: x, dtypes=["float32"]),
    ):
        short, long = tp.ones(1), tp.ones(2)
        expect(tp.run_kernel(spec, [short], {"dtype": "float32"}), "float32", (1,), [1])
        expect(tp.run_kernel(spec, [long], {"dtype": "float32"}), "float32", (2,), [1, 1])
        with pytest.raises(KernelNotFoundError, match="does not take float64"):
            tp.run_kernel(spec, [tp.ones(3)], {"dtype": "float64"})
    counted = [each for each in asked if each.startswith("Counts")]
    assert counted == ["Counts(x=float32[1])", "Counts(x=float32[3])"]

"""Calls of narrow floats that a backend leaves to the engine, which computes them in float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import using

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.attributes import dtype as dtype_attribute
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.contract.tables import KernelTable
from tensorplug.errors import KernelRefusedError
from tensorplug.ops import movement, reduction
from tensorplug.ops.elementwise.arithmetic import ADD
from tensorplug.plugin import specs

B = dt.bfloat16
NARROW = ["bfloat16", "float16"]


SUM_OF_TWO = KernelSpec(
    "SumOfTwo", ("a", "b"), inference.broadcast, accepts=dt.NUMERIC, promote=("a", "b")
)


def two(a: TensorType, rest: list, scale: TensorType | None, *, dtype) -> tuple:
    return TensorType(dtype, a.shape), TensorType(dt.int32, a.shape)


ODD = KernelSpec(
    "Odd",
    ("a", "rest[]", "scale?"),
    two,
    attributes={"dtype": dtype_attribute()},
    outputs=("total", "count"),
    accepts=dt.FLOATING,
)


def names(*arrays):
    return [None if x is None else dt.of(x.dtype).name for x in arrays]


def leave(engine, *dtypes):
    """Let the engine ask each kernel of the backend for each dtype but these."""
    device = engine.open("memory")
    device.capabilities = replace(device.capabilities, widens=frozenset(dtypes))


@pytest.fixture
def seen():
    """The dtypes of the inputs of each call of a kernel."""
    return []


def adding(seen, **options):
    """Return an engine with a kernel that adds, in the dtype that it gets."""
    table = KernelTable()

    @table.register(SUM_OF_TWO, **options)
    def sum_of_two(a, b):
        seen.append(names(a, b))
        return np.asarray(np.add(a, b))

    return engines.make({"memory": [engines.basic_kernels(), table]})


def test_a_kernel_that_names_no_dtypes_gets_float32(seen):
    with using(adding(seen)):
        x = tp.asarray([1.0, 2.0], dtype=B)
        result = tp.run_kernel(SUM_OF_TWO, {"a": x, "b": x}, {})
        assert (result.dtype, result.tolist()) == (B, [2, 4])
        explanation = tp.explain(SUM_OF_TWO, [x, x])
        assert (explanation.how, explanation.steps) == (
            "widened",
            (
                ("native", "the kernel of memory-distribution 2.0 names no dtypes"),
                ("widened", "in float32"),
            ),
        )
    assert seen == [["float32", "float32"]]


def test_float16_is_asked_for(seen):
    with using(adding(seen)):
        x = tp.asarray([1.0, 2.0], dtype="float16")
        assert tp.run_kernel(SUM_OF_TWO, {"a": x, "b": x}, {}).dtype is dt.float16
    assert seen == [["float16", "float16"]]


@pytest.mark.parametrize(
    ("dtype", "numbers", "options", "got", "sums"),
    [
        ("int8", [100, -3], {}, "int32", [-56, -6]),  # they wrap as a kernel of int8 does
        ("uint8", [200, 3], {}, "int32", [144, 6]),
        ("int16", [1 << 14, 3], {}, "int32", [-(1 << 15), 6]),
        ("int8", [100, -3], {"dtypes": [dt.int8]}, "int8", [-56, -6]),
        ("uint32", [1 << 31, 3], {}, "uint32", [0, 6]),  # not small
    ],
)
def test_small_integers_that_a_backend_leaves(seen, dtype, numbers, options, got, sums):
    engine = adding(seen, **options)
    leave(engine, *dt.INTEGER)
    with using(engine):
        x = tp.asarray(numbers, dtype=dtype)
        result = tp.run_kernel(SUM_OF_TWO, {"a": x, "b": x}, {})
        assert (result.dtype.name, result.tolist()) == (dtype, sums)
        how = tp.explain(SUM_OF_TWO, [x, x]).how
        assert how == tp.explain(SUM_OF_TWO, dtype=dtype).how
        assert how == ("native" if got == dtype else "widened")
    assert seen == [[got, got]]


def test_small_integers_are_decomposed_before_they_are_widened():
    table = KernelTable()

    @table.register(specs.SQUARE)
    def unasked(x):
        raise AssertionError

    engine = engines.make({"memory": [engines.basic_kernels(), table]})
    leave(engine, dt.int8)
    with using(engine):
        told = tp.explain(specs.SQUARE, [tp.asarray([7], dtype="int8")])
    assert [how for how, _ in told.steps] == ["native", "decomposed"]
    assert told.steps[0][1] == "the kernel of memory-distribution 2.0 names no dtypes"


@pytest.mark.parametrize(("dtypes", "got"), [([B], "bfloat16"), ([dt.float32], "float32")])
def test_a_kernel_that_names_dtypes(seen, dtypes, got):
    with using(adding(seen, dtypes=dtypes)):
        x = tp.asarray([1.0, 2.0], dtype=B)
        result = tp.run_kernel(SUM_OF_TWO, {"a": x, "b": x}, {})
        assert (result.dtype, result.tolist()) == (B, [2, 4])
    assert seen == [[got, got]]


@pytest.mark.parametrize("dtype", NARROW)
def test_a_kernel_that_declines(dtype):
    table = KernelTable()

    @table.prepare(SUM_OF_TWO)
    def prepare(a, b):
        if a.dtype.compute is not a.dtype:
            raise KernelRefusedError("too narrow")
        return lambda a, b: np.asarray(np.add(a, b))

    engine = engines.make({"memory": [engines.basic_kernels(), table]})
    with using(engine):
        leave(engine)
        x = tp.asarray([1.0, 2.0], dtype=dtype)
        result = tp.run_kernel(SUM_OF_TWO, {"a": x, "b": x}, {})
        assert (result.dtype.name, result.tolist()) == (dtype, [2, 4])
        assert tp.explain(SUM_OF_TWO, [x, x]).steps == (
            ("native", "the kernel of memory-distribution 2.0 declined: too narrow"),
            ("widened", "in float32"),
        )


def test_a_backend_that_wants_to_be_asked(seen):
    engine = adding(seen)
    with using(engine):
        leave(engine)
        x = tp.asarray([1.0, 2.0], dtype=B)
        assert tp.run_kernel(SUM_OF_TWO, {"a": x, "b": x}, {}).dtype is B
    assert seen == [["bfloat16", "bfloat16"]]


@pytest.mark.parametrize("scale", [None, 2.0])
def test_lists_absent_inputs_attributes_and_several_outputs(seen, scale):
    table = KernelTable()

    @table.register(ODD)
    def odd(a, rest, scale, *, dtype):
        seen.append([*names(a, *rest, scale), dtype.name])
        total = sum(rest, a) * (1 if scale is None else scale)
        return [np.asarray(total).astype(dtype.numpy), np.full(a.shape, len(rest), np.int32)]

    with using(engines.make({"memory": [engines.basic_kernels(), table]})):
        x = tp.asarray([1.0, 2.0], dtype=B)
        wide = tp.asarray([4.0, 4.0])  # an input that is not narrow stays as it is
        times = None if scale is None else tp.asarray(scale, dtype=B)
        for _ in range(3):  # step by step, then as a program
            total, count = tp.run_kernel(
                ODD, {"a": x, "rest": [x, wide], "scale": times}, {"dtype": B}
            )
            assert (total.dtype, count.dtype) == (B, dt.int32)
            assert total.tolist() == [number * (scale or 1) for number in (6, 8)]
    assert seen[0] == [*["float32"] * 3, scale and "float32", "float32"]


def test_kernels_that_move_elements_keep_the_dtype(seen):
    table = KernelTable()

    @table.register(movement.TRANSPOSE)
    def transpose(x, *, perm):
        seen.append(names(x))
        return x.transpose(perm)

    with using(engines.make({"memory": [engines.basic_kernels(), table]})):
        assert tp.asarray([[1.0, 2.0]], dtype=B).T.dtype is B
    assert seen == [["bfloat16"]]


def test_a_sum_that_rounds_once():
    """The backend adds in the dtype that it gets."""
    with using(engines.make()):
        ones = tp.ones((4096,), dtype=B)
        assert tp.sum(ones).item() == 4096
        assert (
            tp.explain(reduction.SUM, [ones], {"axis": (0,), "keep_dims": False}).how == "widened"
        )


def test_a_backend_without_float32_cannot_widen():
    engine = engines.make()
    engine.devices.source.dtypes["memory"] = frozenset({B, dt.int32})
    with using(engine):
        x = tp.asarray([1.0, 2.0], dtype=B)
        assert tp.explain(ADD, [x, x]).how == "native"


def test_gradients_pass_the_casts():
    with using(engines.make()):
        x = tp.asarray([0.5, 1.0], dtype=B)
        gradient = tp.grad(lambda x: tp.sum(tp.exp(x) * x))(x)
        exact = np.exp([0.5, 1.0]) * np.array([1.5, 2.0])
        assert gradient.dtype is B
        np.testing.assert_allclose(gradient.numpy().astype(np.float64), exact, rtol=2.0**-7)

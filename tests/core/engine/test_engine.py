"""The engine: devices, transfers, scalars and attributes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import expect, spec_of, using

import tensorplug as tp
from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    BackendNotInstalledError,
    BackendUnavailableError,
    DTypeError,
    RegistrationError,
)
from tensorplug.plugin import tensor_from_buffer
from tensorplug.system import distributions

# Devices --------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_set_and_use_backend():
    assert tp.get_backend() == "memory"
    with tp.use_backend("other") as name:
        assert (name, tp.get_backend()) == ("other", "other")
        with tp.use_backend("memory:1"):
            assert tp.get_backend() == "memory:1"
            tp.set_backend("other")  # concerns everyone but those inside use_backend
            assert tp.asarray(1).device == "memory:1"
        assert tp.asarray(1).device == "other"
    assert tp.get_backend() == "other"
    assert tp.add(tp.asarray(1), 1).device == "other"


def test_an_error_inside_use_backend_leaves_it(engine):
    with pytest.raises(ZeroDivisionError), tp.use_backend("other"):
        _ = 1 / 0
    with pytest.raises(BackendNotInstalledError), tp.use_backend("none"):
        pytest.fail("entered")
    assert tp.get_backend() == "memory"
    assert [device.name for device in engine.devices.listed()] == ["other", "memory"]


@pytest.mark.parametrize("name", [None, 5, b"memory"])
def test_a_backend_is_named_by_text(engine, name):
    with pytest.raises(ArgumentError, match=f"must be text, such as 'cpu', got {name!r}"):
        tp.set_backend(name)
    assert engine.devices.listed() == []


def test_no_backend_that_opens_is_an_error_with_all_reasons(monkeypatch):
    engine = engines.make(("first", "second"))
    engine.devices.source.refusals = {
        name: BackendUnavailableError(f"{name}: no hardware") for name in ("first", "second")
    }
    with pytest.raises(BackendUnavailableError) as caught:
        _ = engine.devices.active
    assert "first: no hardware" in str(caught.value)
    assert "second: no hardware" in str(caught.value)
    monkeypatch.setattr(distributions, "find_spec", lambda _: None)
    with pytest.raises(BackendNotInstalledError, match="pip install tensorplug-cpu"):
        _ = engines.make(()).devices.active


def test_a_backend_whose_kernels_clash_is_closed_and_registers_nothing():
    clashing = [engines.basic_kernels(), engines.basic_kernels()]
    engine = engines.make({"memory": clashing})
    with pytest.raises(
        RegistrationError, match="'Add' for backend 'memory' is already registered"
    ):
        engine.open("memory")
    assert engine.devices.listed() == []
    assert engine.devices.source.backends["memory"].closed
    assert not engine.registry.state.kernels


def test_two_devices_of_one_backend_share_its_kernels(engine):
    with tp.use_backend("memory:0"):
        x = tp.asarray([1.0])
    with tp.use_backend("memory:1"):
        expect(tp.add(x, x), "float32", (1,), [2])
    assert len([key for key in engine.registry.state.kernels if key[0] == "Add"]) == 1


# Closing --------------------------------------------------------------------------------


def test_a_closed_backend(engine):
    x = tp.asarray([1.0])
    tp.add(x, x)
    engine.devices.close("memory")
    assert engine.devices.source.backends["memory"].closed
    uses = [x.numpy, x.item, lambda: x.device, lambda: x + 1, lambda: tp.add(x, x), x.tolist]
    for use in uses:
        with pytest.raises(BackendClosedError, match=r"float32\[1\].* 'memory', which was closed"):
            use()
    assert "closed" in repr(x)
    expect(tp.add(tp.asarray([1.0]), 1), "float32", (1,), [2])  # opened anew
    with pytest.raises(BackendClosedError):
        tp.add(x, 1)
    with pytest.raises(ArgumentError, match="no open device is called 'nothing'"):
        engine.devices.close("nothing")


def test_a_backend_closed_inside_use_backend(engine):
    with tp.use_backend("other"):
        x = tp.asarray([1.0])
        tp.add(x, x)
        engine.devices.close("other")
        for use in (
            lambda: tp.add(x, x),
            lambda: tp.add(x, 1.0),
            lambda: tp.asarray(1),
            lambda: tp.zeros((2,)),
            tp.get_backend,
            tp.synchronize,
        ):
            with pytest.raises(BackendClosedError, match="'other'"):
                use()
    assert tp.add(tp.asarray(1), 1).item() == 2


# Transfers ------------------------------------------------------------------------------


def test_implicit_transfers_are_counted(engine):
    x = tp.asarray([1.0, 2.0])
    with tp.use_backend("other"):
        y = tp.asarray([10.0, 20.0])
        total = tp.add(x, y)
        expect(total, "float32", (2,), [11, 22])
        assert total.device == "other"
        joined = tp.concat([x, y, x])
        assert (joined.device, joined.shape) == ("other", (6,))
        assert tp.memory()["other"].transfers == 2  # a call copies a tensor once
        expect(tp.add(x, x), "float32", (2,), [2, 4])
    assert tp.memory()["other"].transfers == 3
    assert tp.memory()["memory"].transfers == 0
    assert x.to("other").device == "other"
    assert x.to("memory").device == "memory"
    assert tp.memory()["other"].transfers == 3  # a transfer requested by name is not implicit
    assert engine.devices.source.opened == ["memory", "other"]


def test_a_dtype_that_the_other_backend_lacks():
    engine = engines.make(("memory", "small"))
    engine.devices.source.dtypes["small"] = frozenset({dt.float32})
    with using(engine):
        x = tp.asarray([1.0], dtype="float64")
        with tp.use_backend("small"):
            message = "float64[1] is not possible on backend 'small', whose dtypes are float32"
            for use in (
                lambda: tp.add(x, x),
                lambda: tp.asarray([1.0], dtype="float64"),
                lambda: tp.astype(tp.asarray([1.0]), "float64"),
                lambda: x.to("small"),
            ):
                with pytest.raises(DTypeError, match=re.escape(message)):
                    use()


# Promotion and scalars ------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        ("int32", "float32", "float32"),
        ("int8", "uint8", "int16"),
        ("float32", "float64", "float64"),
        ("int64", "complex64", "complex64"),
    ],
)
def test_mixed_dtypes_are_promoted_before_a_kernel_runs(a, b, dtype):
    x, y = tp.asarray([1, 2], dtype=a), tp.asarray([3, 4], dtype=b)
    for _ in range(2):
        expect(tp.run_kernel("Add", [x, y]), dtype, (2,), [4, 6])
        expect(tp.concat([x, y]), dtype, (4,), [1, 2, 3, 4])


@pytest.mark.usefixtures("engine")
def test_dtypes_without_a_common_one():
    x, y = tp.asarray([1], dtype="uint64"), tp.asarray([1])
    with pytest.raises(
        DTypeError, match=r"^Add\(a=uint64\[1\], b=int32\[1\]\): .*no common dtype"
    ):
        tp.add(x, y)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    ("one", "two"), [(0.0, -0.0), (complex(1, 0.0), complex(1, -0.0)), (complex(-0.0, 1), 1j)]
)
def test_constants_keep_the_sign_of_zero(one, two, first):
    dtype = "float64" if isinstance(one, float) else "complex128"
    x = tp.asarray(np.array([-0.0 if dtype == "float64" else complex(-0.0, -0.0)], dtype))
    for value in [(one, two), (two, one)][first]:
        result = tp.add(x, value).numpy()[0]
        expected = x.numpy()[0] + np.asarray(value, dtype)
        assert repr(complex(result)) == repr(complex(expected)), value


@pytest.mark.usefixtures("engine")
def test_equal_scalars_of_different_types_are_different_constants():
    x = tp.asarray([True])
    for value, dtype in [(1, "int32"), (1.0, "float32"), (1, "int32"), (1j, "complex64")]:
        assert str(tp.add(x, value).dtype) == dtype
    nan = tp.add(tp.asarray(1.0), math.nan)
    assert math.isnan(nan.item())


# Attributes -----------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("values", [(0.0, -0.0), (-0.0, 0.0), (1, True), (1.0, 1)])
def test_equal_attributes_that_differ(values):
    for value in values:
        filled = tp.full((1,), value, dtype="float64").numpy()
        padded = tp.pad(tp.zeros((0,), dtype="float64"), [(1, 0)], value).numpy()
        for actual in (filled, padded):
            assert math.copysign(1, actual[0]) == math.copysign(1, value)
        assert (
            str(tp.full((1,), value).dtype)
            == {
                bool: "bool",
                int: "int32",
                float: "float32",
            }[type(value)]
        )


@pytest.mark.usefixtures("engine")
def test_nan_attributes():
    for _ in range(2):
        assert math.isnan(tp.full((1,), math.nan).item())
        assert math.isnan(tp.full((1,), float("nan")).item())
        assert tp.full((1,), 0.0).item() == 0


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("good", "bad"), [(1, True), (1, 1.0), ([0, 1], [0, True]), ((0, 1), (0.0, 1))]
)
def test_a_cached_plan_does_not_let_a_bad_attribute_pass(good, bad):
    x = tp.asarray(np.ones((2, 3), np.float32))
    tp.sum(x, axis=good)
    with pytest.raises(ArgumentError, match="axis must be an integer"):
        tp.sum(x, axis=bad)
    with pytest.raises(ArgumentError, match="must be True or False, got 1"):
        tp.run_kernel("Sum", [x], {"keep_dims": 1, "axis": good})


@pytest.mark.usefixtures("engine")
def test_attributes_in_any_order_and_as_lists():
    x = tp.asarray(np.arange(6.0).reshape(2, 3))
    for attributes_ in (
        {"axis": [0, 1], "keep_dims": True},
        {"keep_dims": True, "axis": (1, 0)},
        {"keep_dims": True, "axis": None},
        {"keep_dims": True},
    ):
        expect(tp.run_kernel("Sum", {"x": x}, attributes_), "float64", (1, 1), [[15]])


def test_attributes_that_cannot_be_hashed_are_resolved_each_time(engine):
    seen = []

    def canonical(value: dict, _known):
        seen.append(value)
        return tuple(sorted(value.items()))

    spec = spec_of("Custom", attributes={"table": attributes.Attribute(canonical)})
    kernel = lambda x, *, table: x * dict(table)["a"]  # noqa: E731
    with tp.register_kernel(spec, "memory", kernel):
        x = tp.asarray([2.0])
        for factor in (3, 4, 3):
            result = tp.run_kernel(spec, [x], {"table": {"a": np.float32(factor)}})
            expect(result, "float32", (1,), [2 * factor])
    assert len(seen) == 3
    assert engine.devices.active.plans == {}


# Buffers of a backend's own -------------------------------------------------------------


def test_a_buffer_becomes_a_tensor(engine):
    array = np.float32([[1, 2, 3]])
    x = tensor_from_buffer(array, "other")
    assert x.device == "other"
    assert x._buffer is array
    expect(x, "float32", (1, 3), [[1, 2, 3]])
    expect(tp.grad(lambda x: tp.sum(x * x))(x), "float32", (1, 3), [[2, 4, 6]])
    assert tp.memory()["other"].tensors == 1
    assert engine.devices.source.opened == ["other", "memory"]  # the second for the gradient


@pytest.mark.usefixtures("engine")
def test_a_scope_disposes_of_a_tensor_made_of_a_buffer():
    kept = []
    with tp.tidy():
        kept.append(tensor_from_buffer(np.ones(3), "memory"))
        assert tp.memory()["memory"].tensors == 1
    assert tp.memory()["memory"].tensors == 0
    assert kept[0].is_disposed


@pytest.mark.usefixtures("engine")
def test_a_buffer_in_a_compiled_function():
    array = np.float32([1, 2])
    doubled = tp.compile(lambda x: x * tensor_from_buffer(array, "memory"))
    expect(doubled(tp.asarray([3.0, 4.0])), "float32", (2,), [3, 8])


@pytest.mark.parametrize(
    ("buffer", "device", "error", "message"),
    [
        ([1.0], "memory", TypeError, r"\[1.0\] is no array"),
        (np.ones(2, np.complex64), "real", DTypeError, "complex64 is not among the dtypes of"),
        (np.ones(2), "absent", BackendNotInstalledError, "absent"),
    ],
)
def test_what_is_no_buffer_of_a_backend(buffer, device, error, message):
    made = engines.make(("memory", "real"))
    made.devices.source.dtypes["real"] = frozenset({dt.float32})
    with engines.using(made), pytest.raises(error, match=message):
        tensor_from_buffer(buffer, device)

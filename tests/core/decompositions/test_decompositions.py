"""Decompositions: what makes the catalogue whole, and gradients through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.gradient_points import POINTS, as_function
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug import KernelSpec
from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.entries import decomposition_entry
from tensorplug.contract.owner import Owner
from tensorplug.contract.spec import TensorType
from tensorplug.engine.plans import BY_OPS
from tensorplug.errors import KernelNotFoundError, NotConnectedError
from tensorplug.ops.elementwise.unary import TANH
from tensorplug.plugins import catalogue
from tensorplug.testing import check_grads, isolated_engine
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.primitives import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Iterator

DECOMPOSED = sorted(entry.spec.name for table in catalogue.decompositions() for entry in table)


@pytest.fixture(scope="module")
def primitive_engine() -> Iterator[None]:
    """Run the module on an engine whose one backend has nothing but the primitives."""
    with isolated_engine("cpu"):
        for name in tp.kernels_for("cpu"):
            if name not in PRIMITIVES:
                tp.unregister_kernel(name, "cpu")
        yield


TOP = 3e38
ROWS = np.array([[-np.inf] * 3, [TOP, -TOP, TOP]], np.float32)
NO_ROWS, TAPS = np.zeros((2, 0, 4, 2), np.float32), np.ones((2, 3, 2, 3), np.float32)
NO_RESULT = np.zeros((2, 0, 2, 3), np.float32)
MOVES = {"strides": (1, 2), "pad": "same"}
LOWEST = np.full((1, 2, 2, 1), -np.inf, np.float32)
CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], Any]] = {
    # Missing in the conformance suite: kernel, inputs, attributes, result.
    "a float16 sum that overflows": (
        "Mean",
        (np.full(1000, 300.0, np.float16),),
        {},
        np.float16(300),
    ),
    "softmax of the largest": (
        "Softmax",
        (ROWS,),
        {},
        np.array([[np.nan] * 3, [0.5, 0, 0.5]], np.float32),
    ),
    "log-softmax of the largest": (
        "LogSoftmax",
        (ROWS,),
        {},
        np.array([[np.nan] * 3, [-np.log(2), -np.inf, -np.log(2)]], np.float32),
    ),
    "softmax of no classes": ("Softmax", (np.zeros((3, 0)),), {"dim": 1}, np.zeros((3, 0))),
    "log-softmax of no classes": (
        "LogSoftmax",
        (np.zeros((3, 0)),),
        {"axis": 1},
        np.zeros((3, 0)),
    ),
    "deeper than uint8": (
        "OneHot",
        (np.array([0, 255, 7], np.uint8),),
        {"depth": 300},
        np.eye(300, dtype=np.float32)[[0, 255, 7]],
    ),
    "deeper than int8": (
        "OneHot",
        (np.array([-1, 127], np.int8),),
        {"depth": 130},
        np.eye(130, k=127, dtype=np.float32)[[129, 0]],
    ),
    "convolution of no rows": ("Conv2D", (NO_ROWS, TAPS), MOVES, NO_RESULT),
    "images of no rows": (
        "Conv2DBackpropInput",
        (NO_RESULT, TAPS),
        {**MOVES, "input_shape": NO_ROWS.shape},
        NO_ROWS,
    ),
    "filters by no rows": (
        "Conv2DBackpropFilter",
        (NO_ROWS, NO_RESULT),
        {**MOVES, "filter_shape": TAPS.shape},
        np.zeros_like(TAPS),
    ),
    "pooling of no rows": (
        "MaxPool",
        (NO_ROWS,),
        {"filter_size": (2, 3), **MOVES},
        NO_RESULT[..., :2],
    ),
    "gradient of pooling of -inf": (
        "MaxPoolGrad",
        (np.full((1, 1, 1, 1), 7, np.float32), LOWEST, LOWEST[:, :1, :1]),
        {"filter_size": 2, "strides": 2, "pad": "valid"},
        np.array([7, 0, 0, 0], np.float32).reshape(1, 2, 2, 1),
    ),
}


def check(what: str) -> None:
    name, inputs, attributes, expected = CASES[what]
    actual = tp.run_kernel(name, inputs, attributes).numpy()
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.usefixtures("primitive_engine")
@pytest.mark.parametrize("what", CASES)
def test_decomposed_kernels_give_the_result(what: str) -> None:
    name, inputs, attributes, _ = CASES[what]
    assert tp.explain(name, inputs, attributes).how in BY_OPS
    check(what)


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize("what", CASES)
def test_native_kernels_give_the_result(what: str) -> None:
    check(what)


@pytest.mark.slow
@pytest.mark.usefixtures("primitive_engine")
@pytest.mark.parametrize("case", [case for case in POINTS if case.kernel in DECOMPOSED], ids=str)
def test_gradients_go_through_it(case: Any) -> None:
    f, args = as_function(case)
    check_grads(f, args, order=2)


def test_every_decomposition_has_cases() -> None:
    # The conformance suite runs its cases natively and decomposed, on any backend.
    assert sorted(set(DECOMPOSED) - set(entries())) == []


def test_primitives_and_decompositions_make_the_whole_catalogue() -> None:
    everything = {spec.name for spec in catalogue.catalogue()}
    assert sorted(everything - PRIMITIVES - set(DECOMPOSED)) == []
    assert sorted(PRIMITIVES - everything) == []
    assert sorted(PRIMITIVES & set(DECOMPOSED)) == []


# A decomposition that nobody wrote a gradient for ------------------------------------------


SOFT_SIGN = KernelSpec("SoftSign", ("x",), lambda x: x, attributes={"scale": attributes.number(1)})


def soft_sign(x: tp.Tensor, *, scale: float) -> tp.Tensor:
    return x / (tp.abs(x) + scale)


@pytest.mark.usefixtures("own_engine")
def test_without_rules_its_inner_ops_are_differentiated() -> None:
    tp.register_decomposition(SOFT_SIGN, soft_sign)

    def f(x: Any) -> Any:
        return tp.run_kernel(SOFT_SIGN, {"x": x}, {"scale": 2.0})

    x = np.array([0.5, -1.5, 3.0])
    gradient = tp.grad(total(f))(tp.asarray(x))  # d/dx x / (|x| + s) = s / (|x| + s)**2
    np.testing.assert_allclose(gradient.numpy(), 2 / (np.abs(x) + 2) ** 2, rtol=1e-14)
    check_grads(f, [x], order=2)


@pytest.mark.usefixtures("own_engine")
def test_with_rules_of_its_own_they_are_used_and_the_inner_ops_are_not() -> None:
    tp.register_decomposition(SOFT_SIGN, soft_sign)
    with tp.register_gradient(SOFT_SIGN, "x", lambda dy: dy * 7.0):
        gradient = tp.grad(total(lambda x: tp.run_kernel(SOFT_SIGN, {"x": x})))(
            tp.asarray([0.5, 3.0])
        )
        np.testing.assert_array_equal(gradient.numpy(), np.array([7, 7], np.float32))
    # Stated to have no derivative, its inner ops give none either.
    with (
        tp.register_gradient(SOFT_SIGN, "x", None),
        pytest.raises(NotConnectedError),
    ):
        tp.grad(total(lambda x: tp.run_kernel(SOFT_SIGN, {"x": x})))(tp.asarray([0.5, 3.0]))


@pytest.mark.usefixtures("own_engine")
def test_removing_and_restoring_the_native_kernel_changes_the_way_and_not_the_value() -> None:
    x = tp.asarray([[1.0, 2.0, 4.0]])
    before = tp.nn.softmax(x).numpy()
    assert tp.explain("Softmax", [x]).how == "native"
    tp.unregister_kernel("Softmax", "cpu")
    plan = tp.explain("Softmax", [x])
    assert plan.how == "decomposed"
    assert "decomposed: by tensorplug" in str(plan)
    assert "native: not registered" in str(plan)
    np.testing.assert_allclose(tp.nn.softmax(x).numpy(), before, rtol=1e-6)
    with tp.register_kernel("Softmax", "cpu", lambda logits: logits * 0):
        assert tp.explain("Softmax", [x]).how == "native"
        np.testing.assert_array_equal(tp.nn.softmax(x).numpy(), np.zeros((1, 3), np.float32))
    np.testing.assert_allclose(tp.nn.softmax(x).numpy(), before, rtol=1e-6)


# Dtypes ----------------------------------------------------------------------------------


@pytest.fixture
def without_tanh() -> Iterator[None]:
    """Run without the native Tanh, with a decomposition for floats, and without fallback."""
    with isolated_engine("cpu") as engine:
        engine.fallback = "error"
        tp.unregister_kernel("Tanh", "cpu")
        entry = decomposition_entry(TANH, _tanh, dtypes=dt.FLOATING)
        engine.registry.add(Owner("the-test"), decompositions=[entry], override=True)
        yield


def _tanh(x: tp.Tensor) -> tp.Tensor:
    return 1.0 - 2.0 / (tp.exp(2.0 * x) + 1.0)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_a_decomposition_serves_its_dtypes(without_tanh: None, dtype: dt.DType) -> None:
    x = tp.asarray([0.5], dtype=dtype)
    y = tp.tanh(x)
    assert y.type == x.type
    assert abs(y.item() - 0.46211715726000975) < 1e-7
    assert tp.explain("Tanh", dtype=dtype).how == "decomposed"


def test_other_dtypes_are_refused_with_the_reason(without_tanh: None) -> None:
    with pytest.raises(KernelNotFoundError, match="does not take complex64"):
        tp.tanh(tp.asarray([0.5j]))
    for explanation in (
        tp.explain("Tanh", dtype="complex64"),
        tp.explain("Tanh", [TensorType(dt.complex64, (1,))]),
    ):
        assert explanation.how is None
        assert "does not take complex64" in str(explanation)

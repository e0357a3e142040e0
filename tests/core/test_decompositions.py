"""Every decomposition against a formula, against the native kernel, and under differentiation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import KernelSpec
from tensorplug.contract import attributes
from tensorplug.errors import NotConnectedError
from tensorplug.plugins import catalogue
from tensorplug.testing import check_grads, isolated_engine
from tensorplug_conformance.denominator import entries

from .decomposition_cases import CASES
from .gradient_cases import CASES as GRADIENT_CASES
from .gradient_points import as_function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .decomposition_cases import Case

# The kernels from which all others must follow (the design's section 5).
PRIMITIVES = frozenset(
    [
        "Neg", "Abs", "Floor", "Exp", "Log", "Sqrt",
        "Sin", "Cos", "Atan", "Erf", "Add", "Sub",
        "Multiply", "RealDiv", "FloorDiv", "Mod", "Pow", "Maximum",
        "Equal", "Less", "LogicalAnd", "LogicalNot", "Select", "Cast",
        "Fill", "Range", "Identity", "Reshape", "Transpose", "BroadcastTo",
        "Slice", "PadV2", "Concat", "GatherV2", "ScatterNd", "Sum",
        "Prod", "Max", "ArgMax", "BatchMatMul", "TopK",
    ]
)  # fmt: skip
DECOMPOSED = sorted(entry.spec.name for table in catalogue.decompositions() for entry in table)


@pytest.fixture(scope="module")
def primitive_engine() -> Iterator[None]:
    """Run the module on an engine whose one backend has nothing but the primitives."""
    with isolated_engine("cpu"):
        for name in tp.kernels_for("cpu"):
            if name not in PRIMITIVES:
                tp.unregister_kernel(name, "cpu")
        yield


def units_apart(actual: np.ndarray, expected: np.ndarray) -> Any:
    """Return the largest distance in units of the last place of ``expected``."""
    if not expected.size:
        return 0.0
    finite = np.isfinite(expected)
    gap = np.abs(actual.astype(np.longdouble) - expected.astype(np.longdouble))
    return np.max(np.where(finite, gap, 0) / np.spacing(np.abs(np.where(finite, expected, 1))))


def compare(actual: np.ndarray, expected: np.ndarray, ulps: float) -> None:
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if not np.issubdtype(expected.dtype, np.floating) or not ulps:
        np.testing.assert_array_equal(actual, expected)
        return
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(actual[special], expected[special])
    with np.errstate(invalid="ignore"):
        assert units_apart(actual, expected) <= ulps


def run(case: Case) -> np.ndarray:
    result = tp.run_kernel(case.kernel, case.inputs, case.attributes)
    assert isinstance(result, tp.Tensor)
    return np.array(result.numpy())


def expected_of(case: Case, dtype: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        wide = [
            x.astype(np.longdouble) if case.ulps and np.issubdtype(x.dtype, np.floating) else x
            for x in case.inputs
        ]
        return np.asarray(case.formula(*wide)).astype(dtype)


@pytest.fixture(scope="module")
def native() -> dict[str, np.ndarray]:
    """Return what the native kernels give for all cases."""
    with isolated_engine("cpu"):
        return {str(case): run(case) for case in CASES}


@pytest.mark.usefixtures("primitive_engine")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_gives_what_the_formula_says(case: Case) -> None:
    plan = tp.explain(case.kernel, case.inputs, case.attributes)
    assert plan.how == "decomposed"
    actual = run(case)
    compare(actual, expected_of(case, actual.dtype), case.ulps)


@pytest.mark.usefixtures("primitive_engine")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_gives_what_the_native_kernel_gives(case: Case, native: dict[str, np.ndarray]) -> None:
    compare(run(case), native[str(case)], case.ulps)


@pytest.mark.slow
@pytest.mark.usefixtures("primitive_engine")
@pytest.mark.parametrize(
    "case", [case for case in GRADIENT_CASES if case.kernel in DECOMPOSED], ids=str
)
def test_gradients_go_through_it(case: Any) -> None:
    f, args = as_function(case)
    check_grads(f, args, order=2)


def test_case_names_are_unique() -> None:
    assert [name for name, count in Counter(map(str, CASES)).items() if count > 1] == []


def test_every_decomposition_has_cases() -> None:
    # The conformance suite runs its cases natively and decomposed, on any backend.
    tried = {case.kernel for case in CASES} | set(entries())
    assert sorted(set(DECOMPOSED) - tried) == []


def test_primitives_and_decompositions_make_the_whole_catalogue() -> None:
    everything = {spec.name for spec in catalogue.catalogue()}
    assert sorted(everything - PRIMITIVES - set(DECOMPOSED)) == []
    assert sorted(PRIMITIVES - everything) == []
    assert sorted(PRIMITIVES & set(DECOMPOSED)) == []


# A decomposition that nobody wrote a gradient for ------------------------------------------


@pytest.fixture
def _own_engine() -> Iterator[None]:
    with isolated_engine("cpu"):
        yield


SOFT_SIGN = KernelSpec("SoftSign", ("x",), lambda x: x, attributes={"scale": attributes.number(1)})


def soft_sign(x: tp.Tensor, *, scale: float) -> tp.Tensor:
    return x / (tp.abs(x) + scale)


@pytest.mark.usefixtures("_own_engine")
def test_without_rules_its_inner_ops_are_differentiated() -> None:
    tp.register_decomposition(SOFT_SIGN, soft_sign)

    def f(x: Any) -> Any:
        return tp.run_kernel(SOFT_SIGN, {"x": x}, {"scale": 2.0})

    x = np.array([0.5, -1.5, 3.0])
    gradient = tp.grad(f)(tp.asarray(x))  # d/dx x / (|x| + s) = s / (|x| + s)**2
    np.testing.assert_allclose(gradient.numpy(), 2 / (np.abs(x) + 2) ** 2, rtol=1e-14)
    check_grads(f, [x], order=2)


@pytest.mark.usefixtures("_own_engine")
def test_with_rules_of_its_own_they_are_used_and_the_inner_ops_are_not() -> None:
    tp.register_decomposition(SOFT_SIGN, soft_sign)
    with tp.register_gradient(SOFT_SIGN, "x", lambda dy: dy * 7.0):
        gradient = tp.grad(lambda x: tp.run_kernel(SOFT_SIGN, {"x": x}))(tp.asarray([0.5, 3.0]))
        np.testing.assert_array_equal(gradient.numpy(), np.array([7, 7], np.float32))
    # Stated to have no derivative, its inner ops give none either.
    with (
        tp.register_gradient(SOFT_SIGN, "x", None),
        pytest.raises(NotConnectedError),
    ):
        tp.grad(lambda x: tp.run_kernel(SOFT_SIGN, {"x": x}))(tp.asarray([0.5, 3.0]))


DIFFERENTIATED = [case for case in GRADIENT_CASES if case.kernel in ("Softmax", "Tanh", "Conv2D")]


@pytest.mark.parametrize("case", DIFFERENTIATED, ids=str)
@pytest.mark.usefixtures("_own_engine")
def test_rules_and_inner_ops_agree(case: Any) -> None:
    f, args = as_function(case)
    arguments = [tp.asarray(argument) for argument in args]
    dy = np.random.default_rng(0).normal(size=f(*arguments).shape)
    by_rule = tp.vjp(f, *arguments)[1](tp.asarray(dy))
    tp.unregister_gradient(case.kernel)
    tp.unregister_kernel(case.kernel, "cpu")
    by_inner_ops = tp.vjp(f, *arguments)[1](tp.asarray(dy))
    for a, b in zip(by_rule, by_inner_ops, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.usefixtures("_own_engine")
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

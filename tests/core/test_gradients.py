"""Every gradient rule of the catalogue against differences, in first and second order."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import catalogue
from tensorplug.testing import check_grads
from tensorplug_conformance.denominator import Row, cases_of, entries

from .gradient_cases import CASES
from .samples import Case

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[None]:
    with tp.use_backend("cpu"):
        yield


# They read one triangle, and their gradients are those of symmetric changes.
OF_SYMMETRIC = {"Cholesky", "SelfAdjointEigV2"}


def call(case: Case, dtype: str = "float64") -> tuple[Any, list[Any]]:
    """Return the case as a function of what it differentiates, and where, floats in ``dtype``."""
    given = tp.tree_map(
        lambda x: x.astype(dtype) if np.issubdtype(x.dtype, np.floating) else x, case.inputs
    )
    fixed = {name: value for name, value in given.items() if name not in case.wrt}
    if case.kernel == "MaxPoolGrad":
        fixed["output"] = tp.run_kernel("MaxPool", {"x": given["input"]}, case.attributes)

    def f(*wrt: Any) -> Any:
        inputs = {**fixed, **dict(zip(case.wrt, wrt, strict=True))}
        if case.kernel in OF_SYMMETRIC:
            inputs["input"] = (inputs["input"] + tp.matrix_transpose(inputs["input"])) / 2
        result = tp.run_kernel(case.kernel, inputs, case.attributes)
        if not isinstance(result, list):
            return result
        # Counted among those that can have a gradient: others hold indices and the like.
        return [each for each in result if each.dtype.kind in ("float", "complex")][case.output]

    return f, [given[name] for name in case.wrt]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_first_and_second_order(case: Case) -> None:
    f, args = call(case)
    check_grads(f, args, order=2)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_has_its_inputs_type(case: Case, dtype: str) -> None:
    f, args = call(case, dtype)
    inputs = tp.tree_map(tp.asarray, args)
    gradients = tp.grad(f, tuple(range(len(inputs))), unconnected="zeros")(*inputs)
    tp.tree_map(_same_type, inputs, list(gradients))


def _same_type(x: tp.Tensor, gradient: tp.Tensor) -> None:
    assert isinstance(gradient, tp.Tensor)
    assert (gradient.dtype, gradient.shape) == (x.dtype, x.shape)


def test_case_names_are_unique() -> None:
    assert [name for name, count in Counter(map(str, CASES)).items() if count > 1] == []


def _rules() -> dict[tuple[str, str], bool]:
    """Return for each (kernel, input) that the core knows of whether it has a rule or a stop."""
    return {
        (entry.spec.name, entry.wrt): entry.rule is not None
        for table in catalogue.gradients()
        for entry in table
    }


RULES = _rules()

# The points of the conformance suite, for kernels that have none above ----------------------

ELSEWHERE = sorted(
    name
    for name, entry in entries().items()
    if any(RULES.get((name, wrt)) for wrt in entry.wrt)
    and name not in {case.kernel for case in CASES}
)


@pytest.mark.parametrize("kernel", ELSEWHERE)
def test_first_and_second_order_at_the_points_of_the_suite(kernel: str) -> None:
    entry = entries()[kernel]
    tried = 0
    for point in cases_of(entry, Row(kernel, "float64", "gradient"), 0):
        if isinstance(point.expected, tuple):
            continue  # a kink: what holds there is a convention, not a slope
        inputs = dict(zip(entry.spec.input_names, point.inputs, strict=False))
        f, args = call(Case(kernel, point.id, inputs, entry.wrt, dict(point.attributes)))
        check_grads(f, args, order=2)
        tried += 1
    assert tried, f"{kernel}: no smooth point"


def test_every_input_has_a_rule_or_a_stop() -> None:
    inputs = {(spec.name, name) for spec in catalogue.catalogue() for name in spec.input_names}
    missing = sorted(inputs - set(RULES))
    assert not missing, f"no gradient rule and no stop for {missing}"


# Complex tensors are not differentiated by themselves: tests/core/test_complexes.py tries these
# on the way from real numbers to real ones.
THROUGH_COMPLEX = {
    *(("Complex", "real"), ("Complex", "imag"), ("Real", "input"), ("Imag", "input")),
    *(("ComplexAbs", "x"), ("Conj", "x")),
    # likewise test_spectral and test_factorization
    *((kernel, "input") for kernel in ("FFT", "IFFT", "RFFT", "IRFFT", "Eig")),
}


def test_every_rule_has_a_case() -> None:
    covered = {(case.kernel, name) for case in CASES for name in case.wrt}
    covered |= {(name, wrt) for name in ELSEWHERE for wrt in entries()[name].wrt}
    covered |= THROUGH_COMPLEX
    rules = {key for key, is_rule in RULES.items() if is_rule}
    assert not sorted(rules - covered), f"no gradient case for {sorted(rules - covered)}"
    assert not sorted(covered - rules), f"cases, but no rule, for {sorted(covered - rules)}"

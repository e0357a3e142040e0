"""Gradients of complex functions, compared with differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.complex_functions import HOLOMORPHIC, LOSSES, Z
from tests.core.support.complex_points import COMPLEX_POINTS, MOVED, SPECS, has_rule
from tests.core.support.gradient_points import as_function

import tensorplug as tp
from tensorplug.testing import check_grads, isolated_engine
from tensorplug_conformance.primitives import PRIMITIVES

if TYPE_CHECKING:
    from tests.core.support.samples import Case

pytestmark = pytest.mark.usefixtures("on_the_cpu")

losses = pytest.mark.parametrize(
    ("function", "args"), [row[1:] for row in LOSSES], ids=[row[0] for row in LOSSES]
)
holomorphic = pytest.mark.parametrize(
    "function", [row[1] for row in HOLOMORPHIC], ids=[row[0] for row in HOLOMORPHIC]
)


@losses
def test_losses_against_differences(function: Any, args: tuple[np.ndarray, ...]) -> None:
    check_grads(function, args, order=2, rtol=1e-5, atol=1e-5)


# Their decompositions are of real numbers.
NATIVE = {"elementary functions", "expm1 and log1p"}


def _gradients() -> dict[str, list[np.ndarray]]:
    return {
        name: [
            tensor.numpy()
            for tensor in tp.grad(function, range(len(args)))(*map(tp.asarray, args))
        ]
        for name, function, args in LOSSES
        if name not in NATIVE
    }


def test_primitives_alone_give_the_same_numbers() -> None:
    native = _gradients()
    with isolated_engine("cpu"):
        for name in tp.kernels_for("cpu"):
            if name not in PRIMITIVES:
                tp.unregister_kernel(name, "cpu")
        assert tp.explain("FFT", [Z]).how == "decomposed"
        for name, found in _gradients().items():
            for gradient, expected in zip(found, native[name], strict=True):
                np.testing.assert_allclose(gradient, expected, 1e-9, 1e-9, err_msg=name)


@holomorphic
def test_holomorphic_functions_against_differences(function: Any) -> None:
    found = tp.grad(lambda z: tp.sum(function(z)), holomorphic=True)(tp.asarray(Z)).numpy()
    step = 1e-6
    for direction in (1, 1j, np.exp(2j)):  # the same from wherever it is approached
        ahead, behind = (function(tp.asarray(Z + k * step * direction)).numpy() for k in (1, -1))
        np.testing.assert_allclose(found, (ahead - behind) / (2 * step * direction), rtol=1e-8)


# Kernels at the points that the conformance suite does not have --------------------------


@pytest.mark.parametrize("case", MOVED, ids=str)
def test_kernels_in_first_and_second_order(case: Case) -> None:
    f, args = as_function(case)
    check_grads(f, args, order=2)


def test_every_rule_of_complex_numbers_has_a_point() -> None:
    inputs = {(spec.name, name) for spec in SPECS.values() for name in spec.input_names}
    covered = {(case.kernel, name) for case in COMPLEX_POINTS for name in case.wrt}
    missing = sorted({key for key in inputs if has_rule(*key)} - covered)
    assert not missing, f"no complex point for {missing}"

"""Gradients of complex functions, compared with differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.core.support.complex_functions import LOSSES
from tests.core.support.complex_points import COMPLEX_POINTS, MOVED, SPECS, has_rule
from tests.core.support.gradient_points import as_function

from tensorplug.testing import check_grads

if TYPE_CHECKING:
    import numpy as np
    from tests.core.support.samples import Case

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.mark.parametrize(
    ("function", "matrix"), [row[1:] for row in LOSSES], ids=[row[0] for row in LOSSES]
)
def test_factors_of_complex_matrices_against_differences(
    function: Any, matrix: np.ndarray
) -> None:
    check_grads(function, [matrix], order=2, rtol=1e-5, atol=1e-5)


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

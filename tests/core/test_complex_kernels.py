"""Gradients of complex numbers at the points that the conformance suite does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tensorplug.testing import check_grads

from .complex_points import COMPLEX_POINTS, MOVED, SPECS, has_rule
from .gradient_points import as_function

if TYPE_CHECKING:
    from .samples import Case

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.mark.parametrize("case", MOVED, ids=str)
def test_first_and_second_order(case: Case) -> None:
    f, args = as_function(case)
    check_grads(f, args, order=2)


def test_every_rule_of_complex_numbers_has_a_point() -> None:
    inputs = {(spec.name, name) for spec in SPECS.values() for name in spec.input_names}
    covered = {(case.kernel, name) for case in COMPLEX_POINTS for name in case.wrt}
    missing = sorted({key for key in inputs if has_rule(*key)} - covered)
    assert not missing, f"no complex point for {missing}"

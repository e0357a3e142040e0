"""Gradients at the points that the conformance suite does not have, and of mixed dtypes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.core.support.gradient_cases import CASES
from tests.core.support.gradient_points import POINTS, as_function

import tensorplug as tp
from tensorplug.testing import check_grads

if TYPE_CHECKING:
    from tests.core.support.samples import Case


pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_first_and_second_order(case: Case) -> None:
    f, args = as_function(case)
    check_grads(f, args, order=2)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_gradient_has_its_inputs_type(case: Case) -> None:
    f, args = as_function(case, "float32")
    inputs = tp.tree_map(tp.asarray, args)
    value, vjp = tp.vjp(f, *inputs, unconnected="zeros")
    tp.tree_map(_same_type, inputs, list(vjp(tp.tree_map(tp.ones_like, value))))


# The dtype of the attention's row sums follows from that of its other inputs.
MIXED = [p for p in POINTS if len(p.wrt) > 1 and p.kernel != "ScaledDotProductAttentionGrad"]


@pytest.mark.parametrize("case", MIXED, ids=str)
def test_a_gradient_has_its_inputs_dtype_where_dtypes_are_mixed(case: Case) -> None:
    f, args = as_function(case, "float32")
    *narrow, wide = tp.tree_map(tp.asarray, args)
    inputs = [*narrow, tp.astype(wide, tp.float64)]
    value, vjp = tp.vjp(f, *inputs, unconnected="zeros")
    tp.tree_map(_same_type, inputs, list(vjp(tp.tree_map(tp.ones_like, value))))


def _same_type(x: tp.Tensor, gradient: tp.Tensor) -> None:
    assert isinstance(gradient, tp.Tensor)
    assert (gradient.dtype, gradient.shape) == (x.dtype, x.shape)


def test_case_names_are_unique() -> None:
    assert [name for name, count in Counter(map(str, POINTS)).items() if count > 1] == []

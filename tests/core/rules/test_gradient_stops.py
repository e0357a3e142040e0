"""If an input has no gradient rule, no result depends on it smoothly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.gradient_points import has_rule, ordinary
from tests.core.support.samples import Case

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.plugins import catalogue

pytestmark = pytest.mark.usefixtures("on_the_cpu")

STOPPED = sorted(
    (spec.name, name)
    for spec in catalogue.catalogue()
    for name in spec.input_names
    if dt.float64 in spec.accepted(name) and not has_rule(spec.name, name, dt.float64)
)


def follows(kernel: str, name: str) -> bool:
    """Return whether, in some ordinary case, a result changes as little as the input does."""
    random = np.random.default_rng(0)
    for case in ordinary(kernel):
        given = case.inputs.get(name)
        if not movable(given):
            continue
        moved = given + 1e-6 * random.uniform(-1, 1, given.shape)
        other = Case(kernel, case.what, {**case.inputs, name: moved}, (), case.attributes)
        if any(map(little, results(case), results(other))):
            return True
    return False


def movable(given: Any) -> bool:
    small = isinstance(given, np.ndarray) and given.dtype == np.float64 and given.size <= 200
    return small and bool(np.isfinite(given).all())


def results(case: Case) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        result = tp.run_kernel(case.kernel, case.inputs, case.attributes)
    several = result if isinstance(result, list) else [result]
    return [tensor.numpy() for tensor in several if tensor.dtype is tp.float64]


def little(before: np.ndarray, after: np.ndarray) -> bool:
    if before.shape != after.shape:
        return False
    with np.errstate(invalid="ignore", over="ignore"):
        change = np.abs(after - before)
    return bool(((change > 1e-9) & (change < 1e-4)).any())


@pytest.mark.parametrize("key", STOPPED, ids="-".join)
def test_no_result_follows_an_input_without_a_rule(key: tuple[str, str]) -> None:
    assert not follows(*key)


RULED = [("NonMaxSuppressionV5", "boxes"), ("Multiply", "a"), ("CopySign", "a"), ("Relu", "x")]


@pytest.mark.parametrize("key", RULED, ids="-".join)
def test_dependence_on_an_input_is_noticed(key: tuple[str, str]) -> None:
    assert follows(*key)

"""Second gradients: right rules pass, and rules wrong in second order only are caught."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract.owner import Owner
from tensorplug.contract.rule_entries import gradient_entry
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.points.gradient_points import Point
from tensorplug_conformance.points.second_gradients import curvature
from tensorplug_conformance.trying.rows import run_row

if TYPE_CHECKING:
    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.session import Session

KNOWN = entries()


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("Multiply", "complex64"),
        ("Softmax", "float16"),
        ("BatchMatMul", "float32"),
        ("Prod", "float64"),
        ("Concat", "float32"),
        ("Max", "float32"),
        ("TopK", "float64"),
    ],
)
def test_right_rules_pass(kernel: str, dtype: str, cpu: Session) -> None:
    verdict = run_row(cpu, KNOWN[kernel], Row(kernel, dtype, "gradient"), 0)
    assert verdict.status == "pass gradient", verdict.failures


def point(kernel: str, cpu: Session, *inputs: Any) -> Point:
    return Point.of(cpu, KNOWN[kernel], Case("one", tuple(map(np.float64, inputs))))


def direction(period: int, count: int) -> Any:
    """Return the direction of that period, worked out one by one."""
    return np.array(
        [
            (1 + 3 * at % period) / 8 * (-0.5 if 2 * at % (period + 1) < 3 else 0.5)
            for at in range(count)
        ]
    )


def test_curvature_of_a_square(cpu: Session) -> None:
    x = np.array([0.5, -1.25, 2.0, 3.0])
    square = point("Square", cpu, x)
    u, v, (w,) = direction(7, 4), direction(5, 4), square.weights
    right = curvature(square)
    assert right.inputs == pytest.approx(np.sum(2 * w * u * v), rel=1e-9)
    assert right.incoming == pytest.approx(np.sum(u * 2 * x * v), rel=1e-9)


def test_curvature_of_a_product(cpu: Session) -> None:
    """The second derivative is the mixed one alone."""
    a, b = np.array([[1.0], [-2.0]]), np.array([0.5, 3.0, -1.0])
    product = point("Multiply", cpu, a, b)
    (w,) = product.weights
    (ua, ub), (va, vb) = (
        (direction(period, 2)[:, None], direction(period, 3)) for period in (7, 5)
    )
    right = curvature(product)
    assert right.inputs == pytest.approx(np.sum(w * (ua * vb + va * ub)), rel=1e-9)
    du = direction(7, 6).reshape(2, 3)
    assert right.incoming == pytest.approx(np.sum(du * (va * b + a * vb)), rel=1e-9)


def test_curvature_of_complex_numbers(cpu: Session) -> None:
    z = np.array([0.5 + 1j, -1.25 - 0.5j])
    square = Point.of(cpu, KNOWN["Square"], Case("one", (z,)))
    u, v = (vector + 1j * np.roll(vector, 1) / 2 for vector in (direction(7, 2), direction(5, 2)))
    (w,) = square.weights
    assert curvature(square).inputs == pytest.approx(np.sum(2 * w * u * v).real, rel=1e-9)


@tp.custom_grad
def _flat(x: Any) -> Any:
    """Return x, whose gradient is taken twice."""
    return x * 1, lambda dy: dy * 2


# Each gives the right first gradient.
WRONG: dict[str, tuple[KernelSpec, str, Any, str]] = {
    "taken for a constant": (
        specs.SQUARE,
        "x",
        lambda dy, x: dy * 2 * tp.stop_gradient(x),
        "second gradient by 'x'",
    ),
    "by a factor": (specs.SQUARE, "x", lambda dy, x: dy * 2 * _flat(x), "second gradient by 'x'"),
    "through the result": (
        specs.EXP,
        "x",
        lambda dy, out: dy * tp.stop_gradient(out),
        "second gradient by 'x'",
    ),
    "of one of two": (
        specs.MULTIPLY,
        "a",
        lambda dy, b: dy * tp.stop_gradient(b),
        "second gradient by 'a', 'b'",
    ),
    "by the incoming one": (
        specs.SQUARE,
        "x",
        lambda dy, x: tp.stop_gradient(dy) * 2 * x,
        "by the incoming one",
    ),
    "at the last element": (
        specs.SQUARE,
        "x",
        lambda dy, x: dy * 2 * _but_the_last(x),
        "second gradient by 'x'",
    ),
}


def _but_the_last(x: Any) -> Any:
    if not x.size:
        return x
    flat = tp.reshape(x, (-1,))
    parts = [flat[:-1], tp.stop_gradient(flat[-1:])]
    return tp.reshape(tp.concat(parts), x.shape)


@pytest.mark.parametrize("name", WRONG)
def test_rules_that_are_wrong_in_second_order_are_caught(name: str, cpu: Session) -> None:
    spec, wrt, rule, message = WRONG[name]
    owner = Owner("saboteur")
    cpu.engine.registry.add(owner, rules=[gradient_entry(spec, wrt, rule)], override=True)
    verdict = run_row(cpu, KNOWN[spec.name], Row(spec.name, "float64", "gradient"), 0)
    assert verdict.status == "fail"
    assert all(message in failure.message for failure in verdict.failures), verdict.failures


def test_at_kinks_first_gradients_are_given_and_second_ones_are_not_tried(cpu: Session) -> None:
    row = Row("Max", "float64", "gradient")
    cases = cases_of(KNOWN["Max"], row, 0)
    assert any(isinstance(case.expected, tuple) for case in cases)
    assert run_row(cpu, KNOWN["Max"], row, 0).passed == len(cases)


def test_directions_are_exact_in_every_float() -> None:
    for period in (5, 7):
        values = direction(period, 100)
        assert np.array_equal(values, values.astype(np.float16))
        assert np.abs(values).max() < 0.5
        assert np.abs(values).min() > 0

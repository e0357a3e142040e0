"""Level 4: clean backends pass it, wrong programs fail it, and its references are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.conformance.tests.reports import sample

from tensorplug_conformance.checks import (
    CheckFailedError,
    NotMeasuredError,
    Target,
    checks,
    programs,
)
from tensorplug_conformance.checks.programs import references
from tensorplug_conformance.checks.programs.models import CONVOLUTIONAL, LOGISTIC, PERCEPTRON
from tensorplug_conformance.checks.programs.training import STEPS, TRAININGS, judge
from tensorplug_conformance.denominator import LEVELS
from tensorplug_conformance.reporting.verification import verify
from tensorplug_conformance.running.supervisor import Limits, supervise
from tensorplug_conformance.selftest.backends import WRONG_BACKENDS
from tensorplug_conformance.selftest.programs import WRONG_PROGRAMS, WrongProgram, try_program
from tensorplug_conformance.selftest.programs.compiled import clean
from tensorplug_conformance.selftest.programs.whole import interprets_programs
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.checks import Check
    from tensorplug_conformance.checks.programs.models import Model

PROGRAMS = programs.CHECKS


# tests/core/test_vmap_kernels.py makes their calls too, one axis a call, for all kernels.
MAPPED = {f"vmap = stack: examples in axis {axis}" for axis in range(3)}

UNMEASURED = {
    "training stays on the device": "host's memory",
    "whole programs": "does not compile programs",
}


@pytest.fixture(scope="module")
def cpu() -> Iterator[Session]:
    session = Session(engine_factory(None), "cpu")
    yield session
    session.close()


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=pytest.mark.slow if check.id in MAPPED else ())
        for check in PROGRAMS
    ],
    ids=lambda check: check.id,
)
def test_the_cpu_passes(check: Check, cpu: Session) -> None:
    reason = next((UNMEASURED[name] for name in UNMEASURED if check.id.startswith(name)), "")
    if reason:
        with pytest.raises(NotMeasuredError, match=reason):
            check.run(Target("cpu"), lambda: cpu)
    else:
        check.run(Target("cpu"), lambda: cpu)


def test_a_backend_of_primitives_keeps_its_training_to_itself() -> None:
    (check,) = (program for program in PROGRAMS if program.id == "training stays on the device")
    session = Session(engine_factory(None), "minimal")
    check.run(Target("minimal"), lambda: session)


def test_every_check_has_something_to_find() -> None:
    of_programs = {wrong_program.check for wrong_program in WRONG_PROGRAMS}
    of_backends = {wrong_backend.check for wrong_backend in WRONG_BACKENDS}
    known = {program.id for program in PROGRAMS}
    assert (known - of_programs - of_backends, of_programs - known) == (set(), set())


# The checks that start processes try the backend itself, above.
@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    sorted(
        {wrong_program.check for wrong_program in WRONG_PROGRAMS} - {"same bits in two processes"}
    ),
)
def test_a_backend_that_rewrites_and_is_right_passes(check: str) -> None:
    made = interprets_programs if check.startswith("whole programs") else clean
    _, caught, evidence = try_program(WrongProgram(made, check))
    assert not caught, evidence


def test_its_checks_run_under_supervision() -> None:
    items = [("check", 4, "scopes"), ("check", 4, "disposal")]
    outcomes = supervise(Target("cpu"), items, 0, Limits(), lambda _: None)
    verdicts = [outcome.verdict for outcome in outcomes]
    assert [verdict and verdict["status"] for verdict in verdicts] == ["pass", "pass"]
    assert [verdict and verdict["level"] for verdict in verdicts] == [4, 4]


def test_a_whole_report_has_all_checks_of_its_level() -> None:
    assert max(LEVELS) == 4
    report = {**sample(), "level": 4, "partial": False}
    report["checks"] = [
        {"level": level, "check": check.id, "status": "pass", "message": "", "seconds": 0.0}
        for level in LEVELS
        for check in checks(level)
    ]
    assert not any("checks are missing" in fault for fault in verify(report))
    del report["checks"][-2:]
    (fault,) = (fault for fault in verify(report) if "checks are missing" in fault)
    assert fault.startswith("2 checks are missing, such as 'soak: a compiled program")
    report["checks"].append(report["checks"][-1])
    assert any("two verdicts on check" in fault for fault in verify(report))


# The references ---------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LOGISTIC, PERCEPTRON, CONVOLUTIONAL], ids=lambda m: m.name)
def test_gradients_of_references_are_slopes(model: Model) -> None:
    p = {name: item.astype(np.float64) for name, item in model.start().items()}
    x, y = model.batch("float64")
    _, gradients = model.reference(p, x, y)
    for name, start in p.items():
        slope = np.zeros_like(start)
        for at in np.ndindex(start.shape):
            step = np.zeros_like(start)
            step[at] = 1e-5
            losses = [model.reference({**p, name: start + s}, x, y)[0] for s in (step, -step)]
            slope[at] = (losses[0] - losses[1]) / 2e-5
        np.testing.assert_allclose(gradients[name], slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: training.name)
def test_trainings_train(training: Any) -> None:
    losses, _ = references.trained(training.model, training.update, STEPS)
    assert losses[-1] < losses[0] / 2


def test_no_image_comes_near_a_kink() -> None:
    """At a kink or a tie, the last bit would decide between two gradients."""
    training = TRAININGS[3]
    x, _ = training.model.batch("float64")
    nearest = []
    for steps in range(STEPS):
        _, p = references.trained(training.model, training.update, steps)
        around = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        patches = np.lib.stride_tricks.sliding_window_view(around, (3, 3), axis=(1, 2))
        seen = np.einsum("nhwcij,ijco->nhwo", patches, p["filter"]) + p["shift"]
        n, h, w, c = seen.shape
        blocks = seen.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4)
        first, second = np.sort(blocks.reshape(-1, 4), axis=1)[:, ::-1][:, :2].T
        nearest += [np.abs(first).min(), (first - second)[first > 0].min()]
    assert min(nearest) > 2**-16


@pytest.mark.parametrize("what", ["loss", "parameter", "dtype", "NaN"])
def test_a_training_that_is_off_is_judged_so(what: str) -> None:
    training = TRAININGS[0]
    losses, parameters = references.trained(training.model, training.update, STEPS)
    reached = list(losses)
    values = {name: parameter.astype(np.float32) for name, parameter in parameters.items()}
    judge(reached, losses, values, parameters, "float32")
    if what == "loss":
        reached[7] += 16 * 2**-23 * 9 * losses[0]
    elif what == "parameter":
        values["weights"] = values["weights"] * np.float32(1 + 17 * 24 * 2**-23)
    elif what == "dtype":
        values["bias"] = values["bias"].astype(np.float64)
    else:
        reached[3] = np.nan
    with pytest.raises(CheckFailedError):
        judge(reached, losses, values, parameters, "float32")

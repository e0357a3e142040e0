"""The checks of late errors pass a right queue, and catch wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tensorplug_conformance.checks import (
    CheckFailedError,
    NotMeasuredError,
    Target,
    checks,
    late_errors,
)
from tensorplug_conformance.checks.elsewhere import LATE
from tensorplug_conformance.selftest.queues import WRONG_QUEUES, Queue, engine_of, try_queue
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from tensorplug.errors import DeviceError


def right() -> object:
    return engine_of(Queue)


def wrong() -> object:
    return engine_of(WRONG_QUEUES[0].make)


@pytest.mark.parametrize("kind", LATE.values())
def test_a_right_queue_passes(kind: type[DeviceError]) -> None:
    late_errors.judge(Session(lambda: engine_of(Queue), "cpu"), kind)


@pytest.mark.parametrize("number", range(len(WRONG_QUEUES)))
def test_a_wrong_queue_is_caught_by_what_is_wrong(number: int) -> None:
    trial = try_queue("cpu", WRONG_QUEUES[number])
    assert trial.right, trial.evidence


def test_each_kind_has_a_wrong_queue() -> None:
    assert {each.kind for each in WRONG_QUEUES} == set(LATE.values())


def test_the_check_is_a_process_of_its_own() -> None:
    (check,) = (check for check in checks(1) if check.id == "late errors: a kernel fails")
    for factory in (right, wrong):
        target = Target("cpu", f"{__name__}:{factory.__name__}")
        session = Session(engine_factory(target.factory), "cpu")
        if factory is right:
            assert check.run(target, lambda: session) is None  # noqa: B023  # called at once
        else:
            with pytest.raises(CheckFailedError, match="did not raise the error of Neg"):
                check.run(target, lambda: session)  # noqa: B023  # as above


def test_what_cannot_be_made_to_fail_is_not_measured() -> None:
    (check,) = (check for check in checks(1) if check.id == "late errors: no answer")
    with pytest.raises(NotMeasuredError, match="does not offer inject_fault"):
        check.run(Target("cpu"), lambda: Session(engine_factory(None), "cpu"))

    class Refuses(Queue):
        def inject_fault(self, kind: type[DeviceError]) -> str:
            return f"no {kind.__name__} here"

    with pytest.raises(NotMeasuredError, match="no DeviceFaultError here"):
        late_errors.judge(
            Session(lambda: engine_of(Refuses), "cpu"), LATE["late errors: a kernel fails"]
        )

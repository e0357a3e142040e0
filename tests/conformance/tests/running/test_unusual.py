"""Honest backends of unusual kinds pass: what a backend may do is no fault."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tensorplug.plugin import TensorplugError, specs
from tensorplug_conformance.checks import NotMeasuredError, Target, checks
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.running import supervisor
from tensorplug_conformance.running.worker import Worker
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying.rows import run_row

from . import unusual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.engine.engine import Engine


KNOWN = entries()


@pytest.fixture
def later() -> Iterator[Session]:
    session = Session(unusual.asynchronous, unusual.NAME)
    yield session
    session.close()


def test_the_asynchronous_backend_raises_late(later: Session) -> None:
    inputs = [later.upload(np.zeros(2, np.float32)), later.upload(np.array([7], np.int32))]
    (result,) = later.call(specs.GATHER_V2, inputs, {"axis": 0, "batch_dims": 0})
    with pytest.raises(TensorplugError):
        later.read(result)
    with pytest.raises(TensorplugError):
        later.device.backend.synchronize()
    later.device.backend.synchronize()


@pytest.mark.parametrize("kernel", ["GatherV2", "Add", "TopK"])
def test_a_device_that_computes_later_passes_rows(later: Session, kernel: str) -> None:
    verdict = run_row(later, KNOWN[kernel], Row(kernel, "float32", "native"), 0)
    assert verdict.status == "pass native", verdict.failures


@pytest.mark.parametrize("name", ["no rare leaks: calls that are refused", "no leaks"])
def test_a_device_that_computes_later_passes_checks(later: Session, name: str) -> None:
    (check,) = (check for check in checks(1) if check.id == name)
    check.run(Target(unusual.NAME), lambda: later)


def test_views_of_a_device_that_computes_later_are_named_right_or_not_measured(
    later: Session,
) -> None:
    (check,) = (check for check in checks(1) if check.id == "views named as their base")
    with suppress(NotMeasuredError):  # a result of its thread may be there before it is waited for
        check.run(Target(unusual.NAME), lambda: later)


COUNTING = [
    *("views named as their base", "allocations named apart", "counts buffers"),
    *("no leaks", "figures of memory"),
]


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("make", [unusual.delayed, unusual.delayed_counting])
def test_checks_count_once_the_queue_is_empty(make: Callable[[], Engine], name: str) -> None:
    session = Session(make, unusual.NAME)
    (check,) = (check for check in checks(1) if check.id == name)
    try:
        with suppress(NotMeasuredError):
            check.run(Target(unusual.NAME), lambda: session)
    finally:
        session.close()


@pytest.mark.parametrize("make", [unusual.delayed, unusual.delayed_counting])
def test_rows_count_once_the_queue_is_empty(make: Callable[[], Engine]) -> None:
    session = Session(make, unusual.NAME)
    try:
        verdict = run_row(session, KNOWN["Reshape"], Row("Reshape", "float32", "native"), 0)
    finally:
        session.close()
    assert verdict.status == "pass native", verdict.failures


def test_memory_that_is_freed_later_is_no_leak() -> None:
    session = Session(unusual.frees_later, unusual.NAME)
    (check,) = (check for check in checks(1) if check.id == "no leaks")
    check.run(Target(unusual.NAME), lambda: session)
    session.close()


@pytest.mark.parametrize(("limit", "status"), [(1.0, "fail"), (120.0, "pass")])
def test_the_limit_of_an_item_is_that_of_the_processes_that_it_starts(
    monkeypatch: pytest.MonkeyPatch, limit: float, status: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(unusual.__file__).parent))
    target = Target(unusual.NAME, "unusual:opens_slowly", limit=limit)
    (check,) = (check for check in checks(0) if check.id == "opens again")
    verdict = Worker(target, 0).check(0, check.id)
    assert verdict.status == status, verdict.message
    assert verdict.message == ("it hung: it did not end within 0.9 s" if limit == 1 else "")


def test_a_worker_is_told_the_limit_of_its_items(monkeypatch: pytest.MonkeyPatch) -> None:
    targets: list[Target] = []

    class Process:
        def __init__(self, target: Target, _seed: int, *, introduce: bool) -> None:
            assert not introduce
            targets.append(target)

    monkeypatch.setattr(supervisor, "WorkerProcess", Process)
    supervisor.Attendant(Target("cpu"), 0, supervisor.Limits(7.0))
    assert targets == [Target("cpu", limit=7.0)]

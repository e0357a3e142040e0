"""Soaking: kernels that are wrong now and then, late, or that keep something, are caught."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import specs
from tensorplug_conformance.cases import by_family
from tensorplug_conformance.checks import CheckFailedError, Target, checks
from tensorplug_conformance.checks.soaking import late, soak_all
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.selftest.rare import KINDS, rare_saboteurs
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.printing import printed
from tensorplug_conformance.trying.soak import Soak, calls_of, claimed_dtypes, soaked

if TYPE_CHECKING:
    from collections.abc import Iterator


KNOWN = entries()
TRIED = rare_saboteurs()


@pytest.fixture
def cpu() -> Iterator[Session]:
    session = Session(engine_factory(None), "cpu")
    yield session
    session.close()


def test_the_sample_has_every_family_and_kind() -> None:
    assert len(TRIED) >= len(by_family()) - 1  # a kind may not fit
    assert {saboteur.kind for saboteur in TRIED} == {kind.name for kind in KINDS}
    assert len(rare_saboteurs(37)) > len(TRIED)


def test_first_and_last_calls_are_of_one_process() -> None:
    series = {check.id: check.series for check in checks(4) if check.series}
    assert list(series) == ["soak: first calls", "soak: last calls"]
    assert len(set(series.values())) == 1


def test_there_is_a_check_for_every_family() -> None:
    names = {check.id for check in checks(4)}
    assert names >= {f"soak: {family}" for family in by_family()}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "minimal"])
def test_a_right_kernel_is_called_over_three_thousand_times(backend: str) -> None:
    session = Session(engine_factory(None), backend)
    for name in ("Add", "Sum", "ArgMax", "Cast"):
        entry = KNOWN[name]
        (dtype, *_) = claimed_dtypes(session, entry)
        fault, calls = soaked(session, entry, dtype, Soak(seconds=60.0))
        assert (fault, calls > 3000) == ("", True), name
    session.close()


def test_a_slow_kernel_is_called_less_often_and_that_is_noted(cpu: Session) -> None:
    note = soak_all(cpu, [KNOWN["Neg"]], Soak(alone=10**7, seconds=0.05))
    assert re.fullmatch(r"fewer than 10001300 calls: Neg float32 \(\d+\)", note)


def test_the_leading_case_has_other_numbers_of_the_same_types(cpu: Session) -> None:
    entry = KNOWN["Add"]
    lead, *others = calls_of(cpu, entry, claimed_dtypes(cpu, entry)[0])
    same = [case for case in others if case.id == lead.id]
    assert len(same) == 2
    for case in same:
        assert case.types == lead.types
        assert not np.array_equal(case.inputs[0], lead.inputs[0])  # type: ignore[arg-type]


def test_what_goes_wrong_after_a_while_is_caught(cpu: Session) -> None:
    """Add is right for two seconds after the first calls, and then wrong in the last element."""
    tired = math.inf

    def add(a: Any, b: Any) -> Any:
        total = np.asarray(a + b)
        if time.monotonic() > tired and total.size and total.dtype == np.float32:
            total.reshape(-1)[-1] = 77
        return total

    (first,) = (check for check in checks(4) if check.id == "soak: first calls")
    cpu.engine.registry.add(
        Owner("late"), kernels=[("cpu", kernel_entry(specs.ADD, add))], override=True
    )
    first.run(Target("cpu"), lambda: cpu)
    late(0.0, Target("cpu"), lambda: cpu)
    tired = time.monotonic() + 2.0
    with pytest.raises(CheckFailedError, match=r"Add float32, case .*got 77"):
        late(9.0, Target("cpu"), lambda: cpu)


def test_what_native_code_prints_is_seen() -> None:
    with printed() as quiet:
        pass
    with printed() as output:
        os.write(1, b"one\n")
        os.write(2, b"two\n")
        sys.stdout.write("three\n")
    assert (quiet.text, output.text) == ("", "one\ntwo\nthree\n")

"""Reading the results of drivers, keeping them, and writing the matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.conformance.tests.reports import row, sample
from tests.drivers import matrix, results
from tests.drivers.results import NO_DEVICE, NOT_INSTALLED, NOT_SET_UP, UNSOUND, Result

if TYPE_CHECKING:
    from pathlib import Path

BARE = Result("acme", "Acme's", "Acme 1 (family 2, model 3)", "2026-11-22", "0.1.0")
SOUND = replace(BARE, trial="sound", device="Acme One", version="7.1")

LOG = """\
WARNING: this message before the first call belongs to none
@@ control beyond its end

Invalid write of size 4 at global memory address 0x2000000000040
\tKernel: run
\tAt line 1 (column 40) of input.cl:
\t  x[get_global_id(0) + 1] = 1;

@@ done
@@ call Abs float32, case 'edges'
2 warnings generated.

Oclgrind - OpenCL runtime error detected
\tFunction: clGetDeviceInfo
\tError:    CL_INVALID_VALUE

@@ done
@@ call Bincount float32, case 'many'

Read-write data race at global memory address 0x1000000000018
\tKernel: run
\t
\tFirst entity:  Global(2,0,0) Local(2,0,0) Group(0,0,0)
\tAt line 37 (column 17) of input.cl:
\t  ulong old = *place;
\t
\tSecond entity: Global(1,0,0) Local(1,0,0) Group(0,0,0)
\tAt line 40 (column 13) of input.cl:
\t  old = atom_cmpxchg(place);

Read-write data race at global memory address 0x1000000000020
\tAt line 37 (column 17) of input.cl:
\t  ulong old = *place;
\tAt line 40 (column 13) of input.cl:
\t  old = atom_cmpxchg(place);
@@ done
@@ call Bincount int8, case 'many'
@@ done
@@ call Neg float32, case 'edges'

Oclgrind - OpenCL runtime error detected
\tFunction: clEnqueueNDRangeKernel
\tError:    CL_INVALID_WORK_GROUP_SIZE
BackendError: it failed
@@ done
@@ end
"""
RACE = "Read-write data race: old = atom_cmpxchg(place); and ulong old = *place;"
CALL = (
    "Oclgrind - OpenCL runtime error detected: Function: clEnqueueNDRangeKernel, "
    "Error:    CL_INVALID_WORK_GROUP_SIZE"
)


def test_messages_of_a_simulator_for_each_kernel() -> None:
    found = results.watched(SOUND, LOG)
    assert (found.watched, found.passed, found.failed, found.note) == (4, 1, 2, "")
    assert found.failures == (
        f"Bincount: {RACE} (2 times)",
        f"Neg: {CALL} (1 times); BackendError: it failed (1 times)",
    )
    assert found.wrong


@pytest.mark.parametrize(
    ("change", "note"),
    [
        # A wrong program without messages, and a process that died in a call.
        (("Invalid write", "@@ done\nInvalid write"), "beyond its end in a program that is wrong"),
        (("@@ done\n@@ end\n", ""), "it did not survive Neg float32, case 'edges'"),
        ((LOG, "Traceback\n"), "it did not survive its start"),
    ],
)
def test_a_simulation_that_proves_nothing(change: tuple[str, str], note: str) -> None:
    found = results.watched(SOUND, LOG.replace(*change))
    assert note in found.note
    assert found.wrong


def report(level: int, rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {**sample(), "level": level, "rows": rows, "checks": [], **more}


FAILED = {
    "cases": 9,
    "failed": ["edges", "large"],
    "failures": [{"case": "edges", "message": "1 of 3 wrong;\nfirst at [0]"}],
}
ROWS = [
    row("Abs", "float32", "native", "pass native"),
    row("Abs", "int8", "native", "unsupported dtype"),
    row("Neg", "float32", "native", "fail", **FAILED),
    row("Neg", "int8", "native", "fail", cases=0, reason="the process died of signal 11\nat"),
]
CHECK = {"level": 1, "check": "nothing leaks", "status": "fail", "message": "2 bytes"}


def test_reports_certify_drivers() -> None:
    found = results.certified(SOUND, report(2, ROWS[:2], conformant=True))
    assert (found.level, found.certified, found.passed, found.failed) == (2, True, 1, 0)
    assert not found.wrong
    found = results.certified(SOUND, report(2, ROWS, conformant=False, checks=[CHECK]))
    assert (found.certified, found.passed, found.failed) == (False, 1, 2)
    assert found.failures == (
        "check nothing leaks: 2 bytes",
        "Neg float32 native, 2 of 9 cases: edges: 1 of 3 wrong;",
        "Neg int8 native, 0 of 0 cases: the process died of signal 11",
    )
    assert found.wrong


@pytest.mark.parametrize(("vendor", "told"), [(True, " (vendor): 2 passed"), (False, "")])
def test_a_vendors_bounds_certify_where_the_strict_ones_do_not(*, vendor: bool, told: str) -> None:
    rows = [*ROWS[:2], row("Neg", "float32", "native", "fail", **FAILED, vendor="pass native")]
    verdict = {"conformant": vendor, "blocked_by": []}
    found = results.certified(SOUND, report(2, rows, conformant=False, vendor=verdict))
    assert (found.certified, found.wrong, found.failed) == (vendor, not vendor, not vendor)
    assert (f"| certified{told} |" in matrix.section([found])) is vendor


def test_parts_of_level_3_add_up_without_rows_of_level_2() -> None:
    rows = [row("Add", "float32", "native", "pass native")]  # a primitive: level 2
    rows += [row("Add", "float32", "gradient", "pass gradient")]
    rows += [row("Neg", "float32", "decomposed", "fail", **FAILED)]
    found = results.with_part(results.with_part(SOUND, report(3, rows), 90), report(3, rows), 90)
    assert found.beyond == (2, 2, 90)
    assert found.failures == ("Neg float32 decomposed, 2 of 9 cases: edges: 1 of 3 wrong;",) * 2


@pytest.mark.parametrize("trial", [NOT_INSTALLED, NO_DEVICE, UNSOUND])
def test_a_driver_that_is_not_opened_is_not_a_failure(trial: str) -> None:
    assert not replace(BARE, trial=trial, note="why", refused="why").wrong
    assert replace(BARE, trial=NOT_SET_UP, note="why").wrong


def test_results_are_kept_and_replaced_by_driver_and_processor(tmp_path: Path) -> None:
    path = tmp_path / "drivers.json"
    assert results.read(path) == []
    other = replace(SOUND, processor="Acme 2", findings=("a", "b"), beyond=(1, 2, 3))
    results.write(path, [SOUND, other])
    before = results.read(path)
    assert before == [SOUND, other]
    newer = replace(SOUND, date="2026-11-23")
    first = replace(SOUND, driver="aaa")
    assert results.joined(before, [newer, first]) == [first, newer, other]
    for trial in (NOT_INSTALLED, NOT_SET_UP):
        lost = replace(BARE, trial=trial)
        assert results.joined(before, [lost]) == before
        assert results.joined([], [lost]) == [lost]


CELLS = [
    # The result; its cells trial, level 2 and level 3; how many lines stand below the table.
    (BARE, ["not installed", "·", "·"], 0),
    (replace(SOUND, trial=UNSOUND, findings=("scalars: 1 is 2",)), ["**unsound**", "·", "·"], 1),
    (
        replace(SOUND, level=2, certified=True, passed=401),
        ["sound", "certified: 401 passed", "·"],
        0,
    ),
    (
        replace(SOUND, level=2, passed=3, failed=14, failures=("x",) * 14, beyond=(50, 0, 90)),
        ["sound", "**not certified**: 3 passed, **14 failed**", "50 passed of 90"],
        matrix.SHOWN + 1,
    ),
    (
        replace(SOUND, watched=9, passed=4, failed=1, failures=("Neg: x | y",)),
        ["sound", "watched: 4 passed, **1 failed**, 9 calls", "·"],
        1,
    ),
    (replace(SOUND, note="it did not end within 30 minutes"), ["sound", "·", "·"], 1),
]


@pytest.mark.parametrize(("result", "cells", "below"), CELLS)
def test_a_row_of_the_matrix(result: Result, cells: list[str], below: int) -> None:
    page = matrix.section([result]).splitlines()
    assert page[0] == "## Drivers of OpenCL and Vulkan"
    (line,) = [line for line in page if line.startswith("| Acme's")]
    parts = [part.strip() for part in line.strip("|").split("|")]
    assert parts[0] == "Acme's"
    assert parts[3:-2] == ["Acme 1 (family 2, model 3)", *cells]
    assert parts[-2:] == ["0.1.0", "2026-11-22"]
    after = page[page.index(line) :]
    assert sum(line.startswith("- ") for line in after) == below

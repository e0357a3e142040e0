"""Results that a worker tells, and another process compares."""

from __future__ import annotations

from dataclasses import asdict
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest

from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.case import Relation
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.running import comparing
from tensorplug_conformance.running.comparing import Completion
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying import program
from tensorplug_conformance.trying.rows import run_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tensorplug_conformance.denominator import Mode

    _Told = list[tuple[dict[str, Any], list[bytes]]]

ROWS: tuple[tuple[str, str, Mode], ...] = (
    ("Neg", "float32", "native"),
    ("Bitcast", "uint8", "native"),  # expects outputs of its own
    ("Qr", "float32", "native"),  # a relation between outputs
    ("Identity", "string", "native"),
    ("Exp", "bfloat16", "native"),
    ("Square", "float32", "decomposed"),
)


@pytest.fixture(scope="module")
def sessions() -> dict[bool, Session]:
    return {only: Session(build_engine, "cpu", primitives_only=only) for only in (False, True)}


def told(row: Row, sessions: dict[bool, Session], path: Path) -> dict[str, Any]:
    """Run a row as a worker does; return its verdict, and leave what it told at ``path``."""
    session, entry = sessions[row.mode == "decomposed"], entries()[row.kernel]
    with path.open("xb") as file:
        return asdict(run_row(session, entry, row, 0, told=file))


def lasting(verdict: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in verdict.items() if name not in ("seconds", "row")}


@pytest.mark.parametrize("which", ROWS, ids=" ".join)
def test_the_verdict_is_that_of_one_process(
    which: tuple[str, str, Mode], sessions: dict[bool, Session], tmp_path: Path
) -> None:
    row, path = Row(*which), tmp_path / "told"
    item = ("row", *which)
    assert comparing.is_outside(item)
    verdict = told(row, sessions, path)
    found = Completion(0).completed(item, verdict, (), path)
    session = sessions[row.mode == "decomposed"]
    meant = asdict(run_row(session, entries()[row.kernel], row, 0))
    assert lasting(found) == lasting(meant)
    assert meant["status"].startswith("pass ")
    assert not path.exists()


@pytest.mark.parametrize("item", [("row", "Neg", "float32", "gradient"), ("check", 0, "fork")])
def test_what_is_judged_in_the_worker(item: Any) -> None:
    assert not comparing.is_outside(item)


def test_cases_of_a_worker_expect_no_outputs() -> None:
    entry, row = entries()["Bitcast"], Row("Bitcast", "float32", "native")
    expected = [case.expected for case in cases_of(entry, row, 0)]
    blind = [case.expected for case in cases_of(entry, row, 0, blind=True)]
    assert sum(isinstance(one, tuple | Relation) for one in expected) > 5
    assert not [one for one in blind if isinstance(one, tuple | Relation)]
    raised = [one for one in expected if isinstance(one, type)]
    assert [one for one in blind if isinstance(one, type)] == raised


def _byte(told: _Told) -> None:
    blob = bytearray(told[0][1][0])
    blob[7] ^= 0x80  # the sign of the second number
    told[0][1][0] = bytes(blob)


def _types(told: _Told) -> None:
    told[0][0]["types"][0] = ["float64", [3]]


def _described(told: _Told) -> None:
    entry = next(one for one in told[0][0]["told"] if one[0] == "result")
    entry[3] = [["float32", [1, 2, 3]]]


def _presentation(told: _Told) -> None:
    for header, _ in told:
        header["told"] = [one for one in header["told"] if not one[1]]


def _unknown(told: _Told) -> None:
    told[0][0]["case"] = "nobody"


def _place(told: _Told) -> None:
    told[0][0]["told"][0][2] = [[1000]]


TAMPERED: dict[str, tuple[Callable[[_Told], object], str, str]] = {
    "another bit": (_byte, "fail", "wrong; first at"),
    "another type": (_types, "fail", "shape is [3], must be"),
    "a description": (_described, "fail", "the backend describes it as float32[1,2,3]"),
    "no presentation": (
        _presentation,
        "fail",
        "damaged what was told of its results: no result of",
    ),
    "no such case": (_unknown, "fail", "damaged what was told of its results: KeyError: 'nobody'"),
    "no such array": (_place, "fail", "damaged what was told of its results: IndexError"),
    "a case less": (lambda told: told.pop(), "fail", "cases are said to be right, but"),
    "a case twice": (lambda told: told.append(told[0]), "fail", "twice"),
    "nothing": (lambda told: told.clear(), "fail", "are said to be right, but"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_told_must_be_whole_and_right(
    name: str, sessions: dict[bool, Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, status, message = TAMPERED[name]
    monkeypatch.setattr(comparing, "_PLANNED", 1)
    path = tmp_path / "told"
    verdict = told(Row("Neg", "float32", "native"), sessions, path)
    frames = []
    with path.open("rb") as file:
        while (frame := program.receive(file)) is not None:
            frames.append(frame)
    change(frames)
    whole = BytesIO()
    for header, blobs in frames:
        program.send(whole, header, blobs)
    path.write_bytes(whole.getvalue())
    found = Completion(0).completed(("row", "Neg", "float32", "native"), verdict, (), path)
    assert found["status"] == found["vendor"] == status
    assert message in "; ".join([found["reason"], *(one["message"] for one in found["failures"])])


@pytest.mark.parametrize(
    "content", [b"\x01" * 20, b"\xff" * 20, b"\x02\0\0\0\0\0\0\0{}", b"cposix\nsystem\n(S'x'\ntR."]
)
def test_what_is_no_message_fails_the_row(
    content: bytes, sessions: dict[bool, Session], tmp_path: Path
) -> None:
    path = tmp_path / "told"
    verdict = told(Row("Neg", "int8", "native"), sessions, path)
    path.write_bytes(content)
    found = Completion(0).completed(("row", "Neg", "int8", "native"), verdict, (), path)
    assert found["status"] == "fail"
    assert "it damaged what was told of its results" in found["reason"]
    found = Completion(0).completed(("row", "Neg", "int8", "native"), verdict, (), path)
    assert "FileNotFoundError" in found["reason"]

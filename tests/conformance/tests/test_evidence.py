"""Tests that others wrote: how a package offers them, how they run, and what the report says."""

from __future__ import annotations

import copy
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tensorplug_conformance import evidence
from tensorplug_conformance.checks import Target
from tensorplug_conformance.cli import main
from tensorplug_conformance.denominator import Selection
from tensorplug_conformance.evidence import EvidenceError
from tensorplug_conformance.reporting import report
from tensorplug_conformance.reporting.differences import differences
from tensorplug_conformance.reporting.rendering.others import others
from tensorplug_conformance.reporting.rendering.page import page
from tensorplug_conformance.reporting.rendering.summary import summary
from tensorplug_conformance.reporting.verification import verify
from tensorplug_conformance.running.certify import certify
from tensorplug_conformance.running.journal import Journal

from .installing import install
from .reports import EVIDENCE, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tensorplug_conformance.verdicts import Outcome

PROBES = """
    import os
    import numpy as np
    import tensorplug as tp

    TITLE = "Probes"
    ABOUT = "Of every kind."
    NAMES = ("adds", "moves nothing", "raises", "dies", "random", "no rule", "odd")

    def versions():
        return {"tensorplug-probes": "1.0"}

    def tests():
        return {"all": NAMES[:3], "rest": NAMES[3:]}

    def run(group, name):
        assert name in tests()[group]
        if name == "adds":
            found = (tp.asarray([1.0]) + 2.0).numpy()
            return ("pass", "") if found == 3.0 else ("fail", str(found))
        if name == "raises":
            raise ValueError("two\\nlines")
        if name == "dies":
            os.abort()
        return {
            "random": ("known", "draws"),
            "no rule": ("unsupported", "none"),
            "odd": ("excellent", ""),
        }.get(name, ("pass", ""))
"""
RUN = ("run", "--backend", "cpu", "--level", "0", "--checks", "opens*", "--jobs", "1")
FOUND = {
    "adds": ("pass", ""),
    "moves nothing": ("pass", ""),
    "raises": ("fail", "ValueError: two lines"),
    "dies": ("fail", "the process died of signal 6"),
    "random": ("known", "draws"),
    "no rule": ("unsupported", "none"),
    "odd": ("fail", "the collection gives 'excellent'"),
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return what installs a collection for this process and those that it starts."""
    folder = tmp_path / "site"
    monkeypatch.syspath_prepend(str(folder))
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))

    def collection(name: str, source: str) -> None:
        install(folder, source, group="evidence", name=name)
        monkeypatch.delitem(sys.modules, f"acme_{name}", raising=False)  # of another test

    evidence.load.cache_clear()
    yield collection
    evidence.load.cache_clear()


def test_each_test_gets_its_verdict_and_the_run_goes_on(
    installed: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installed("probes", PROBES)
    assert main([*RUN, "--evidence", "probes", "--report", str(tmp_path / "out")]) == 0
    content = report.read(tmp_path / "out")
    jsonschema.validate(content, report.schema())
    (one,) = content["evidence"]
    assert {key: one[key] for key in ("name", "title", "about", "versions")} == {
        "name": "probes",
        "title": "Probes",
        "about": "Of every kind.",
        "versions": {"tensorplug-probes": "1.0"},
    }
    assert [test["test"] for test in one["tests"]] == list(FOUND)
    for test in one["tests"]:
        status, why = FOUND[test["test"]]
        assert test["status"] == status, test
        assert test["why"].startswith(why), test
        assert (test["kernels"] > 0) == (test["test"] == "adds"), test
    assert content["blocked_by"] == []
    assert verify(content) == []
    text = " ".join(capsys.readouterr().out.split())
    assert "2 checks and 7 tests" in text
    assert "Probes (tensorplug-probes 1.0), no condition of a certificate" in text
    assert "1 of those that pass ran no kernel of the backend" in text
    assert "fail raises: ValueError: two lines" in text


def test_without_tests_of_others_the_report_has_none() -> None:
    assert others(sample()) == []
    assert "condition of a certificate" not in page(sample())


WRONG = {
    "nothing": ("", r"no collection of tests: it lacks TITLE, ABOUT, versions, tests, run"),
    "broken": ("import nowhere", r"do not load: ModuleNotFoundError: No module named 'nowhere'"),
    "phrases": (PROBES.replace('"all"', '"all of it"'), r"'all of it' is not the name of a group"),
    "empty": (PROBES.replace("tests():", "tests():\n        return {}"), "are none"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_collection_is_named_before_anything_runs(
    name: str, installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    source, message = WRONG[name]
    installed(name, source)
    assert main([*RUN, "--evidence", name]) == 2
    assert re.search(message, " ".join(capsys.readouterr().out.split()))


def test_a_collection_that_is_not_installed_is_named(
    installed: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed("probes", PROBES)
    entries = [
        entry
        for entry in evidence.metadata.entry_points(group=evidence.GROUP)
        if entry.name == "probes"
    ]
    monkeypatch.setattr(evidence.metadata, "entry_points", lambda **_: entries)
    assert main([*RUN, "--onnx"]) == 2
    text = " ".join(capsys.readouterr().out.split())
    assert "'onnx': pip install tensorplug-onnx" in text
    assert "; installed are: probes" in text


def test_two_packages_with_one_name_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = evidence.metadata.EntryPoint
    twins = [entry("twins", value, evidence.GROUP) for value in ("one", "other")]
    monkeypatch.setattr(evidence.metadata, "entry_points", lambda **_: twins)
    with pytest.raises(EvidenceError, match=r"several packages .* 'twins': one, other"):
        evidence.load("twins")


def test_a_run_with_other_tests_is_another_run(
    installed: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--resume`` goes on only with the collections that the run began with."""
    installed("probes", PROBES)
    (tmp_path / "events.jsonl").write_text('{"run": {"evidence": {}}}\n')
    assert main([*RUN, "--evidence", "probes", "--report", str(tmp_path), "--resume"]) == 2
    assert "evidence probes was None" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_the_tests_that_remain(
    installed: Callable[..., None], tmp_path: Path
) -> None:
    installed("probes", PROBES.replace('"dies", ', ""))
    runs = []

    def heard(outcome: Outcome) -> None:
        runs[-1].append(outcome.item[-1])
        if outcome.item[-1] == "raises" and len(runs) == 1:
            raise KeyboardInterrupt

    contents = {}
    for journal in (Journal(tmp_path), None):
        runs.append([])
        kept = journal or Journal.resumed(tmp_path)
        contents = certify(
            Target("cpu"),
            0,
            selection=Selection(checks=("opens, works, exits",)),
            collections=("probes",),
            journal=kept,
            heard=heard,
        )
        kept.close()
        if journal:
            assert contents["blocked_by"] == ["3 rows, checks and tests were not run"]
            assert [test["test"] for test in contents["evidence"][0]["tests"]] == list(FOUND)[:3]
    assert runs[1] == ["random", "no rule", "odd"]
    tests = {test["test"]: test["status"] for test in contents["evidence"][0]["tests"]}
    assert tests == {name: status for name, (status, _) in FOUND.items() if name != "dies"}
    assert not contents["interrupted"]


def test_numbers_and_reasons_are_shown() -> None:
    content = {**sample(), "evidence": [EVIDENCE]}
    (one,) = others(content)
    assert one.groups == [("node", [3, 2, 1, 0, 0]), ("real", [2, 0, 0, 1, 1])]
    assert (list(one.whole), one.idle) == ([5, 2, 1, 1, 1], 1)
    text = page(content)
    assert '<td class="number failed">1</td>' in text
    assert '<th scope="row">node</th><td class="number">3</td>' in text
    assert "2 of 5 pass; 1 of these ran no kernel of the backend" in text
    assert "2 that cannot pass, or cannot be asked" in text
    assert "| node | 3 | 2 | 1 |  |  |" in summary(content)
    assert "| deep | \\<wrong\\> |" in summary(content)


def test_a_whole_run_is_repeated_with_its_tests() -> None:
    content = {**sample(), "evidence": [EVIDENCE], "partial": False, "conformant": False}
    text = page(content)
    assert "tensorplug-thirds==2.0\n" in text
    assert "--profile strict --evidence thirds --report out" in text


def without_the_first(content: dict[str, Any]) -> None:
    content["evidence"][0]["tests"].pop(0)


def with_one_twice(content: dict[str, Any]) -> None:
    content["evidence"][0]["tests"] += content["evidence"][0]["tests"][:1]


def renamed(content: dict[str, Any]) -> None:
    content["evidence"][0]["tests"][0]["test"] = "easier"


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (without_the_first, ["probes: the report lacks 1 tests, such as adds"]),
        (with_one_twice, ["probes: two results of adds"]),
        (
            renamed,
            [
                "probes: the report lacks 1 tests, such as adds",
                "probes: the report adds 1 tests, such as easier",
            ],
        ),
    ],
)
def test_tests_that_are_left_out_are_found(
    change: Callable[[dict[str, Any]], None],
    messages: list[str],
    installed: Callable[..., None],
) -> None:
    installed("probes", PROBES)
    tests = [
        {"group": group, "test": name, "status": "pass", "why": "", "kernels": 1, "seconds": 0.1}
        for _, _, group, name in evidence.items_of("probes")
    ]
    content = {**sample(), "evidence": [{**evidence.described("probes"), "tests": tests}]}
    assert verify(content) == []
    change(content)
    assert verify(content) == messages


def test_what_changed_between_two_reports() -> None:
    old = {**sample(), "evidence": [EVIDENCE]}
    new = copy.deepcopy(old)
    shallow, deep = new["evidence"][0]["tests"][0], new["evidence"][0]["tests"][-1]
    shallow["status"], deep["status"] = "fail", "pass"
    new["evidence"][0]["versions"]["tensorplug-thirds"] = "2.1"
    changes = differences(old, new)
    assert changes.worse == [(("thirds", "node", "<plain>"), "pass", "fail")]
    assert changes.better == [(("thirds", "real", "deep"), "fail", "pass")]
    assert any(note.startswith("thirds: ") and "2.1" in note for note in changes.notes)
    assert not differences(old, sample()).gone  # it was not asked

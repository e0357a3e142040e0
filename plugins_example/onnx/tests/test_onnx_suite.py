"""ONNX's own tests: evidence that nobody of this project wrote."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tensorplug_onnx import checking
from tensorplug_onnx.command_line import main

# Kind of the suite -> name of the test -> why it fails.
KNOWN = tomllib.loads((Path(__file__).parent / "known_failures.toml").read_text())
PARTS = 8
# ONNX's data rounds each step of softmax to 16 bits, and its runner allows one unit in the last
# place or two: whether our sums, which are rounded once, are that near depends on the machine.
VARIES = re.compile(r"test_attention.*(fp16|bf16)")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", checking.KINDS)
def test_results_are_onnxs(kind, part):
    """Not a test for each of theirs: to collect them takes every process seconds."""
    known = KNOWN.get(kind, {})
    chosen = checking.names_of(kind)[part::PARTS]
    results = [checking.result_of("cpu", kind, name) for name in chosen]
    wrong = {result.name: result.why for result in results if result.status != "passed"}
    certain = {name: why for name, why in wrong.items() if not VARIES.match(name)}
    unknown = [f"{name}: {why}" for name, why in certain.items() if name not in known]
    assert not unknown, "\n".join(unknown)
    assert {name for name in chosen if name in known} == set(certain), "mended: forget these"


@pytest.mark.slow
def test_every_known_failure_has_a_reason_and_a_test():
    for kind, known in KNOWN.items():
        assert all(known.values())
        assert set(known) <= set(checking.names_of(kind))


def test_a_check_is_reported(tmp_path, capsys):
    command = ["check", "--backend", "minimal", "--kind", "simple", "--report", str(tmp_path)]
    assert main(command) == 0
    assert "ONNX's tests on minimal" in capsys.readouterr().out
    found = json.loads((tmp_path / "onnx.json").read_text())
    assert found["device"] == "minimal"
    assert {result["status"] for result in found["results"]} == {"passed"}
    assert f"| simple | {len(found['results'])} | 0 | 0 |" in (tmp_path / "onnx.md").read_text()


def test_what_fails_is_told(monkeypatch, capsys):
    name = checking.names_of("simple")[0]
    monkeypatch.setattr(checking, "names_of", lambda _: [name])

    def wrong(*_):
        raise AssertionError("not equal\nat all")

    monkeypatch.setattr(checking, "_run", wrong)
    assert main(["check", "--backend", "cpu", "--kind", "simple"]) == 1
    assert f"failed {name}: AssertionError: not equal at all" in capsys.readouterr().out

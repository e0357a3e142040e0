"""ONNX's own tests: evidence that nobody of this project wrote."""

from __future__ import annotations

import json
from fnmatch import filter as matching

import numpy as np
import onnx
import pytest

from tensorplug_onnx import checking, evidence
from tensorplug_onnx.checking import Known, known_failures
from tensorplug_onnx.command_line import main

PARTS = 8


def named(known):
    """Return the tests that are known to fail on a correct backend, of all kinds."""
    whole = [name for kind in checking.KINDS for name in checking.names_of(kind)]
    return {name for pattern in known.tests for name in matching(whole, pattern)}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", checking.KINDS)
def test_results_are_onnxs(kind, part):
    """Not a test for each of theirs: to collect them takes every process seconds."""
    chosen = checking.names_of(kind)[part::PARTS]
    results = [checking.result_of("cpu", kind, name) for name in chosen]
    wrong = [f"{one.name}: {one.why}" for one in results if one.status not in ("pass", "known")]
    assert not wrong, "\n".join(wrong)
    # Whether 16-bit results are within the runner's two units depends on the machine.
    certain = {name for known in known_failures() if known.units is None for name in named(known)}
    failed = {one.name for one in results if one.status == "known"}
    assert certain & set(chosen) <= failed, "mended: forget these"


@pytest.mark.slow
@pytest.mark.parametrize("known", known_failures(), ids=lambda known: known.tests[0])
def test_every_known_failure_has_a_reason_and_a_test(known):
    assert known.why
    for pattern in known.tests:
        assert named(Known("", (pattern,))), pattern


ONE = np.float16([1, 2, 1000])
UNIT = np.float16([2**-10, 2**-9, 0.5])  # in the last place of each


@pytest.mark.parametrize(
    ("units", "found", "excused"),
    [
        (None, [ONE * 3], True),
        (None, [ONE.astype(np.float32)], False),
        (None, [ONE[:2]], False),
        (None, [ONE, ONE], False),
        (None, [ONE.tolist()], False),
        (2, [ONE + 2 * UNIT], True),
        (2, [ONE + 5 * UNIT], False),
        (2, [np.float16([1, 2, np.nan])], False),
        (0, [ONE], True),
        (0, [[ONE]], True),  # a sequence
        (0, [ONE + UNIT], False),
    ],
)
def test_what_is_known_to_fail_is_right_in_what_can_be_compared(units, found, excused):
    assert Known("", (), units).excuses([ONE], found) is excused


def test_another_failure_of_a_known_test_is_a_failure(monkeypatch):
    wrong = np.zeros((), np.float32)
    name = "test_bernoulli"
    assert checking.result_of("cpu", "node", name).status == "known"
    monkeypatch.setattr(
        checking, "backend_of", lambda _: type("", (), {"prepare": lambda _: Fixed([wrong])})
    )
    assert checking.result_of("cpu", "node", name).status == "fail"


class Fixed:
    def __init__(self, outputs):
        self._outputs = outputs

    def run(self, _):
        return self._outputs


def test_the_evidence_is_all_of_onnxs_tests():
    tests = evidence.tests()
    assert list(tests) == list(checking.KINDS)
    assert len(tests["node"]) > 1800
    assert evidence.versions()["onnx"] == onnx.__version__
    assert evidence.run("simple", tests["simple"][0]) == ("pass", "")


def test_a_check_is_reported(tmp_path, capsys):
    command = ["check", "--backend", "minimal", "--kind", "simple", "--report", str(tmp_path)]
    assert main(command) == 0
    assert "ONNX's tests on minimal" in capsys.readouterr().out
    found = json.loads((tmp_path / "onnx.json").read_text())
    assert found["device"] == "minimal"
    assert {result["status"] for result in found["results"]} == {"pass"}
    line = f"| simple | {len(found['results'])} | 0 | 0 | 0 |"
    assert line in (tmp_path / "onnx.md").read_text()


def test_what_fails_is_told(monkeypatch, capsys):
    name = checking.names_of("simple")[0]
    monkeypatch.setattr(checking, "names_of", lambda _: [name])

    def wrong(*_):
        np.testing.assert_allclose(np.ones(3), np.float32([1, 2, 3]), rtol=1e-3, err_msg="y")

    monkeypatch.setattr(checking, "_run", wrong)
    assert main(["check", "--backend", "cpu", "--kind", "simple"]) == 1
    text = capsys.readouterr().out
    assert f"failed {name}: AssertionError: Not equal to tolerance rtol=0.001, atol=0" in text
    assert "Max absolute difference among violations: 2." in text

"""Folding the records of a step: counts and failures."""

from __future__ import annotations

import json

from folding import failures, fold, read


def outcome(item, status, **verdict):
    found = None if status is None else {"status": status, **verdict}
    return {"about": "outcome", "level": 2, "item": item, "verdict": found, "error": "it hung"}


def test_a_missing_gpu_is_no_failure():
    found = fold("webgpu", [{"about": "none", "why": "WebGPU finds no GPU"}])
    assert (found["none"], failures(found)) == ("WebGPU finds no GPU", [])


def test_rows_are_counted_and_failures_have_their_reason():
    found = fold(
        "level2",
        [
            {"about": "level", "level": 2, "items": 9},
            outcome(["row", "Add", "float32", "native"], "pass native"),
            outcome(["row", "Exp", "float32", "native"], "not claimed"),
            outcome(
                ["row", "Sin", "float32", "native"],
                "fail",
                failures=[{"case": "large", "message": "off by 3 ulp"}],
            ),
            outcome(["row", "Cos", "float32", "native"], None),
            outcome(["check", 1, "leaks"], "fail", message="2 buffers", failures=[]),
        ],
    )
    assert found["levels"]["2"] == {
        "items": 9,
        "done": 5,
        "passed": 1,
        "failed": 3,
        "other": {"not claimed": 1},
    }
    assert failures(found) == [
        {"what": "Sin float32 native", "why": "large: off by 3 ulp"},
        {"what": "Cos float32 native", "why": "it hung"},
        {"what": "1 leaks", "why": "2 buffers"},
    ]


def test_a_backend_that_does_not_open_is_a_failure_of_the_suite():
    found = fold("level3", [{"about": "error", "why": "no device"}])
    assert failures(found) == [{"what": "the suite", "why": "no device"}]


def test_tests_are_counted_by_file():
    def test(name, outcome, message=""):
        return {"about": "outcome", "test": name, "outcome": outcome, "message": message}

    found = fold(
        "tests",
        [
            {"about": "collected", "count": 5},
            {"about": "start", "test": "tests/opencl/test_a.py::test_x"},
            test("tests/opencl/test_a.py::test_x", "passed"),
            test("tests/opencl/test_a.py::test_y[1::2]", "failed", "1 is not 2"),
            test("tests/opencl/test_b.py::test_z", "crashed", "died"),
        ],
    )
    assert found["collected"] == 5
    assert found["counts"] == {"passed": 1, "failed": 1, "crashed": 1}
    assert found["files"]["test_a.py"] == {"passed": 1, "failed": 1, "skipped": 0, "crashed": 0}
    assert [failure["what"] for failure in failures(found)] == [
        "test_a.py::test_y[1::2]",
        "test_b.py::test_z",
    ]


def test_a_refused_device_and_none_at_all_are_failures():
    refused = fold("facts", [{"about": "device", "hardware": "X", "refused": "wrong sums"}])
    assert failures(refused) == [{"what": "trial of the driver", "why": "wrong sums"}]
    none = fold("facts", [{"about": "none", "why": "there is no GPU"}])
    assert failures(none) == [{"what": "choice of a device", "why": "there is no GPU"}]


def test_rates_that_could_not_be_had_are_failures():
    found = fold(
        "rates",
        [
            {"about": "ceiling", "what": "copy", "dtype": "float32", "rate": 10.0, "unit": "GB/s"},
            {"about": "error", "what": "matmul float16", "why": "BuildError: no half"},
        ],
    )
    assert found["ceilings"][0]["rate"] == 10.0
    assert failures(found) == [{"what": "matmul float16", "why": "BuildError: no half"}]


def test_a_file_is_read_as_far_as_it_is_whole(tmp_path):
    file = tmp_path / "a.jsonl"
    assert read(file) == []
    file.write_text('{"about": "x"}\n{"about": "y", "cut')
    assert read(file) == [{"about": "x"}]
    file.write_text(json.dumps([{"workload": "add"}]))
    assert read(file) == [{"workload": "add"}]

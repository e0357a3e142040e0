"""The page of a run: all done, with failures, without time, without packages, stopped."""

from __future__ import annotations

import pytest
from steps import STEPS
from summary import page, table

DEVICE = {
    "hardware": "NVIDIA H200 (NVIDIA CUDA)",
    "driver": "580.1",
    "verdict": "sound",
    "refused": "",
    "kind": "GPU",
    "extensions": "cl_khr_fp64",
}
COPY = {"what": "copy, 256 MiB", "dtype": "float32", "rate": 4000.0, "unit": "GB/s"}
PRODUCTS = {"what": "scalars", "dtype": "float32", "rate": 60000.0, "unit": "GFLOP/s"}
ADD = {"what": "add", "dtype": "float32", "size": "2^26", "work": 2.4e9, "unit": "GB/s"}
MATMUL = {"what": "matmul", "dtype": "float32", "size": "8192", "work": 6.7e9, "unit": "GFLOP/s"}
UPLOAD = {"what": "upload", "dtype": "float32", "size": "2^24", "work": 6.4e7, "unit": "GB/s"}


def result(**steps):
    return {
        "command": "`python tests/gpu`",
        "started": "2027-01-01T00:00:00+00:00",
        "commit": "abc",
        "budget": 600.0,
        "seconds": 300.0,
        "finished": True,
        "untried": False,
        "notes": [],
        "steps": steps,
    }


def facts(**more):
    return {"status": "done", "seconds": 2.0, "results": {"device": DEVICE | more, "failures": []}}


def lines_with(text, page_):
    return [line for line in page_.splitlines() if text in line]


def test_a_run_without_anything_done_has_a_page():
    shown = page(result())
    assert "# tensorplug on no device" in shown
    assert len(lines_with("| not done |", shown)) == len(STEPS)
    assert len(lines_with("the run did not reach this step", shown)) == len(STEPS)


def test_device_and_driver_stand_on_top():
    top = page(result(facts=facts())).split("##", maxsplit=1)[0]
    assert "NVIDIA H200" in top
    assert "Driver 580.1, verdict of its trial: sound." in top


def test_all_done_has_no_section_on_what_was_not_done():
    done = {step.name: {"status": "done", "seconds": 1.0} for step in STEPS}
    shown = page(result(**done))
    assert "Nothing in the steps that ran." in shown
    assert "What was not done" not in shown


def test_failures_come_with_their_reasons_and_a_limit():
    failures = [{"what": f"Row{n}", "why": "off\nby | 1" + "x" * 500} for n in range(40)]
    state = {"status": "failed", "seconds": 9.0, "results": {"levels": {}, "failures": failures}}
    shown = page(result(facts=facts(), level2=state))
    assert "- `Row0`: off by | 1xxx" in shown
    assert "- and 28 more, in `level2.jsonl`" in shown
    assert max(map(len, lines_with("Row", shown))) < 300
    assert lines_with("| Conformance, levels 0 to 2 | failed | 40 | 9 |", shown)


def test_a_traceback_is_shown_from_its_end():
    failures = [{"what": "fork", "why": f'File "{"x" * 500}", line 3\nValueError: wrong'}]
    state = {"status": "failed", "seconds": 9.0, "results": {"levels": {}, "failures": failures}}
    (line,) = lines_with("`fork`", page(result(level2=state)))
    assert line.startswith("- `fork`: ...xxx")
    assert line.endswith("line 3 ValueError: wrong")
    assert len(line) < 300


def test_a_step_out_of_time_says_how_far_it_came():
    levels = {"3": {"items": 100, "done": 40, "passed": 39, "failed": 0, "other": {"missing": 1}}}
    state = {
        "status": "out of time",
        "seconds": 90.0,
        "why": "stopped after 90 s, its share of the time",
        "results": {"levels": levels, "failures": []},
    }
    shown = page(result(facts=facts(), level3=state))
    assert (
        "- Conformance, level 3: stopped after 90 s, its share of the time; "
        "level 3: 40 of 100 rows and checks done" in shown
    )
    assert "| 3 | 100 | 40 | 39 | 0 | 1 missing |" in shown


def test_tests_out_of_time_say_how_many_are_left():
    results = {"collected": 9, "counts": {"passed": 4}, "files": {}, "failures": []}
    state = {"status": "out of time", "why": "stopped", "seconds": 1.0, "results": results}
    assert "stopped; 4 of 9 tests done" in page(result(tests=state))


def test_a_step_without_its_packages_says_which():
    state = {"status": "not done", "why": "needs hypothesis"}
    assert "- Conformance, level 4: needs hypothesis" in page(result(level4=state))


def test_a_refused_device_is_told_on_top():
    shown = page({**result(facts=facts(verdict="unsound")), "untried": True})
    assert "The driver failed its trial" in shown.split("##", maxsplit=1)[0]


def test_a_cpu_is_told_on_top():
    assert "This is a CPU, not a GPU" in page(result(facts=facts(kind="CPU")))


def test_a_run_that_goes_on_or_was_killed_is_not_at_its_end():
    assert "**not finished**" in page({**result(), "finished": False})
    assert "not finished" not in page(result())


def test_rates_have_shares_of_the_data_sheet_and_of_simple_kernels():
    rates = [
        ADD | {"device_ms": 1.0, "wall_ms": 1.2},
        MATMUL | {"device_ms": 1.0, "wall_ms": 2.0},
        UPLOAD | {"device_ms": None, "wall_ms": 10.0, "bus": True},
    ]
    results = {"ceilings": [COPY, PRODUCTS], "rates": rates, "failures": []}
    state = {"status": "done", "seconds": 1.0, "results": results}
    shown = page(result(facts=facts(), rates=state))
    assert "| copy, 256 MiB | float32 | 4000 GB/s | 83% |" in shown  # of 4800
    assert "| 1 | 1.2 | 2400 GB/s | 2000 GB/s | 50% | 60% |" in shown
    assert "| 1 | 2 | 6.7 TFLOP/s | 3.35 TFLOP/s | 10% | 11% |" in shown  # of 67 and 60
    assert lines_with("upload", shown)[0].endswith("| 10 |  | 6.4 GB/s |  |  |")


@pytest.mark.parametrize("baseline", ["torch", "tensorplug opencl"])
def test_benchmarks_have_the_ratio_to_pytorch_and_numpy(baseline):
    def row(contender, microseconds, ratio):
        return {
            "workload": "add",
            "contender": contender,
            "microseconds": microseconds,
            "ratio": ratio,
            "baseline": baseline,
        }

    ours = row("tensorplug opencl", 200.0, 2.1 if baseline == "torch" else 1.0)
    rows = [ours, row("torch", 100.0, 1.0), row("numpy", 1000.0, 10.0), row("jax", 50.0, 0.5)]
    state = {"status": "done", "seconds": 1.0, "results": {"rows": rows, "failures": []}}
    shown = page(result(facts=facts(), benchmarks=state))
    expected = "2.10" if baseline == "torch" else "2.00"  # by rounds, or of medians
    assert f"| add | opencl | 200.0 us | {expected} | 0.20 | 4.00 (jax) |" in shown


def test_cells_keep_to_their_line_and_column():
    assert table(("a", "b"), [["x\ny", "p|q"]], numbers=1) == [
        "| a | b |",
        "| --- | ---: |",
        "| x y | p\\|q |",
    ]

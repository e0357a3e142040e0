"""The times of kernels: which calls are made, what they need at least, and where they are kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance import cli
from tensorplug_conformance.case import Case, flat
from tensorplug_conformance.checks import Target
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.performance import measurement, measuring
from tensorplug_conformance.performance.calls import TimedCall, timed_calls
from tensorplug_conformance.performance.measurement import NotMeasurableError, measure
from tensorplug_conformance.performance.typical import TYPICAL
from tensorplug_conformance.reporting import report
from tensorplug_conformance.reporting.roofline import (
    SIZES,
    could_be,
    gains,
    hurried,
    least_seconds,
    without_estimate,
)
from tensorplug_conformance.session import engine_factory

from .reports import sample

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = entries()
LIMITS = {
    "overhead": 1e-6,
    "bandwidth": {"small": 1e9, "medium": 1e10, "large": 2e9},
    "peak": 1e10,
}
BESIDE = {
    "overhead": 5e-7,
    "bandwidth": {"small": 1e9, "medium": 2e10, "large": 4e9},
    "peak": 5e9,
}


def called(kernel: str) -> dict[str, TimedCall]:
    return {call.size: call for call in timed_calls(KNOWN[kernel], dt.FIXED)}


@pytest.mark.parametrize("kernel", ["Neg", "Add", "Sum", "Softmax", "Fill", "Concat"])
def test_calls_have_about_as_many_elements_as_asked_for(kernel: str) -> None:
    calls = called(kernel)
    assert list(calls) == list(SIZES)
    for size, call in calls.items():
        canonical, outputs = KNOWN[kernel].spec.resolve(
            [[_type(one) for one in operand] if isinstance(operand, list) else operand
             if operand is None else _type(operand) for operand in call.operands],
            call.attributes,
        )  # fmt: skip
        assert canonical == call.attributes
        arrays = flat(call.operands)
        most = max([array.size for array in arrays] + [output.size for output in outputs])
        assert SIZES[size] / 4 <= most <= SIZES[size] * 4
        moved = sum(array.nbytes for array in arrays) + sum(output.nbytes for output in outputs)
        assert call.moved == moved


def _type(array: np.ndarray[Any, Any]) -> Any:
    from tensorplug.plugin import TensorType

    return TensorType(dt.of(array.dtype), array.shape)


@pytest.mark.parametrize("kernel", sorted(TYPICAL))
def test_typical_shapes_are_calls_that_grow(kernel: str) -> None:
    calls = called(kernel)
    assert list(calls) == list(SIZES)
    assert calls["small"].moved < calls["medium"].moved < calls["large"].moved
    for call in calls.values():  # of square matrices and images, the two long axes are equal
        for operand in flat(call.operands):
            assert max(operand.shape) <= 1024


@pytest.mark.parametrize(
    ("kernel", "shapes", "work"),
    [
        ("BatchMatMul", [(1024, 1024), (1024, 1024)], 2 * 1024**3),
        ("Conv2D", [(1, 56, 56, 64), (3, 3, 64, 64)], 2 * 56 * 56 * 9 * 64 * 64),
        ("Conv2DBackpropFilter", [(1, 56, 56, 64)] * 2, 2 * 56 * 56 * 9 * 64 * 64),
        ("DepthwiseConv2dNative", [(1, 56, 56, 64), (3, 3, 64, 1)], 2 * 56 * 56 * 9 * 64),
        ("MaxPool", [(1, 56, 56, 64)], 0),
    ],
)
def test_shapes_and_work(kernel: str, shapes: list[tuple[int, ...]], work: int) -> None:
    call = called(kernel)["large"]
    assert [operand.shape for operand in call.operands] == shapes
    assert call.work == work


def test_calls_have_dtypes_that_the_backend_has() -> None:
    few = frozenset({dt.float32, dt.int32, dt.bool_})
    for kernel in ("Cast", "Bitcast", "Neg"):
        for call in timed_calls(KNOWN[kernel], few):
            case = Case("", tuple(call.operands), call.attributes)
            assert {_type(array).dtype for array in flat(call.operands)} <= few
            (output,) = KNOWN[kernel].spec.resolve(case.types, case.attributes)[1]
            assert output.dtype in few
    assert [call.kernel for call in timed_calls(KNOWN["Cast"], few)] == ["Cast"] * len(SIZES)
    assert list(timed_calls(KNOWN["RFFT"], few)) == []


def test_the_largest_of_each_window() -> None:
    _, x, largest = called("MaxPoolGrad")["small"].operands
    assert largest.shape == (1, 7, 7, 8)
    for i, j in ((0, 0), (3, 5), (6, 6)):
        window = x[0, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        np.testing.assert_array_equal(largest[0, i, j], window.max((0, 1)))


def test_most_of_the_catalogue_has_a_call_of_each_size() -> None:
    sizes = {name: set(called(name)) for name in sorted(KNOWN)[::6]}
    whole = [name for name, of_kernel in sizes.items() if of_kernel == set(SIZES)]
    assert len(whole) > 0.8 * len(sizes), {
        name: sizes[name] for name in sizes if name not in whole
    }


@pytest.mark.parametrize(
    ("moved", "work", "least"),
    [
        (0, 0, 1e-6),  # the call itself
        (100, 0, 1e-6),
        (5_000, 0, 5e-6),  # at the bandwidth of small arrays,
        (100_000, 0, 1e-5),  # of medium ones,
        (4_000_000, 0, 2e-3),  # and of large ones
        (4_000_000, 10**8, 1e-2),
    ],
)
def test_the_least_time(moved: int, work: int, least: float) -> None:
    assert least_seconds({"moved": moved, "work": work}, LIMITS) == pytest.approx(least)


@pytest.mark.parametrize(
    ("cpu", "beside_how", "work", "estimate"),
    [
        # 1 us for the call, and the rest of cpu's time at half its bandwidth
        (1e-2, "native", 0, (1e-6 + 2 * (1e-2 - 5e-7), "time")),
        (1e-2, "widened", 0, (1e-6 + 2 * (1e-2 - 5e-7), "time")),
        (1e-2, "native", 10**6, (1e-6 + (1e-2 - 5e-7) / 2, "time")),  # at twice its peak
        (1e-4, "native", 0, (2e-3, "time")),  # not below what the bytes need,
        (1e-4, "native", 10**8, (1e-2, "time")),  # nor the operations
        (1e-2, "decomposed", 10**8, (1e-2, "operations")),
        (None, "", 10**8, (1e-2, "operations")),
        (1e-2, "decomposed", 0, None),
        (None, "", 0, None),
    ],
)
def test_what_a_native_kernel_could_take(
    cpu: float | None, beside_how: str, work: int, estimate: tuple[float, str] | None
) -> None:
    row = timed("Gelu", "large", decomposed=1.0, **({} if cpu is None else {"cpu": cpu}))
    row = {**row, "beside_how": beside_how, "work": work}
    performance = {"limits": LIMITS, "beside": "cpu", "beside_limits": BESIDE}
    could_take = could_be(row, performance)
    if estimate is None:
        assert could_take is None
    else:
        assert could_take is not None
        assert (could_take.seconds, could_take.source) == (pytest.approx(estimate[0]), estimate[1])
    alone = could_be(row, {"limits": LIMITS, "beside": "", "beside_limits": None})
    assert (alone is None) == (work == 0)


def timed(kernel: str, size: str, **seconds: float) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "dtype": "float32",
        "size": size,
        "call": f"{kernel}(x=float32[1000])",
        "moved": 4_000_000,
        "work": 0,
        "how": "native" if "native" in seconds else "decomposed",
        "beside_how": "native" if "cpu" in seconds else "",
        "seconds": seconds,
        "rounds": 8,
        "error": "",
    }


def times() -> dict[str, Any]:
    """Return a measurement as data."""
    return {
        "distribution": "tensorplug-acme",
        "version": "1.2",
        "device": "Acme <One>",
        "started": "2026-11-01T12:00:00+00:00",
        "seconds": 61.0,
        "beside": "cpu",
        "limits": LIMITS,
        "beside_limits": BESIDE,
        "rows": [
            timed("Neg", "large", native=2e-3, cpu=1e-3),
            timed("Softmax", "large", native=2e-3, decomposed=9e-3, cpu=1e-3),
            timed("Gelu", "large", decomposed=5e-3, cpu=1e-3),
            timed("Gelu", "small", decomposed=4.5e-3, cpu=1e-3),
            timed("Erfc", "large", decomposed=2.2e-2, cpu=1e-3),
            timed("Square", "large", decomposed=1.9e-3, cpu=1e-3),
            {**timed("Unique", "large", decomposed=3.0), "rounds": 0},
            timed("Unique", "small", decomposed=1e-3),
            {**timed("Lu", "large", decomposed=4.0, cpu=3.0), "beside_how": "decomposed"},
        ],
        "without": ["Eye"],
        "failed": {"Svd": "it took more than 60 s"},
    }


def test_the_largest_gain_comes_first() -> None:
    listed = gains(times())
    # Not Neg and Softmax, which are native, nor Square, which is at the limit, nor Unique and Lu,
    # of which cpu has no native kernel.
    assert [gain.kernel for gain in listed] == ["Erfc", "Gelu"]
    assert listed[0].saved == pytest.approx(2e-2)
    assert listed[0].times == pytest.approx(11)
    assert [(gain.kernel, gain.size) for gain in without_estimate(times())] == [
        ("Lu", "large"),
        ("Unique", "large"),
    ]
    assert [row["kernel"] for row in times()["rows"] if hurried(row)] == ["Unique"]


def test_a_report_with_times_fulfils_the_schema() -> None:
    content = {**sample(), "performance": times()}
    assert report.faults(content) == []
    content["performance"]["rows"][0]["seconds"]["native"] = -1
    assert report.faults(content) != []


def test_measuring_two_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    figures = measure(Target("minimal"), ("Neg", "Square"))
    ran = {(row["kernel"], row["size"]): row for row in figures["rows"]}
    assert set(ran) == {(kernel, size) for kernel in ("Neg", "Square") for size in SIZES}
    assert not figures["failed"]
    for limits in (figures["limits"], figures["beside_limits"]):
        assert 1e-8 < limits["overhead"] < 1e-2
        assert set(limits["bandwidth"]) == set(SIZES)
        assert limits["peak"] > limits["bandwidth"]["small"]
    for (kernel, _), row in ran.items():
        assert row["error"] == ""
        how = "native" if kernel == "Neg" else "decomposed"
        assert set(row["seconds"]) == {how, "cpu"}
        assert min(row["seconds"].values()) > 0
    for kernel in ("Neg", "Square"):
        assert ran[kernel, "large"]["moved"] > 1000 * ran[kernel, "small"]["moved"]
        large, small = (ran[kernel, size]["seconds"]["cpu"] for size in ("large", "small"))
        assert large > small
    with pytest.raises(NotMeasurableError, match="no kernel of the catalogue is called Nog"):
        measure(Target("minimal"), ("Nog",))
    assert capsys.readouterr().out == ""


def test_a_kernel_that_takes_long_is_timed_less_and_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "_SHORT", 0.0)
    monkeypatch.setattr(measuring, "_TOO_LONG", 0.0)
    stopwatch = measuring.Stopwatch("minimal", engine_factory(None), engine_factory(None))
    small, *larger = stopwatch.kernel(KNOWN["Square"], 0.0)
    assert (small["rounds"], hurried(small), small["error"]) == (0, True, "")
    assert set(small["seconds"]) == {"decomposed", "cpu"}
    assert small["beside_how"] == "native"
    for row in larger:
        assert row["seconds"] == {}
        assert not hurried(row)
        assert row["error"].startswith(f"left out: the {row['size']} call would take about ")


def test_kernels_share_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "_BUDGET", 0.0)
    figures = measure(Target("minimal"), ("Neg", "Square"))
    assert {row["rounds"] for row in figures["rows"]} == {0}
    assert all(row["seconds"] for row in figures["rows"])


def test_times_join_the_report_of_the_same_backend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["--backend", "minimal", "--level", "2", "--kernels", "Neg", "--dtypes", "float32"]
    assert cli.main(["run", *run, "--report", str(tmp_path)]) == 0
    timing = ["measure", "--backend", "minimal", "--kernels", "Neg", "--report", str(tmp_path)]
    assert cli.main(timing) == 0
    content = report.read(tmp_path)
    assert [row["kernel"] for row in content["performance"]["rows"]] == ["Neg"] * len(SIZES)
    changed = {**content, "backend": {**content["backend"], "version": "9"}}
    (tmp_path / "report.json").write_text(json.dumps(changed))
    assert cli.main(timing) == 2
    assert "its version is '9'" in capsys.readouterr().out


def test_times_are_added_only_to_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        timing = ["measure", "--backend", "minimal", "--kernels", "Neg", "--report", str(folder)]
        assert cli.main(timing) == 2
        said = capsys.readouterr().out
        assert f"{folder} has no report" in said
        assert "`run --report " in said

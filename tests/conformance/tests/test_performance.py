"""The times of kernels: which calls are made, what they need at least, and where they are kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance import cli, report
from tensorplug_conformance.case import flat
from tensorplug_conformance.checks import Target
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.performance.calls import SIZES, TimedCall, timed_calls
from tensorplug_conformance.performance.measurement import NotMeasurableError, measure
from tensorplug_conformance.roofline import gains, least_seconds

from .reports import sample

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = entries()
LIMITS = {
    "overhead": 1e-6,
    "bandwidth": {"small": 1e9, "medium": 1e10, "large": 2e9},
    "peak": 1e10,
}


def called(kernel: str) -> dict[str, TimedCall]:
    return {call.size: call for call in timed_calls(KNOWN[kernel], dt.FIXED)}


@pytest.mark.parametrize(
    "kernel", ["Neg", "Add", "Sum", "BatchMatMul", "Conv2D", "Fill", "Concat"]
)
def test_calls_have_about_as_many_elements_as_asked_for(kernel: str) -> None:
    found = called(kernel)
    assert list(found) == list(SIZES)
    for size, call in found.items():
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


def test_the_work_of_products_and_convolutions() -> None:
    call = called("BatchMatMul")["large"]
    a, b = (operand.shape for operand in call.operands)
    rows = a[-1] if call.attributes["transpose_a"] else a[-2]
    columns, inner = (b[-2], b[-1]) if call.attributes["transpose_b"] else (b[-1], b[-2])
    batch = np.prod(np.broadcast_shapes(a[:-2], b[:-2]), dtype=int)
    assert call.work == pytest.approx(2 * batch * rows * columns * inner, rel=1e-9)
    call = called("Conv2D")["large"]
    filters = call.operands[1].shape
    (output,) = KNOWN["Conv2D"].spec.resolve(
        [_type(operand) for operand in call.operands], call.attributes
    )[1]
    places = output.size // filters[-1]
    assert call.work == 2 * places * filters[0] * filters[1] * filters[2] * filters[3]
    assert called("Neg")["large"].work == 0


def test_most_of_the_catalogue_has_a_call_of_each_size() -> None:
    sizes = {name: set(called(name)) for name in sorted(KNOWN)[::6]}
    whole = [name for name, found in sizes.items() if found == set(SIZES)]
    assert len(whole) > 0.8 * len(sizes), {
        name: sizes[name] for name in sizes if name not in whole
    }


@pytest.mark.parametrize(
    ("size", "moved", "work", "least"),
    [
        ("small", 100, 0, 1e-6),  # the call itself
        ("small", 10_000, 0, 1e-5),
        ("large", 4_000_000, 0, 2e-3),
        ("large", 4_000_000, 10**8, 1e-2),
    ],
)
def test_the_least_time(size: str, moved: int, work: int, least: float) -> None:
    row = {"size": size, "moved": moved, "work": work}
    assert least_seconds(row, LIMITS) == pytest.approx(least)


def timed(kernel: str, size: str, **seconds: float) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "dtype": "float32",
        "size": size,
        "call": f"{kernel}(x=float32[1000])",
        "moved": 4_000_000,
        "work": 0,
        "how": "native" if "native" in seconds else "decomposed",
        "seconds": seconds,
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
        "rows": [
            timed("Neg", "large", native=2e-3, cpu=1e-3),
            timed("Softmax", "large", native=2e-3, decomposed=9e-3, cpu=1e-3),
            timed("Gelu", "large", decomposed=5e-3, cpu=1e-3),
            timed("Gelu", "small", decomposed=4.5e-3, cpu=1e-3),
            timed("Erfc", "large", decomposed=2.2e-2, cpu=1e-3),
            timed("Square", "large", decomposed=1.9e-3),
        ],
        "without": ["Eye"],
        "failed": {"Svd": "it took more than 60 s"},
    }


def test_the_largest_gain_comes_first() -> None:
    found = gains(times())
    # Not Neg and Softmax, which are native, nor Square, which is at the limit.
    assert [gain.kernel for gain in found] == ["Erfc", "Gelu"]
    assert found[0].saved == pytest.approx(2e-2)
    assert found[0].times == pytest.approx(11)


def test_a_report_with_times_fulfils_the_schema() -> None:
    found = {**sample(), "performance": times()}
    assert report.faults(found) == []
    found["performance"]["rows"][0]["seconds"]["native"] = -1
    assert report.faults(found) != []


def test_measuring_two_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    found = measure(Target("minimal"), ("Neg", "Square"))
    ran = {(row["kernel"], row["size"]): row for row in found["rows"]}
    assert set(ran) == {(kernel, size) for kernel in ("Neg", "Square") for size in SIZES}
    assert not found["failed"]
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


def test_times_join_the_report_of_the_same_backend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["--backend", "minimal", "--level", "2", "--kernels", "Neg", "--dtypes", "float32"]
    assert cli.main(["run", *run, "--report", str(tmp_path)]) == 0
    timing = ["measure", "--backend", "minimal", "--kernels", "Neg", "--report", str(tmp_path)]
    assert cli.main(timing) == 0
    found = report.read(tmp_path)
    assert [row["kernel"] for row in found["performance"]["rows"]] == ["Neg"] * len(SIZES)
    changed = {**found, "backend": {**found["backend"], "version": "9"}}
    (tmp_path / "report.json").write_text(json.dumps(changed))
    assert cli.main(timing) == 2
    assert "its version is '9'" in capsys.readouterr().out

"""The page for an issue: the results on the device, failures, and missing steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folding import failures
from peaks import Peak, peak_of, share
from steps import STEPS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


SHOWN: Final = 12  # failures of one step; the logs have them all
LENGTH: Final = 240  # letters of a reason
WHOLE: Final = ("done", "failed")  # completed steps

# Facts on the page, the others are in result.json.
_ABOUT: Final = (
    "hardware",
    "board",
    "driver",
    "verdict",
    "refused",
    "OpenCL",
    "kind",
    "compute units",
    "clock MHz",
    "compute capability",
    "memory MiB",
    "largest piece MiB",
    "local memory KiB",
    "dtypes",
    "trial seconds",
)


def page(result: Mapping[str, Any]) -> str:
    """Return the page, in Markdown, from ``result.json``."""
    steps: Mapping[str, Any] = result["steps"]
    blocks = [_head(result), _states(result), _failed(steps), *_rest(result)]
    for step in STEPS:
        results = steps.get(step.name, {}).get("results")
        if results:
            told = _TABLES[step.name](results, steps)
            if told:
                blocks.append([f"## {step.title}", "", *told])
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: int = 0) -> list[str]:
    """Return a table in Markdown, whose last ``numbers`` columns are aligned at the right."""
    kinds = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    lines = [head, kinds, *([_cell(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(value: Any) -> str:
    return " ".join(str("" if value is None else value).split()).replace("|", "\\|")


def _short(text: str) -> str:
    text = " ".join(text.split())
    if text.startswith(("File ", "Traceback")):  # the error stands at its end
        return text if len(text) <= LENGTH else f"...{text[3 - LENGTH :]}"
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 3]}..."


def _head(result: Mapping[str, Any]) -> list[str]:
    device = _device(result["steps"])
    paragraphs = [f"# tensorplug on {device.get('hardware', 'no device')}"]
    if device:
        paragraphs.append(f"Driver {device['driver']}, verdict of its trial: {device['verdict']}.")
    if device.get("kind") not in (None, "GPU"):
        paragraphs.append(
            f"This is a {device['kind']}, not a GPU: the figures only show that the run works."
        )
    if result["untried"]:
        paragraphs.append(
            "**The driver failed its trial**, so the backend refuses this device. The steps below "
            "ran with TENSORPLUG_OPENCL_TRIAL=0, to show what fails."
        )
    spent = f"{result['seconds']:.0f} of {result['budget']:.0f} s"
    state = "" if result["finished"] else ", **not finished**"
    where = f"{result['started']}, commit {result['commit']}"
    paragraphs.append(f"{result['command']}, {where}, {spent}{state}.")
    paragraphs += [f"{note}." for note in result["notes"]]
    return "\n\n".join(paragraphs).split("\n")


def _device(steps: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = steps.get("facts", {}).get("results", {}).get("device", {})
    return found


def _states(result: Mapping[str, Any]) -> list[str]:
    rows = []
    for step in STEPS:
        state = result["steps"].get(step.name, {"status": "not done"})
        count = len(failures(state.get("results", {})))
        seconds = f"{state['seconds']:.0f}" if "seconds" in state else ""
        rows.append([step.title, state["status"], count or "", seconds, state.get("why", "")])
    return table(("step", "state", "failures", "s", ""), rows)


def _failed(steps: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for step in STEPS:
        found = failures(steps.get(step.name, {}).get("results", {}))
        if found:
            lines += ["", f"{step.title}: {len(found)}", ""]
            lines += [
                f"- `{failure['what']}`: {_short(failure['why'])}" for failure in found[:SHOWN]
            ]
            if len(found) > SHOWN:
                lines.append(f"- and {len(found) - SHOWN} more, in `{step.name}.jsonl`")
    return (
        ["## What failed", *lines]
        if lines
        else ["## What failed", "", "Nothing in the steps that ran."]
    )


def _rest(result: Mapping[str, Any]) -> list[list[str]]:
    """Return the steps that are missing or incomplete."""
    lines = []
    for step in STEPS:
        state = result["steps"].get(step.name, {})
        if state.get("status") not in WHOLE:
            why = state.get("why") or "the run did not reach this step"
            left = _left(step.name, state.get("results", {}))
            lines.append(f"- {step.title}: {'; '.join(filter(None, (_short(why), left)))}")
    return [["## What was not done", "", *lines]] if lines else []


def _left(name: str, results: Mapping[str, Any]) -> str:
    if name.startswith("level") or name == "webgpu":
        parts = [
            f"level {level}: {counts['done']} of {counts['items']} rows and checks done"
            for level, counts in results.get("levels", {}).items()
        ]
        return ", ".join(parts)
    if name == "benchmarks" and results:
        done = len({row["workload"] for row in results["rows"]}) + len(failures(results))
        return f"{done} of {len(WORKLOADS)} workloads done"
    if name == "tests" and results.get("collected"):
        return f"{sum(results['counts'].values())} of {results['collected']} tests done"
    return ""


def _about(results: Mapping[str, Any], _steps: Mapping[str, Any]) -> list[str]:
    device = results.get("device", {})
    rows = [(name, device[name]) for name in _ABOUT if device.get(name)]
    if device:
        peak = peak_of(device)
        rows.append(("peak", _peak_told(peak)))
    rows += list(results.get("environment", {}).items())
    lines = table(("", ""), rows)
    others = results.get("devices", {}).get("devices", [])
    if others:
        lines += ["", "All OpenCL devices:", "", *(f"- {other}" for other in others)]
    if device.get("extensions"):
        lines += ["", "<details><summary>Extensions</summary>", "", device["extensions"], ""]
        lines.append("</details>")
    return lines


def _peak_told(peak: Peak | None) -> str:
    if peak is None:
        return "unknown"
    parts = [f"{peak.memory:.0f} GB/s"] if peak.memory else []
    parts += [f"{dtype} {rate / 1000:.3g} TFLOP/s" for dtype, rate in peak.flops.items()]
    return f"{', '.join(parts)} ({peak.source})"


def _levels(results: Mapping[str, Any], _steps: Mapping[str, Any]) -> list[str]:
    rows = [
        (
            level,
            result["items"],
            result["done"],
            result["passed"],
            result["failed"],
            ", ".join(f"{count} {status}" for status, count in sorted(result["other"].items())),
        )
        for level, result in results["levels"].items()
    ]
    if not rows:
        return []
    lines = table(("level", "rows and checks", "done", "passed", "failed", "other"), rows)
    report = results.get("report")
    if report:
        state = "Conformant" if report["conformant"] else "Not conformant"
        because = f": {'; '.join(report['blocked_by'])}" if report["blocked_by"] else ""
        lines += [
            "",
            f"{state} at level {report['level']}{_short(because)}. Report: `conformance/`.",
        ]
    return lines


def _tests(results: Mapping[str, Any], _steps: Mapping[str, Any]) -> list[str]:
    kinds = ("passed", "failed", "crashed", "skipped")
    files = results["files"]
    bad = [(name, file) for name, file in files.items() if file["failed"] or file["crashed"]]
    rows = [(f"all, of {len(files)} files", results["counts"]), *bad]
    lines = [(name, *(row.get(kind) or "" for kind in kinds)) for name, row in rows]
    return table(("file", *kinds), lines, 4) if files else []


def _rates(results: Mapping[str, Any], steps: Mapping[str, Any]) -> list[str]:
    peak = peak_of(_device(steps)) or Peak()
    lines: list[str] = []
    best: dict[tuple[str, str], float] = {}
    for result in results["ceilings"]:
        key = (result["unit"], result["dtype"])
        best[key] = max(best.get(key, 0.0), result["rate"])
    fastest = [
        result
        for result in results["ceilings"]
        if best[result["unit"], result["dtype"]] == result["rate"] or result["unit"] == "GB/s"
    ]
    if fastest:
        lines += [
            "Simple OpenCL kernels, the fastest of several calls, by the device's clock:",
            "",
        ]
        rows = [
            (
                rate["what"],
                rate["dtype"],
                _rate(rate["rate"], rate["unit"]),
                _percent(share(rate["rate"], _of(peak, rate))),
            )
            for rate in fastest
        ]
        lines += [*table(("kernel", "dtype", "rate", "of the peak"), rows, 2), ""]
    if results["rates"]:
        lines += [
            "tensorplug, medians. Wall time runs from the call until the device has finished. The",
            "shares, by the device's clock, are of the peak and of the fastest simple kernel:",
            "",
        ]
        rows = [
            (
                result["what"],
                result["dtype"],
                result["size"],
                _milliseconds(result["device_ms"]),
                _milliseconds(result["wall_ms"]),
                _rate(_by(result, "device_ms"), result["unit"]),
                _rate(_by(result, "wall_ms"), result["unit"]),
                _percent(share(_by(result, "device_ms"), _of(peak, result))),
                _percent(share(_by(result, "device_ms"), _measured(best, result))),
            )
            for result in results["rates"]
        ]
        head = ("op", "dtype", "size", "device ms", "wall ms", "rate", "rate, wall")
        lines += table((*head, "of the peak", "of simple kernels"), rows, 6)
    return lines


def _of(peak: Peak, row: Mapping[str, Any]) -> float | None:
    if row.get("bus"):
        return None  # between host and device
    return peak.memory if row["unit"] == "GB/s" else peak.flops.get(row["dtype"])


def _measured(best: Mapping[tuple[str, str], float], row: Mapping[str, Any]) -> float | None:
    if row.get("bus"):
        return None
    if row["unit"] == "GB/s":
        return max((rate for (unit, _), rate in best.items() if unit == "GB/s"), default=None)
    return best.get((row["unit"], row["dtype"]))


def _by(row: Mapping[str, Any], clock: str) -> float | None:
    """Return the rate in billions a second by one of the clocks."""
    taken = row[clock]
    return row["work"] / taken / 1e6 if taken else None


def _rate(rate: float | None, unit: str) -> str:
    if rate is None:
        return ""
    if unit == "GFLOP/s" and rate >= 1000:
        return f"{rate / 1000:.3g} TFLOP/s"
    return f"{rate:.3g} {unit}" if rate < 1000 else f"{rate:.0f} {unit}"


def _milliseconds(taken: float | None) -> str:
    return f"{taken:.3g}" if taken else ""


def _percent(part: float | None) -> str:
    return "" if part is None else f"{100 * part:.0f}%"


def _benchmarks(results: Mapping[str, Any], steps: Mapping[str, Any]) -> list[str]:
    rows = results["rows"]
    if not rows:
        return []
    by_workload: dict[str, dict[str, Any]] = {}
    for row in rows:
        by_workload.setdefault(row["workload"], {})[row["contender"]] = row
    peer = steps.get("facts", {}).get("results", {}).get("peer", {})
    lines = [
        "Wall time of a call and the wait for its result, medians of interleaved rounds. A ratio",
        "is tensorplug's time divided by the other's: below 1, tensorplug is faster.",
        f"PyTorch: {peer.get('PyTorch', 'not installed')}.",
        "",
    ]
    told = []
    for workload, contenders in by_workload.items():
        for name, row in contenders.items():
            if name.startswith("tensorplug"):
                ratios = [_ratio(row, contenders.get(word)) for word in ("torch", "numpy")]
                ratios.append(_others(row, contenders))
                told.append((workload, name.removeprefix("tensorplug "), _time(row), *ratios))
    head = ("workload", "backend", "time", "to PyTorch", "to NumPy", "to others")
    return lines + table(head, told, 4)


def _others(ours: Mapping[str, Any], contenders: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the ratios to libraries other than ours, PyTorch and NumPy, with their names."""
    known = ("tensorplug", "torch", "numpy")
    return ", ".join(
        f"{_ratio(ours, row)} ({name})"
        for name, row in contenders.items()
        if not (name.startswith(known[0]) or name in known)
    )


def _time(row: Mapping[str, Any]) -> str:
    taken = row["microseconds"]
    return f"{taken:.1f} us" if taken < 1000 else f"{taken / 1000:.3g} ms"


def _ratio(ours: Mapping[str, Any], theirs: Mapping[str, Any] | None) -> str:
    """Return our time by theirs; by rounds if theirs is the baseline."""
    if theirs is None:
        return ""
    if theirs["contender"] == ours["baseline"]:
        return f"{ours['ratio']:.2f}"
    return f"{ours['microseconds'] / theirs['microseconds']:.2f}"


_TABLES: Final[dict[str, Callable[[Any, Any], list[str]]]] = {
    "facts": _about,
    "level2": _levels,
    "level3": _levels,
    "level4": _levels,
    "webgpu": _levels,
    "tests": _tests,
    "rates": _rates,
    "benchmarks": _benchmarks,
}

"""What came of a comparison, as text for a terminal and as data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance import SUITE_VERSION
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.differential.scripts import described, script
from tensorplug_conformance.reporting.quoting import for_terminal

if TYPE_CHECKING:
    from rich.console import Console

    from tensorplug_conformance.differential.calls import Call, Place
    from tensorplug_conformance.differential.comparison import Comparison, Finding
    from tensorplug_conformance.differential.judging import Verdict


_LONGEST: Final = 160  # characters of a call that is shown
_SHOWN: Final = 5  # calls about which nothing can be said


def conclusion(comparison: Comparison) -> str:
    """Return the answer in one sentence."""
    one, other = (run.backend for run in comparison.runs)
    if comparison.first is None and comparison.stopped:
        return f"{one} and {other} cannot be compared: {comparison.stopped}"
    first = comparison.first
    if first is None:
        return f"no difference beyond the bounds between {one} and {other}"
    wrong = [name for name, fault in zip((one, other), first.faults, strict=True) if fault]
    inside = f" in the decomposition of {first.within}" if first.within else ""
    return f"{one} and {other} part in {first.text}{inside}: wrong is {' and '.join(wrong)}"


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as data for JSON; infinite distances are None."""
    first = comparison.first
    return {
        "suite": {"version": SUITE_VERSION, "tolerances": tolerances().version},
        "backends": [
            {
                "name": run.backend,
                "calls": len(run.ops),
                "ended": run.ended,
                "recorded": run.cut or "wholly",
            }
            for run in comparison.runs
        ],
        "conclusion": conclusion(comparison),
        "compared": comparison.compared,
        "stopped": comparison.stopped,
        "fallbacks": comparison.fallbacks,
        "first": None if first is None else _finding(comparison, first),
        "others": [
            {"kernel": kernel, "calls": number, "place": _place(place)}
            for kernel, (number, place) in comparison.others.items()
        ],
        "largest": None if comparison.largest is None else _measured(*comparison.largest),
        "unjudged": [{**_called(call), "reason": reason} for call, reason in comparison.unjudged],
        "parted": None
        if comparison.alignment.parted is None
        else [None if call is None else _called(call) for call in comparison.alignment.parted],
    }


def _finding(comparison: Comparison, first: Finding) -> dict[str, Any]:
    names = [run.backend for run in comparison.runs]
    return {
        "kernel": first.kernel,
        "call": first.text,
        "within": first.within or None,
        "place": _place(first.place),
        "number": first.number,
        "faults": dict(zip(names, first.faults, strict=True)),
        "how": dict(zip(names, first.how, strict=True)),
        **_distance(first.verdict),
        "oracle": first.verdict.oracle,
        "repeats": not first.history,
        "smallest": described(first.kernel, first.attributes, first.operands),
        "script": script(names[0], names[1], first) or None,
    }


def _called(call: Call) -> dict[str, Any]:
    return {"call": call.text, "number": call.number, "place": _place(call.place)}


def _measured(call: Call, verdict: Verdict) -> dict[str, Any]:
    return {**_called(call), **_distance(verdict), "oracle": verdict.oracle}


def _distance(verdict: Verdict) -> dict[str, Any]:
    return {"ulp": verdict.ulp if math.isfinite(verdict.ulp) else None, "allowed": verdict.allowed}


def _place(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "file": place.file,
        "line": place.line,
        "function": place.function,
        "source": place.source,
    }


def show(comparison: Comparison, console: Console) -> None:
    """Print what was found, the conclusion last."""

    def say(text: str, style: str = "") -> None:
        console.print(for_terminal(text), style=style, soft_wrap=True, highlight=False)

    for run in comparison.runs:
        end = f"; the program {run.ended}" if run.ended else ""
        say(f"{run.backend}: {len(run.ops)} calls{end}{'; ' + run.cut if run.cut else ''}")
        if run.ended:
            say(run.output, "dim")
    say(f"{comparison.compared} different calls were made again on {comparison.runs[1].backend}")
    if comparison.fallbacks:
        say(f"{comparison.fallbacks} calls ran on another backend and are left out", "yellow")
    if comparison.stopped:
        say(comparison.stopped, "yellow")
    _show_parting(comparison, say)
    for call, reason in comparison.unjudged[:_SHOWN]:
        say(f"not judged: {call.text} at {call.place}: {reason}", "yellow")
    if len(comparison.unjudged) > _SHOWN:
        say(f"... and {len(comparison.unjudged) - _SHOWN} more, in the JSON", "yellow")
    if comparison.largest is not None:
        call, verdict = comparison.largest
        bound = "the reference's own bound" if verdict.oracle else f"{verdict.allowed:g} ulp"
        say(
            f"largest difference within the bounds: {verdict.ulp:.3g} ulp in {call.text} at "
            f"{call.place}, within {bound}"
        )
    if comparison.first is not None:
        _show_first(comparison, comparison.first, say)
    for kernel, (number, place) in comparison.others.items():
        say(f"later: {kernel}, {number} calls, first at {place}", "yellow")
    say(
        conclusion(comparison),
        "bold red" if comparison.first or comparison.stopped else "bold green",
    )


def _show_parting(comparison: Comparison, say: Any) -> None:
    if comparison.alignment.parted is None:
        return
    lines = [
        f"{run.backend} {'ends' if call is None else f'calls {call.text} at {call.place}'}"
        for run, call in zip(comparison.runs, comparison.alignment.parted, strict=True)
    ]
    say(f"the programs go two ways: {lines[0]}, {lines[1]}", "yellow")


def _show_first(comparison: Comparison, first: Finding, say: Any) -> None:
    say(f"call {first.number}: {first.text}", "bold")
    say(f"  called at {first.place}")
    if first.within:
        say(f"  in the decomposition of {first.within}")
    for run, fault, how in zip(comparison.runs, first.faults, first.how, strict=True):
        say(f"  {run.backend} ({how or 'did not run'}): {fault or 'right'}")
    if math.isfinite(first.verdict.ulp):
        judge = "the oracle decides" if first.verdict.oracle else "no oracle decides"
        say(
            f"  {first.verdict.ulp:.3g} ulp apart; two correct ones may be "
            f"{first.verdict.allowed:g} ulp apart; {judge}"
        )
    if first.history:
        say("  called again it is right: the calls before it, or chance, make it wrong")
        return
    call = described(first.kernel, first.attributes, first.operands)
    short = call if len(call) <= _LONGEST else f"{call[:_LONGEST]}..."
    say(f"  smallest inputs found: {short}")

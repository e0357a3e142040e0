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


def conclusion(found: Comparison) -> str:
    """Return the answer in one sentence."""
    one, other = (run.backend for run in found.runs)
    if found.first is None and found.stopped:
        return f"{one} and {other} cannot be compared: {found.stopped}"
    if found.first is None:
        return f"no difference beyond the bounds between {one} and {other}"
    wrong = [name for name, fault in zip((one, other), found.first.faults, strict=True) if fault]
    inside = f" in the decomposition of {found.first.within}" if found.first.within else ""
    return f"{one} and {other} part in {found.first.text}{inside}: wrong is {' and '.join(wrong)}"


def as_data(found: Comparison) -> dict[str, Any]:
    """Return the comparison as data for JSON; infinite distances are None."""
    first = found.first
    return {
        "suite": {"version": SUITE_VERSION, "tolerances": tolerances().version},
        "backends": [
            {
                "name": run.backend,
                "calls": len(run.ops),
                "ended": run.ended,
                "recorded": run.cut or "wholly",
            }
            for run in found.runs
        ],
        "conclusion": conclusion(found),
        "compared": found.compared,
        "stopped": found.stopped,
        "fallbacks": found.fallbacks,
        "first": None if first is None else _finding(found, first),
        "others": [
            {"kernel": kernel, "calls": number, "place": _place(place)}
            for kernel, (number, place) in found.others.items()
        ],
        "largest": None if found.largest is None else _measured(*found.largest),
        "unjudged": [{**_called(call), "reason": reason} for call, reason in found.unjudged],
        "parted": None
        if found.alignment.parted is None
        else [None if call is None else _called(call) for call in found.alignment.parted],
    }


def _finding(found: Comparison, first: Finding) -> dict[str, Any]:
    names = [run.backend for run in found.runs]
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


def show(found: Comparison, console: Console) -> None:
    """Print what was found, the conclusion last."""

    def say(text: str, style: str = "") -> None:
        console.print(for_terminal(text), style=style, soft_wrap=True, highlight=False)

    for run in found.runs:
        end = f"; the program {run.ended}" if run.ended else ""
        say(f"{run.backend}: {len(run.ops)} calls{end}{'; ' + run.cut if run.cut else ''}")
        if run.ended:
            say(run.output, "dim")
    say(f"{found.compared} different calls were made again on {found.runs[1].backend}")
    if found.fallbacks:
        say(f"{found.fallbacks} calls ran on another backend and are left out", "yellow")
    if found.stopped:
        say(found.stopped, "yellow")
    _show_parting(found, say)
    for call, reason in found.unjudged[:_SHOWN]:
        say(f"not judged: {call.text} at {call.place}: {reason}", "yellow")
    if len(found.unjudged) > _SHOWN:
        say(f"... and {len(found.unjudged) - _SHOWN} more, in the JSON", "yellow")
    if found.largest is not None:
        call, verdict = found.largest
        bound = "the reference's own bound" if verdict.oracle else f"{verdict.allowed:g} ulp"
        say(
            f"largest difference within the bounds: {verdict.ulp:.3g} ulp in {call.text} at "
            f"{call.place}, within {bound}"
        )
    if found.first is not None:
        _show_first(found, found.first, say)
    for kernel, (number, place) in found.others.items():
        say(f"later: {kernel}, {number} calls, first at {place}", "yellow")
    say(conclusion(found), "bold red" if found.first or found.stopped else "bold green")


def _show_parting(found: Comparison, say: Any) -> None:
    if found.alignment.parted is None:
        return
    told = [
        f"{run.backend} {'ends' if call is None else f'calls {call.text} at {call.place}'}"
        for run, call in zip(found.runs, found.alignment.parted, strict=True)
    ]
    say(f"the programs go two ways: {told[0]}, {told[1]}", "yellow")


def _show_first(found: Comparison, first: Finding, say: Any) -> None:
    say(f"call {first.number}: {first.text}", "bold")
    say(f"  called at {first.place}")
    if first.within:
        say(f"  in the decomposition of {first.within}")
    for run, fault, how in zip(found.runs, first.faults, first.how, strict=True):
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

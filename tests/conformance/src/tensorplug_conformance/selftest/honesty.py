"""Backends that misbehave: each gets its verdict, and the run continues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.checks import Target
from tensorplug_conformance.running.supervisor import Limits, supervise
from tensorplug_conformance.selftest import misbehaving, patching
from tensorplug_conformance.selftest.trials import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.verdicts import Item, Outcome


_PATIENCE: Final = 180.0  # seconds for one item
_SOON: Final = 30.0  # the same, where one is known to hang
_HUNG: Final = "it hung"
_NEG: Final = ("row", "Neg", "float32", "native")
_SQUARE: Final = ("row", "Square", "float32", "native")
_REVERSE: Final = ("row", "Reverse", "float32", "native")
_BITCAST: Final = ("row", "Bitcast", "float32", "native")
_PATCHING: Final = patching.__name__
_DOUBLE: Final = ("row", "Abs", "float64", "native")


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """A function of ``misbehaving``, the item that must catch it, and the verdict.

    ``status`` is that of the item, "none" where the process died; ``reason`` is part of the
    message. ``alone``: nothing else works either. Otherwise the items around it must pass. One of
    ``patching`` runs by itself, since what it patches stays so.
    """

    name: str
    factory: str
    item: Item
    status: str
    reason: str
    alone: bool = False


_CLOSED: Final = ("check", 0, "leaves nothing when closed")
MISBEHAVIOUR: Final[Sequence[Misbehaviour]] = (
    Misbehaviour("hangs", "hangs", _NEG, "none", _HUNG),
    Misbehaviour("aborts", "dies", _NEG, "none", "died of signal 6"),
    Misbehaviour("segfaults", "segfaults", _NEG, "none", "died of signal 11"),
    Misbehaviour("leaves as if all were well", "exits", _NEG, "none", "exit status 0"),
    Misbehaviour("does not open", "does_not_open", _NEG, "none", "no such device", alone=True),
    Misbehaviour("prints when opened", "prints", ("check", 0, "prints nothing"), "fail", "hello"),
    Misbehaviour(
        "prints after a while",
        "prints_later",
        ("check", 0, "prints nothing"),
        "fail",
        "from below",
    ),
    Misbehaviour(
        "dies at the end",
        "dies_at_the_end",
        ("check", 0, "opens, works, exits"),
        "fail",
        "died of signal 6",
    ),
    Misbehaviour(
        "tires in children", "tires_in_children", ("check", 0, "fork"), "fail", "read back"
    ),
    Misbehaviour(
        "loses memory when closed",
        "loses_memory_at_close",
        _CLOSED,
        "fail",
        "malloc has given out",
    ),
    Misbehaviour(
        "leaves a child when closed", "leaves_a_child_at_close", _CLOSED, "fail", "child processes"
    ),
    Misbehaviour("prints in a kernel", "prints_while_computing", _NEG, "fail", "it printed"),
    Misbehaviour("logs an error", "logs_an_error", _NEG, "fail", "a driver: a buffer"),
    Misbehaviour("leaks", "keeps_everything", _NEG, "fail", "a leak", alone=True),
    Misbehaviour("claims a primitive and refuses", "refuses", _NEG, "missing", "not today"),
    Misbehaviour(
        "decomposes a primitive", "decomposes_a_primitive", _NEG, "missing", "must be native"
    ),
    Misbehaviour(
        "claims a kernel and never runs it", "claims_and_refuses", _SQUARE, "fail", "in any dtype"
    ),
    Misbehaviour(
        "claims a dtype and never runs it",
        "claims_a_dtype_and_refuses",
        _SQUARE,
        "fail",
        "claims Square in float32",
    ),
    Misbehaviour(
        "claims a kernel and only raises",
        "claims_what_only_raises",
        _REVERSE,
        "fail",
        "never runs",
    ),
    Misbehaviour("registers less than a primitive needs", "registers_less", _NEG, "missing", ""),
    Misbehaviour("registers more than it claims", "registers_more", _SQUARE, "not claimed", ""),
    Misbehaviour("declares a dtype it lacks", "cannot_hold", _DOUBLE, "fail", "no float64"),
    Misbehaviour("holds less than it says", "holds_less", _DOUBLE, "fail", "read back"),
    Misbehaviour(
        "has kernels for a dtype it does not declare",
        "declares_less",
        _DOUBLE,
        "unsupported dtype",
        "",
    ),
    Misbehaviour(
        "answers from the host",
        "answers_from_the_host",
        ("check", 1, "kernels run on the device"),
        "fail",
        "Add fetched",
    ),
    Misbehaviour(
        "replaces what compares",
        f"{_PATCHING}:replaces_what_compares",
        _NEG,
        "fail",
        "wrong; first",
    ),
    Misbehaviour("tells no results", f"{_PATCHING}:replaces_results", _NEG, "fail", "were told"),
    Misbehaviour(
        "tells a pickle", f"{_PATCHING}:tells_a_pickle", _NEG, "fail", "damaged what was told"
    ),
    Misbehaviour(
        "tells strange shapes",
        f"{_PATCHING}:tells_strange_shapes",
        _NEG,
        "fail",
        "damaged what was told",
    ),
    Misbehaviour(
        "reads expected values",
        f"{_PATCHING}:reads_expected_values",
        _BITCAST,
        "fail",
        "have other bits",
    ),
    Misbehaviour("leaves it to others", "leaves_it_to_others", _NEG, "missing", "", alone=True),
)
_AROUND: Final[tuple[Item, Item]] = (
    ("row", "Abs", "int32", "native"),
    ("row", "Floor", "int32", "native"),
)


def try_misbehaviour(wrong: Misbehaviour) -> Trial:
    """Run three items, of which the middle one must catch it."""
    patches = ":" in wrong.factory
    factory = wrong.factory if patches else f"{misbehaving.__name__}:{wrong.factory}"
    target = Target(misbehaving.REFERENCE, factory)
    before, after = _AROUND
    items = [wrong.item] if patches else [before, wrong.item, after]
    limits = Limits(item=_SOON if wrong.reason == _HUNG else _PATIENCE)
    outcomes = supervise(target, items, 0, limits, lambda _outcome: None)
    verdicts = [_verdict(outcome) for outcome in outcomes]
    status, reason = verdicts[len(verdicts) // 2]
    around = {verdicts[0][0], verdicts[-1][0]}
    right = status == wrong.status and wrong.reason in reason
    if patches:
        return Trial(f"backend that {wrong.name}", right, f"{status}: {reason[:200]}")
    right &= "pass native" not in around if wrong.alone else around == {"pass native"}
    others = "" if wrong.alone else f"; before and after: {', '.join(sorted(around))}"
    shown = reason.splitlines()[0] if reason else ""
    return Trial(f"backend that {wrong.name}", right, f"{status}: {shown}{others}")


def _verdict(outcome: Outcome) -> tuple[str, str]:
    """Return the status of an item, and all its messages."""
    verdict: dict[str, Any] | None = outcome.verdict
    if verdict is None:
        return "none", outcome.error
    failures = [failure["message"] for failure in verdict.get("failures", ())]
    said = [verdict.get("message", ""), verdict.get("reason", ""), *failures]
    return verdict["status"], "; ".join(reason for reason in said if reason)

"""Cheats that ``judge`` must catch: each fails with a reason, and the honest callable passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tensorplug_conformance.denominator import entries
from tensorplug_conformance.judging.judging import Judge
from tensorplug_conformance.judging.session import Judged
from tensorplug_conformance.selftest import cheats
from tensorplug_conformance.selftest.trials import Trial

_KERNEL: Final = "Relu"
_PATIENCE: Final = 20.0  # seconds for a call
_SOON: Final = 3.0  # the same, where it is known to hang


@dataclass(frozen=True, slots=True)
class Cheat:
    """A function of ``cheats``, and part of what the verdict says; empty where it passes."""

    function: str
    reason: str
    poison: bool = False
    soak: bool = False

    @property
    def name(self) -> str:
        """What it does."""
        return self.function.replace("_", " ")


_BITS: Final = "wrong; first at"
_ANY: Final = ": "  # which call shows it is up to the allocator, or to how busy the machine is
CHEATS: Final = (
    Cheat("honest", "", poison=True, soak=True),
    Cheat("takes_the_references_result", _BITS),
    Cheat("patches_the_comparison", _BITS),
    Cheat("stops_the_clocks_and_hangs", "it hung"),
    Cheat("returns_its_input", "a view of an input"),
    Cheat("computes_in_place", "changed its input"),
    Cheat("computes_when_read", "a view of an input, or computed later"),
    Cheat("writes_late", _ANY),
    Cheat("changes_it_late", _ANY),
    Cheat("keeps_results_by_address", _ANY),
    Cheat("keeps_results_by_the_first_element", _BITS),
    Cheat("is_right_where_it_is_judged", _BITS),
    Cheat("leaves_the_end_unwritten", "got nan", poison=True),
    Cheat("shares_scratch_memory", "in 4 threads have other bits", soak=True),
    Cheat("forges_answers", "damaged its answers"),
    Cheat("knows_the_judges_program", ""),
)
"""The last one is not caught: whoever knows the program that calls it can tell it from others."""


def try_cheat(cheat: Cheat) -> Trial:
    """Judge a callable; it must fail for its reason, or pass if it has none."""
    limit = _SOON if "hang" in cheat.function else _PATIENCE
    judged = Judged(f"{cheats.__file__}:{cheat.function}", poison=cheat.poison, limit=limit)
    judge = Judge(judged, entries()[_KERNEL])
    try:
        found = judge.dtype("float32", 0, soak=cheat.soak, first=True).finding
    finally:
        judge.close()
    said = "passes" if found is None else f"{found.case}: {found.message}"
    right = found is None if not cheat.reason else found is not None and cheat.reason in said
    return Trial(f"callable that {cheat.name}", right, said)

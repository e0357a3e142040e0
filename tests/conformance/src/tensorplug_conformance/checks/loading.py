"""Level 0: the backend loads. Each check is a separate process with a time limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.checks.processes import run_module
from tensorplug_conformance.primitives import REQUIRED_DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_PROBES: Final = "tensorplug_conformance.checks.probes"


def _probe(name: str) -> Callable[[Target, Callable[[], Session]], None]:
    def run(target: Target, _opened: Callable[[], Session]) -> None:
        _run_probe(name, target)

    return run


def _run_probe(name: str, target: Target) -> str:
    """Run a probe and return what it printed."""
    return run_module(_PROBES, target, name)


def _quiet(target: Target, _opened: Callable[[], Session]) -> None:
    printed = _run_probe("open_and_use", target)
    if printed:
        raise CheckFailedError(f"it printed to stdout: {printed[:200]!r}")


def _required_dtypes(_target: Target, opened: Callable[[], Session]) -> None:
    declared = {dtype.name for dtype in opened().device.backend.dtypes}
    lacking = REQUIRED_DTYPES - declared
    if lacking:
        raise CheckFailedError(
            f"it must declare {', '.join(sorted(lacking))}; it has {sorted(declared)}"
        )


CHECKS: Final = (
    Check(0, "discovery imports nothing", _probe("discovery")),
    Check(0, "opens, works, exits", _probe("open_and_use")),
    Check(0, "prints nothing", _quiet),
    Check(0, "changes no settings", _probe("settings")),
    Check(0, "opens again", _probe("reopen")),
    Check(0, "leaves nothing when closed", _probe("reopen_often")),
    Check(0, "fork", _probe("fork")),
    Check(0, "spawn", _probe("spawn")),
    Check(0, "required dtypes", _required_dtypes),
)

"""A clean backend that attacks what judges it: each kernel in a way of its own.

All of them compute the right result, if the process survives. One run meets them all, so that an
attack costs one process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import specs
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.checks import Target
from tensorplug_conformance.running.supervisor import Limits, supervise
from tensorplug_conformance.selftest.trials import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.verdicts import Outcome


_REFERENCE: Final = "cpu"
_PATIENCE: Final = 60.0  # seconds for one item
_MEBIBYTE: Final = bytes(1 << 20)


@dataclass(frozen=True, slots=True)
class Attack:
    """What a kernel does, and what the verdict says; a clean pass where nothing is harmed."""

    name: str
    spec: KernelSpec
    compute: Callable[[Any], Any]
    act: Callable[[], object]
    reason: str


def _events() -> Path:
    """Return the file to which the worker writes events."""
    return Path(sys.argv[1])


def _say(event: object) -> None:
    with _events().open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def _damage() -> None:
    with _events().open("ab") as file:
        file.write(b"\0\0\xff{\n")


def _forge() -> None:
    said = [json.loads(line) for line in _events().read_text("utf-8").splitlines()]
    _say({**said[-1], "event": "done", "verdict": {"status": "pass native"}})


def _swell() -> None:
    with _events().open("ab") as file:
        for _ in range(40):
            file.write(_MEBIBYTE)


def _print_much() -> None:
    for _ in range(80):
        os.write(1, _MEBIBYTE)


def _lower_limits() -> None:
    if sys.platform == "linux":
        import resource

        for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
            _, most = resource.prlimit(os.getppid(), what)
            resource.prlimit(os.getppid(), what, (0, most))


def _kill(which: Callable[[], int], name: str) -> Callable[[], None]:
    return lambda: os.kill(which(), getattr(signal, name))


_STRANGE: Final = "it damaged the file of its events"
ATTACKS: Final[Sequence[Attack]] = (
    Attack("kills its parent", specs.NEG, np.negative, _kill(os.getppid, "SIGKILL"), "parent"),
    Attack("stops its parent", specs.ABS, np.abs, _kill(os.getppid, "SIGSTOP"), "parent"),
    Attack("kills its group", specs.FLOOR, np.floor, _kill(lambda: 0, "SIGKILL"), "parent"),
    Attack("stops itself", specs.EXP, np.exp, _kill(os.getpid, "SIGSTOP"), "was stopped"),
    Attack("damages its events", specs.LOG, np.log, _damage, _STRANGE),
    Attack(
        "truncates its events", specs.SQRT, np.sqrt, lambda: os.truncate(_events(), 0), _STRANGE
    ),
    Attack(
        "tells of what nobody knows",
        specs.SIN,
        np.sin,
        lambda: _say({"event": "surprise", "item": 3}),
        _STRANGE,
    ),
    Attack(
        "tells of another run",
        specs.COS,
        np.cos,
        lambda: _say({"event": "done", "item": 10**6, "verdict": {}}),
        _STRANGE,
    ),
    Attack(
        "tells a verdict that is none",
        specs.ATAN,
        np.arctan,
        _forge,
        _STRANGE,
    ),
    Attack("swells its events", specs.SINH, np.sinh, _swell, _STRANGE),
    Attack(
        "removes its events",
        specs.COSH,
        np.cosh,
        lambda: shutil.rmtree(_events().parent),
        _STRANGE,
    ),
    Attack(
        "closes all files",
        specs.TAN,
        np.tan,
        lambda: os.closerange(0, 1 << 10),
        "ended with exit status",
    ),
    Attack("prints a lot", specs.ASINH, np.arcsinh, _print_much, "MiB to its standard output"),
    Attack("lowers its parent's limits", specs.ACOSH, np.arccosh, _lower_limits, ""),
)


def hostile() -> Engine:
    """Return an engine in which each kernel of an attack attacks and computes."""
    engine = build_engine()
    engine.open(_REFERENCE)
    entries = [(_REFERENCE, kernel_entry(attack.spec, _attacking(attack))) for attack in ATTACKS]
    engine.registry.add(Owner("hostile"), kernels=entries, override=True)
    return engine


def _attacking(attack: Attack) -> Callable[[Any], Any]:
    acts = iter((attack.act,))  # once is enough

    def compute(x: Any) -> Any:
        for act in acts:
            act()
        with np.errstate(all="ignore"):
            return np.asarray(attack.compute(x))

    return compute


def try_hostile() -> list[Trial]:
    """Run all attacks in one run; each must get its verdict, and what follows must pass."""
    target = Target(_REFERENCE, f"{__name__}:hostile")
    attacked = [("row", attack.spec.name, "float32", "native") for attack in ATTACKS]
    last = ("row", "Relu", "float32", "native")
    outcomes = supervise(
        target, [*attacked, last], 0, Limits(item=_PATIENCE), lambda _outcome: None
    )
    items = [
        Trial(f"backend that {attack.name}", *_judged(outcome, attack.reason))
        for attack, outcome in zip(ATTACKS, outcomes, strict=False)
    ]
    return [*items, Trial("backend after hostile ones", *_judged(outcomes[-1], ""))]


def _judged(outcome: Outcome, reason: str) -> tuple[bool, str]:
    """Return whether an outcome is as it must be, and what it says."""
    if outcome.verdict is None:
        return bool(reason) and reason in outcome.error, outcome.error
    return not reason and outcome.verdict["status"] == "pass native", outcome.verdict["status"]

"""The verdict of a device's trial, and how it is remembered."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tensorplug_opencl.machine import cache_folder, identity
from tensorplug_opencl.machine.limits import NONE as NO_LIMITS
from tensorplug_opencl.machine.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

    import pyopencl as cl


SUFFIX: Final = ".verdict.json"
_CHECKS: Final = ("child.py", "checks.py", "stages.py", "vector_checks.py")

State = Literal["sound", "limited", "unsound", "untried", "undecided"]
_KEPT: Final = ("sound", "limited", "unsound")


class Verdict(NamedTuple):
    """How far the backend trusts a device.

    "undecided": something else than the driver ended the trial, so the device is not used now, and
    nothing is remembered.

    ``findings``: what went wrong in the trial, one sentence for each failure: the stage, a colon,
    and what. ``finished``: whether no stages are left for the first program that needs them.
    """

    state: State
    limits: Limits = NO_LIMITS
    findings: tuple[str, ...] = ()
    finished: bool = True

    @property
    def usable(self) -> bool:
        """Whether the device may be opened."""
        return self.state not in ("unsound", "undecided")

    def __str__(self) -> str:
        if self.state == "limited":
            return f"sound with limits: {', '.join(self.limits.describe())}"
        if self.state == "untried":
            return "not tried"
        if self.state == "undecided":
            return "not tried, because its trial was ended by something else"
        return self.state if self.finished else f"{self.state} so far"


UNTRIED: Final = Verdict("untried")


def make_key(device: cl.Device) -> str:
    """Return the key of the verdict on ``device``: driver, processor, our version, checks."""
    folder = resources.files(__package__)
    checks = (folder.joinpath(name).read_text() for name in _CHECKS)
    return identity.start_key(device, identity.find_version(), *checks).hexdigest()


def recall(key: str) -> Verdict | None:
    """Return the verdict of an earlier process; None if there is no usable one."""
    file = _find_file(key)
    content = None if file is None else cache_folder.read(file)
    if content is None:
        return None
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return _parse(record)


def _parse(record: Any) -> Verdict | None:
    """Return the verdict in the content of a file; None if the content is not a verdict."""
    if not isinstance(record, dict) or record.get("state") not in _KEPT:
        return None
    limits, findings = record.get("limits"), record.get("findings")
    finished = record.get("finished")
    if not isinstance(limits, dict) or not isinstance(findings, list):
        return None
    if not isinstance(finished, bool):
        return None
    kinds = {name: type(value) for name, value in NO_LIMITS._asdict().items()}
    if {name: type(value) for name, value in limits.items()} != kinds:
        return None
    return Verdict(record["state"], Limits(**limits), tuple(map(str, findings)), finished)


def keep(key: str, verdict: Verdict, device: cl.Device) -> None:
    """Remember ``verdict``."""
    file = _find_file(key)
    if file is not None:
        record = {
            "state": verdict.state,
            "limits": verdict.limits._asdict(),
            "findings": verdict.findings,
            "finished": verdict.finished,
            "device": identity.read_facts(device),
        }
        cache_folder.write(file, json.dumps(record, indent=1).encode())


def _find_file(key: str) -> Path | None:
    folder = cache_folder.find_folder()
    return None if folder is None else folder / f"{key}{SUFFIX}"


def has_any() -> bool:
    """Return whether a verdict on any device is kept."""
    folder = cache_folder.find_folder()
    return folder is not None and any(folder.glob(f"*{SUFFIX}"))


def forget() -> None:
    """Forget all verdicts."""
    folder = cache_folder.find_folder()
    if folder is not None:
        for file in folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):  # the folder is read-only: it warns when a verdict is kept
                file.unlink()

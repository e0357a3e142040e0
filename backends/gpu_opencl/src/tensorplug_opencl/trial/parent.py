"""Runs the trial of each device in a separate process, unless its verdict is remembered.

The trial's first stages run before the device is opened, the others before the first program that
needs them. The process that has tried a device then builds its programs, as it has started the
driver's compiler already.
"""

from __future__ import annotations

import base64
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import BackendUnavailableError, Lock
from tensorplug_opencl.machine import attempts, identity, settings
from tensorplug_opencl.trial import stages, verdict
from tensorplug_opencl.trial.verdict import UNTRIED, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyopencl as cl

    from tensorplug_opencl.machine.limits import Limits
    from tensorplug_opencl.programs.program import Build
    from tensorplug_opencl.trial.process import Child

SECONDS: Final = 60.0  # a trial takes one or two; a compiler that has not ended by then hangs
TOGETHER: Final = 4  # trials at once
ENDED: Final = 2  # trials in a row that ended their process: the device is then unsound
_CODE: Final = "from tensorplug_opencl.trial.child import main; main()"

_SPARE: Final = ""  # the key of a child that no device has yet

_lock = Lock()  # a signal handler may list the devices meanwhile
_known: dict[str, Verdict] = {}  # of this process
_children: dict[str, Child] = {}  # those that have tried devices, by the verdict's key
_forgot = False


def begin() -> None:
    """Start the process of a trial if no verdict is remembered, before any driver is loaded."""
    if _children or _known or _is_never() or verdict.has_any():
        return
    from tensorplug_opencl.trial.process import Child

    _children[_SPARE] = Child(_CODE)


def _is_never() -> bool:
    # Frozen programs have no interpreter to run the trial with.
    return settings.read_trial() == "never" or getattr(sys, "frozen", False)


def find_verdicts(devices: Sequence[cl.Device]) -> list[Verdict]:
    """Return the verdict on each of ``devices``; try the first stages of new ones concurrently."""
    if _is_never():
        return [UNTRIED] * len(devices)
    with _lock:
        _forget_if_asked()
        keys = [verdict.make_key(device) for device in devices]
        unknown = {}
        for key, device in zip(keys, devices, strict=True):
            if key not in _known:
                outcome = verdict.recall(key)
                if outcome is None:
                    unknown[key] = device  # one of several identical devices
                else:
                    _known[key] = outcome
        if unknown:
            from concurrent.futures import ThreadPoolExecutor  # once on a machine

            with ThreadPoolExecutor(TOGETHER) as pool:
                _known.update(zip(unknown, pool.map(_try_device, unknown.items()), strict=True))
        return [_known[key] for key in keys]


def finish(device: cl.Device) -> Limits:
    """Try the stages that are left of a usable device, and return its limits.

    Raises:
        BackendUnavailableError: the device is unsound.

    """
    key = verdict.make_key(device)
    with _lock:
        so_far = verdict.recall(key) or _known[key]  # another process may have finished
        if not so_far.finished:
            so_far = _try_device((key, device), so_far)
        _known[key] = so_far
    if not so_far.usable:
        raise BackendUnavailableError(
            f"{device.name.strip()}: its driver has failed the rest of its trial, which comes "
            f"before the first program that needs it: {'; '.join(so_far.findings)}"
        )
    return so_far.limits


def _forget_if_asked() -> None:
    global _forgot  # noqa: PLW0603  # once in a process
    if settings.read_trial() == "again" and not _forgot:
        verdict.forget()
        attempts.forget()
        _known.clear()
        _forgot = True


def _try_device(named: tuple[str, cl.Device], so_far: Verdict | None = None) -> Verdict:
    """Try a device, remember the verdict under the device's key, and return the verdict.

    ``so_far``: the verdict after the first stages, if only the others are to be tried.
    """
    key, device = named
    name = f"trial-{key}"
    before = attempts.find_fatal(name)
    number = 1 + int(before.story.get("number", "1")) if before else 1
    if number > ENDED:
        outcome = Verdict("unsound", findings=("the process that ran the trial died, twice",))
    else:
        if before:
            before.file.unlink(missing_ok=True)
        with attempts.attempting(name, number=str(number), device=device.name.strip()):
            outcome = _run_trial(key, device, so_far)
    verdict.keep(key, outcome, device)
    return outcome


def _run_trial(key: str, device: cl.Device, so_far: Verdict | None) -> Verdict:
    """Run child processes until one of them has finished all stages that are left."""
    rest = so_far is not None
    passed: list[str] = []
    failed: dict[str, str] = {}
    for finding in so_far.findings if so_far else ():
        stage, _, failed[stage] = finding.partition(": ")
    while True:
        unfinished = _run_child(key, device, passed, failed, rest=rest)
        limits = stages.find_limits(set(failed))
        findings = tuple(f"{stage}: {what}" for stage, what in failed.items())
        if limits is None:
            return Verdict("unsound", findings=findings)
        if not unfinished:
            return Verdict("limited" if failed else "sound", limits, findings, finished=rest)


def _run_child(
    key: str, device: cl.Device, passed: list[str], failed: dict[str, str], *, rest: bool
) -> bool:
    """Let a child process try stages, add to ``passed`` and ``failed``; return if some are left.

    If the child dies or hangs, the stage that it had begun has failed.
    """
    from tensorplug_opencl.trial.process import Child  # once on a machine

    facts = identity.read_facts(device)
    asked = {"device": facts, "passed": passed, "failed": [*failed], "rest": rest}
    child = _children.pop(key, None) or _children.pop(_SPARE, None)
    is_new = child is None or child.ended
    if child is not None and not is_new:
        _children[key] = child
    else:
        child = _children[key] = Child(_CODE)
    at, done = "start", False
    try:
        for answer in child.ask(asked, SECONDS):
            if "begin" in answer:
                at = answer["begin"]
            elif "end" in answer:
                if answer["wrong"]:
                    failed[answer["end"]] = answer["wrong"]
                else:
                    passed.append(answer["end"])
                at = "start"
            else:
                done = True
    except BaseException:
        child.end()
        raise
    if done:
        return False
    end = child.end()
    if at == "start" and not is_new:
        return True  # it had been idle too long
    if at == stages.TOGETHER:
        passed.append(at)  # each stage is tried by itself now
        return True
    failed[at] = f"{end}: {child.said}" if at == "start" and child.said else end
    return True


def find_builder(device: cl.Device) -> Build | None:
    """Return what builds programs in the process that has just tried a device, if one has."""
    return partial(_build, verdict.make_key(device)) if _children else None


def _build(key: str, source: str, attempt: str, story: Mapping[str, str]) -> bytes | None:
    """Let the child that tried a device build a program, if it has not ended yet; None if it has.

    ``key``: of the verdict. The child notes the build as ``attempt``; if it dies, the note stays.
    """
    child = _children.get(key)
    if child is None or child.ended:
        return None
    asked = {"source": source, "key": attempt, "story": dict(story)}
    try:
        answers = list(child.ask(asked, SECONDS))
    except BaseException:
        child.dismiss()
        raise
    return base64.b64decode(answers[-1]["binary"]) or None if answers else None

"""Runs the trial of each device in a separate process, unless its verdict is remembered.

The trial's first stages run before the device is opened, the others before the first program that
needs them. The process that has tried a device then builds its programs, as it has started the
driver's compiler already.
"""

from __future__ import annotations

import base64
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import BackendUnavailableError, Lock
from tensorplug_opencl.machine import attempts, driver_caches, identity, settings
from tensorplug_opencl.trial import stages, verdict
from tensorplug_opencl.trial.verdict import UNTRIED, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyopencl as cl

    from tensorplug.plugin import child_processes
    from tensorplug_opencl.machine.limits import Limits
    from tensorplug_opencl.programs.program import Build
    from tensorplug_opencl.trial.process import Child

SECONDS: Final = 60.0  # a trial takes one or two; a compiler that has not ended by then hangs
TOGETHER: Final = 4  # trials at once
ENDED: Final = 2  # trials in a row that ended their process: the device is then unsound
_CODE: Final = "from tensorplug_opencl.trial.child import main; main()"

_SPARE: Final = ""  # the key of a child that no device has yet


class _UndecidedError(Exception):
    """Something else than the driver ended a trial; the text says what."""


_lock = Lock()  # a signal handler may list the devices meanwhile
_known: dict[str, Verdict] = {}  # of this process
_children: dict[str, Child] = {}  # those that have tried devices, by the verdict's key
_forgot = False


def begin() -> None:
    """Start the process of a trial if no verdict is remembered, before any driver is loaded."""
    if _children or _known or _is_never() or verdict.has_any():
        return
    driver_caches.provide()
    with suppress(_UndecidedError):  # the trial says so
        _children[_SPARE] = _start_child()


def _start_child() -> Child:
    """Return a new process for trials.

    Raises:
        _UndecidedError: the system starts none.

    """
    from tensorplug_opencl.trial.process import Child  # once on a machine

    try:
        return Child(_CODE)
    except (OSError, RuntimeError) as error:  # no more processes, threads or files
        raise _UndecidedError(f"no process can be started: {error}") from error


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
                outcomes = dict(zip(unknown, pool.map(_try_device, unknown.items()), strict=True))
            decided = {key: one for key, one in outcomes.items() if one.state != "undecided"}
            _known.update(decided)
        else:
            outcomes = {}
        return [outcomes.get(key) or _known[key] for key in keys]


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
        if so_far.state != "undecided":
            _known[key] = so_far
    if so_far.state == "undecided":
        raise BackendUnavailableError(
            f"{device.name.strip()}: the rest of its driver's trial, which comes before the first "
            f"program that needs it, could not be made: {'; '.join(so_far.findings)}"
        )
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

    An undecided one is not remembered, nor are failures while the driver's own cache is at fault.
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
            with suppress(OSError):
                before.file.unlink()
        with attempts.attempting(name, number=str(number), device=device.name.strip()):
            try:
                outcome = _run_trial(key, device, so_far)
            except _UndecidedError as error:
                return Verdict("undecided", findings=(str(error),))
    cause = driver_caches.explain(device.platform.name.strip()) if outcome.findings else ""
    if cause and not outcome.usable:
        return Verdict("undecided", findings=(cause, *outcome.findings))
    if not cause:
        verdict.keep(key, outcome, device)
    return outcome


def _run_trial(key: str, device: cl.Device, so_far: Verdict | None) -> Verdict:
    """Run child processes until one of them has finished all stages that are left.

    Raises:
        _UndecidedError: something else than the driver ended the trial.

    """
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

    Raises: as ``_run_trial``.
    """
    facts = identity.read_facts(device)
    asked = {"device": facts, "passed": passed, "failed": [*failed], "rest": rest}
    child, is_new = _find_child(key)
    at, done = "start", False
    try:
        for answer in child.ask(asked, SECONDS):
            if "fault" in answer:
                raise _UndecidedError(answer["fault"])
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
    if not done:
        end = child.end()
        if at != "start" or is_new:  # else it had been idle too long
            _judge_end(end, child.said, at, passed, failed)
    return not done


def _judge_end(
    end: child_processes.End, said: str, at: str, passed: list[str], failed: dict[str, str]
) -> None:
    """Add the stage at which a process has ended to ``failed``, or let it be tried otherwise.

    Raises: as ``_run_trial``.
    """
    if at == "start" or end.from_outside:
        raise _UndecidedError(": ".join(filter(None, [end.text, said])))
    if at == stages.TOGETHER:
        passed.append(at)  # each stage is tried by itself now
    else:
        failed[at] = end.text


def _find_child(key: str) -> tuple[Child, bool]:
    """Return the process that tries a device, and whether it is a new one.

    Raises:
        _UndecidedError: the system starts none.

    """
    child = _children.pop(key, None) or _children.pop(_SPARE, None)
    is_new = child is None or child.ended
    if child is None or is_new:
        child = _start_child()
    _children[key] = child
    return child, is_new


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
    binary = answers[-1].get("binary") if answers else None
    return base64.b64decode(binary) if binary else None

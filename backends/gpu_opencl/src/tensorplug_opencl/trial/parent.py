"""Runs the trial of each device in a separate process, unless its verdict is remembered.

The trial's first stages run before the device is opened, the others before the first program that
needs them.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import BackendUnavailableError, Lock, child_processes
from tensorplug_opencl.machine import attempts, identity, settings
from tensorplug_opencl.trial import stages, verdict
from tensorplug_opencl.trial.verdict import UNTRIED, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyopencl as cl

    from tensorplug_opencl.machine.limits import Limits

SECONDS: Final = 60.0  # a trial takes one or two; a compiler that has not ended by then hangs
TOGETHER: Final = 4  # trials at once
ENDED: Final = 2  # trials in a row that ended their process: the device is then unsound
_CODE: Final = "from tensorplug_opencl.trial.child import main; main(sys.argv[1])"

_lock = Lock()  # a signal handler may list the devices meanwhile
_known: dict[str, Verdict] = {}  # of this process
_forgot = False


def find_verdicts(devices: Sequence[cl.Device]) -> list[Verdict]:
    """Return the verdict on each of ``devices``; try the first stages of new ones concurrently."""
    # Frozen programs have no interpreter to run the trial with.
    if settings.read_trial() == "never" or getattr(sys, "frozen", False):
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
            outcome = _run_trial(device, so_far)
    verdict.keep(key, outcome, device)
    return outcome


def _run_trial(device: cl.Device, so_far: Verdict | None) -> Verdict:
    """Run child processes until one of them has finished all stages that are left."""
    rest = so_far is not None
    passed: list[str] = []
    failed: dict[str, str] = {}
    for finding in so_far.findings if so_far else ():
        stage, _, failed[stage] = finding.partition(": ")
    while True:
        unfinished = _run_child(device, passed, failed, rest=rest)
        limits = stages.find_limits(set(failed))
        findings = tuple(f"{stage}: {what}" for stage, what in failed.items())
        if limits is None:
            return Verdict("unsound", findings=findings)
        if not unfinished:
            return Verdict("limited" if failed else "sound", limits, findings, finished=rest)


def _run_child(
    device: cl.Device, passed: list[str], failed: dict[str, str], *, rest: bool
) -> bool:
    """Run one child process, add to ``passed`` and ``failed``; return whether stages are left.

    If the child dies or hangs, the stage that it had begun has failed.
    """
    asked = {
        "device": identity.read_facts(device),
        "passed": passed,
        "failed": [*failed],
        "rest": rest,
    }
    from multiprocessing.spawn import get_executable  # once on a machine

    command = [get_executable(), *child_processes.code_arguments(_CODE, json.dumps(asked))]
    end, output, errors = _run_process(command)
    at, done = "start", False
    for line in output.splitlines():
        if not line.endswith("}"):
            break  # it was killed while it wrote this
        try:
            message = json.loads(line)
        except ValueError:
            break  # the driver wrote this
        if "begin" in message:
            at = message["begin"]
        elif "end" in message:
            if message["wrong"]:
                failed[message["end"]] = message["wrong"]
            else:
                passed.append(message["end"])
            at = "start"
        else:
            done = True
    if done:
        return False
    if at == stages.TOGETHER:
        passed.append(at)  # each stage is tried by itself now
        return True
    last = errors.strip().splitlines()[-1:] if at == "start" else []
    failed[at] = ": ".join([end, *last])
    return True


def _run_process(command: list[str]) -> tuple[str, str, str]:
    """Run a process; return in words how it ended, its output and its errors."""
    import subprocess  # once on a machine

    with subprocess.Popen(  # noqa: S603  # our own module
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            output, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            return f"it did not end within {SECONDS:.0f} s", output, errors
        except BaseException:
            process.kill()
            raise
    return _describe_end(process.returncode), output, errors


def _describe_end(code: int) -> str:
    if code >= 0:
        return f"the process ended with exit status {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"the process died of {names.get(-code, f'signal {-code}')}"

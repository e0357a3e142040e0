"""The OpenCL devices: finding them, choosing the one that the user means, and describing it."""

from __future__ import annotations

import platform
import re
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyopencl as cl

from tensorplug.plugin import BackendUnavailableError, DeviceInfo, pip_install
from tensorplug_opencl.machine import driver_caches, loader
from tensorplug_opencl.machine.features import describe, dtypes_of
from tensorplug_opencl.machine.settings import TRIAL
from tensorplug_opencl.trial import forked, parent
from tensorplug_opencl.trial.verdict import UNTRIED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.machine.limits import Limits
    from tensorplug_opencl.programs.program import Build
    from tensorplug_opencl.trial.verdict import Verdict


NO_PLATFORM: Final = -1001  # the ICD loader's code if no driver is registered
OLDEST: Final = (1, 2)  # the version of OpenCL that our programs are written in
_VERSION: Final = re.compile(r"OpenCL (\d+)\.(\d+)")
_ORDER: Final = (cl.device_type.GPU, cl.device_type.ACCELERATOR, cl.device_type.CPU)
_STATES: Final = ("sound", "untried", "limited", "undecided", "unsound")
_INTEL: Final = ("x86_64", "amd64")  # the processors that Intel's runtime supports


class Found(NamedTuple):
    """A device, and the verdict of its trial."""

    device: cl.Device
    verdict: Verdict

    @property
    def judged(self) -> str:
        """The verdict, with the findings behind its limits."""
        if self.verdict.state != "limited":
            return str(self.verdict)
        findings = "; ".join(self.verdict.findings)
        return f"{self.verdict} ({findings}; to try it again, set {TRIAL}=again)"

    @property
    def finish(self) -> Callable[[], Limits] | None:
        """What tries the stages that are left, and returns the limits; None if none are left."""
        return None if self.verdict.finished else partial(parent.finish, self.device)

    @property
    def build(self) -> Build | None:
        """What builds programs in the process that has just tried the device; None without one."""
        return parent.find_builder(self.device)

    @property
    def refused(self) -> str:
        """Why the backend does not open the device; "" if it does."""
        if self.verdict.usable:
            return _find_lack(self.device)
        if self.verdict.state == "undecided":
            return (
                f"its driver could not be tried: {'; '.join(self.verdict.findings)} (this is not "
                "remembered: mend the cause, and call again; to use the driver without a trial, "
                f"set {TRIAL}=0)"
            )
        return (
            f"its driver failed the trial: {'; '.join(self.verdict.findings)} "
            "(a new version of the driver is tried automatically; to try this one again, set "
            f"{TRIAL}=again; to use it without a trial, set {TRIAL}=0)"
        )


def available() -> list[Found]:
    """Return every device of every platform, in the order of their numbers.

    Devices that cannot be used come last. GPUs come first, then accelerators, then CPUs. Among
    devices of one kind, those that are sound without limits come first, and then those with the
    newest OpenCL. So number 0 is the device to use if the user names none. A driver that fails
    is skipped if another driver has devices.

    Raises:
        BackendUnavailableError: when the loader fails, or when every driver fails.

    """
    candidates, faults = _search()
    if faults and not candidates:
        raise BackendUnavailableError("; ".join(faults))
    return candidates


def finish_trials() -> list[Found]:
    """Return the devices once all stages of their trials have run.

    Raises: as ``available``.
    """
    for found in available():
        if found.finish is not None and not found.refused:
            with suppress(BackendUnavailableError):  # the new verdict says so
                found.finish()
    return available()


def _search() -> tuple[list[Found], list[str]]:
    """Return the devices in order, and the errors of drivers that cannot list their devices."""
    try:
        platforms = loader.list_platforms()
    except cl.Error as error:
        if error.code == NO_PLATFORM:
            return [], []
        raise BackendUnavailableError(f"the OpenCL loader failed: {error}") from error
    devices: list[cl.Device] = []
    faults: list[str] = []
    for opencl_platform in platforms:
        try:
            devices.extend(opencl_platform.get_devices())
        except cl.Error as error:
            if error.code != cl.status_code.DEVICE_NOT_FOUND:
                name = opencl_platform.name.strip()
                faults.append(f"OpenCL platform {name!r} cannot list its devices: {error}")
    return _judge(devices), faults


def _judge(devices: Sequence[cl.Device]) -> list[Found]:
    capable = [device for device in devices if not _find_lack(device)]
    verdicts = dict(zip(map(id, capable), parent.find_verdicts(capable), strict=True))
    candidates = [Found(device, verdicts.get(id(device), UNTRIED)) for device in devices]
    return sorted(candidates, key=_sort_key)


def _sort_key(candidate: Found) -> tuple[bool, int, int, tuple[int, ...]]:
    device, verdict = candidate
    kind = next((at for at, kind in enumerate(_ORDER) if device.type & kind), len(_ORDER))
    newest_first = tuple(-number for number in _parse_version(device) or ())
    return bool(candidate.refused), kind, _STATES.index(verdict.state), newest_first


def choose(asked: str | None) -> Found:
    """Return the device with the number ``asked``, or the first one for None.

    Raises:
        BackendUnavailableError: when there is no such device (the message lists those that
            exist), or when its driver cannot run our programs or computes wrong numbers.

    """
    candidates = available()
    if not candidates:
        raise BackendUnavailableError(
            "no OpenCL device was found: no driver is installed, or it finds no hardware"
            f"{_explain_caches()}. {_suggest_driver()}"
        )
    number = 0 if asked is None else int(asked)
    if number >= len(candidates):
        listed = "; ".join(
            f"{number}: {describe(other.device)}" for number, other in enumerate(candidates)
        )
        raise BackendUnavailableError(f"there is no OpenCL device {asked}. These exist: {listed}")
    chosen = candidates[number]
    if not chosen.refused:
        reason = forked.explain_failure(chosen.device) if loader.is_inherited() else ""
        if reason:
            raise BackendUnavailableError(f"{describe(chosen.device)} cannot be used: {reason}")
        return chosen
    if asked is not None:
        raise BackendUnavailableError(
            f"{_explain(chosen)}. Choose another device"
            f"{'' if chosen.verdict.state == 'undecided' else ', or install a newer driver'}"
        )
    # The best device is refused, so all are.
    advice = [] if chosen.verdict.state == "undecided" else [_suggest_driver()]
    raise BackendUnavailableError(". ".join(["; ".join(map(_explain, candidates)), *advice]))


def _explain(candidate: Found) -> str:
    """Return why a device cannot be used, with its name and its driver's version."""
    driver = candidate.device.driver_version.strip()
    return f"{describe(candidate.device)}, driver {driver}, cannot be used: {candidate.refused}"


def _explain_caches() -> str:
    """Return why PoCL finds no device although there is one; "" if that is not so."""
    reason = driver_caches.explain(driver_caches.POCL)
    return f"; or PoCL finds none, because {reason}" if reason else ""


def _suggest_driver() -> str:
    """Return what to install if no device can be used."""
    if platform.machine().lower() in _INTEL and sys.platform != "darwin":
        runtime = f"an OpenCL runtime for the CPU: {pip_install('tensorplug-opencl[cpu]')}"
    else:
        runtime = "PoCL, an OpenCL runtime for the CPU (pocl-opencl-icd in Debian and Ubuntu)"
    return f"Install the driver of your hardware's vendor, or {runtime}"


def _parse_version(device: cl.Device) -> tuple[int, int] | None:
    version = _VERSION.match(device.version.strip())  # "OpenCL 3.0 " and what the vendor adds
    return (int(version[1]), int(version[2])) if version else None


def _find_lack(device: cl.Device) -> str:
    """Return why ``device`` cannot run any of our programs; "" if it can."""
    version = _parse_version(device)
    if version is None or version < OLDEST:
        needed = ".".join(map(str, OLDEST))
        return f"its version is {device.version.strip()!r}, and OpenCL {needed} is needed"
    if not device.compiler_available:
        return "it has no compiler for OpenCL C"
    if not device.available:
        return "it is not available: another process may have exclusive use of it"
    return ""


def list_infos() -> list[DeviceInfo]:
    """Return the facts about every device, without opening it."""
    return [
        DeviceInfo(
            describe(device),
            f"{device.version.strip()}, driver {device.driver_version.strip()}, {each.judged}",
            device.global_mem_size,
            dtypes_of(device, each.verdict.limits),
            each.refused,
        )
        for each in available()
        for device in [each.device]
    ]


def collect_diagnostics() -> dict[str, str]:
    """Return versions by name; an error takes the place of a version that cannot be read."""
    result = {"pyopencl": cl.VERSION_TEXT}
    try:
        candidates, faults = _search()
    except BackendUnavailableError as error:
        return {**result, "OpenCL": str(error)}
    if faults:
        result["OpenCL"] = "; ".join(faults)
    elif not candidates:
        return {**result, "OpenCL": "no device"}
    for number, (device, verdict) in enumerate(candidates):
        platform = device.platform
        result[f"OpenCL platform {platform.name.strip()}"] = platform.version.strip()
        version, driver = device.version.strip(), device.driver_version.strip()
        facts = (device.name.strip(), version, f"driver {driver}", str(verdict))
        result[f"OpenCL device {number}"] = "; ".join([", ".join(facts), *verdict.findings])
    return result

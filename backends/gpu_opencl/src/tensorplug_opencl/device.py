"""Which OpenCL device is meant, and what it can do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyopencl as cl

from tensorplug import dtypes as dt
from tensorplug.backend import DeviceInfo
from tensorplug.errors import BackendUnavailableError

if TYPE_CHECKING:
    from tensorplug.dtypes import DType

__all__ = ["available", "choose", "describe", "diagnostics", "dtypes_of", "infos"]

NO_PLATFORM: Final = -1001  # what the ICD loader says where no driver is registered
OLDEST: Final = (1, 2)  # the version of OpenCL that our programs are written in
_VERSION: Final = re.compile(r"OpenCL (\d+)\.(\d+)")
_ORDER: Final = (cl.device_type.GPU, cl.device_type.ACCELERATOR, cl.device_type.CPU)


def available() -> list[cl.Device]:
    """Return every device of every platform: GPUs first, then accelerators, then CPUs.

    Among devices of one kind the loader's order holds. So number 0 is the one to use where the
    user names none. A driver that fails is passed over where another one has devices.

    Raises:
        BackendUnavailableError: when the loader fails, or the only drivers there are.

    """
    found, faults = _search()
    if faults and not found:
        raise BackendUnavailableError("; ".join(faults))
    return found


def _search() -> tuple[list[cl.Device], list[str]]:
    """Return the devices in order, and what is wrong with the drivers that cannot be asked."""
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        if error.code == NO_PLATFORM:
            return [], []
        raise BackendUnavailableError(f"the OpenCL loader failed: {error}") from error
    found: list[cl.Device] = []
    faults: list[str] = []
    for platform in platforms:
        try:
            found.extend(platform.get_devices())
        except cl.Error as error:
            if error.code != cl.status_code.DEVICE_NOT_FOUND:
                name = platform.name.strip()
                faults.append(f"OpenCL platform {name!r} cannot list its devices: {error}")
    return sorted(found, key=_rank), faults


def _rank(device: cl.Device) -> int:
    return next((at for at, kind in enumerate(_ORDER) if device.type & kind), len(_ORDER))


def choose(wanted: str | None) -> cl.Device:
    """Return the device with the number ``wanted``, None for the first.

    Raises:
        BackendUnavailableError: when there is none, naming those that there are; or when its
            driver cannot run our programs.

    """
    found = available()
    if not found:
        raise BackendUnavailableError(
            "no OpenCL device was found: no driver is installed, or it sees no hardware. "
            "Install the vendor's driver, or try: pip install 'tensorplug-opencl[pocl]'"
        )
    number = 0 if wanted is None else int(wanted)
    if number < len(found):
        _check_driver(found[number])
        return found[number]
    listed = "; ".join(f"{number}: {describe(each)}" for number, each in enumerate(found))
    raise BackendUnavailableError(f"there is no OpenCL device {wanted}. Devices are {listed}")


def _check_driver(device: cl.Device) -> None:
    version = device.version.strip()  # "OpenCL 3.0 " and what the vendor adds
    found = _VERSION.match(version)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        needed = ".".join(map(str, OLDEST))
        lack = f"it is {version!r}, and OpenCL {needed} is needed"
    elif not device.compiler_available:
        lack = "it has no compiler for OpenCL C"
    elif not device.available:
        lack = "it says that the device is not available: another process may have it alone"
    else:
        return
    raise BackendUnavailableError(
        f"the driver of {describe(device)}, version {device.driver_version.strip()}, cannot be "
        f"used: {lack}. Install a newer one, or choose another device"
    )


def infos() -> list[DeviceInfo]:
    """Return what is known of every device without opening it."""
    return [
        DeviceInfo(
            describe(each),
            f"{each.version.strip()}, driver {each.driver_version.strip()}",
            each.global_mem_size,
            dtypes_of(each),
        )
        for each in available()
    ]


def describe(device: cl.Device) -> str:
    """Return the hardware's name and its platform's, for people."""
    return f"{device.name.strip()} ({device.platform.name.strip()})"


def dtypes_of(device: cl.Device) -> frozenset[DType]:
    """Return the dtypes that tensors may have on ``device``.

    double and half arithmetic are optional in OpenCL. Complex numbers are pairs of floats.
    """
    extensions = device.extensions.split()
    double = bool(device.double_fp_config) and "cl_khr_fp64" in extensions
    optional = {
        dt.float64: double,
        dt.complex128: double,
        dt.float16: "cl_khr_fp16" in extensions,
    }
    always = dt.BOOL | dt.INTEGER | {dt.float32, dt.complex64}
    return frozenset(always | {dtype for dtype, has in optional.items() if has})


def diagnostics() -> dict[str, str]:
    """Return versions by name; what could not be asked is said in place of its version."""
    result = {"pyopencl": cl.VERSION_TEXT}
    try:
        found, faults = _search()
    except BackendUnavailableError as error:
        return {**result, "OpenCL": str(error)}
    if faults:
        result["OpenCL"] = "; ".join(faults)
    elif not found:
        return {**result, "OpenCL": "no device"}
    for number, device in enumerate(found):
        platform = device.platform
        result[f"OpenCL platform {platform.name.strip()}"] = platform.version.strip()
        version, driver = device.version.strip(), device.driver_version.strip()
        result[f"OpenCL device {number}"] = f"{device.name.strip()}, {version}, driver {driver}"
    return result

"""The facts of the machine and the device: ``facts.py [--device NAME]``.

Without a name, it takes the first GPU. The exit status is 2 if there is no such device.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from telling import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES: Final = (
    "numpy",
    "pyopencl",
    "tensorplug",
    "tensorplug-opencl",
    "tensorplug-conformance",
)
NVIDIA: Final = (
    "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,vbios_version"
)
MIB: Final = 1 << 20

# Facts that pyopencl knows the names of, and that a device may not know.
_ASKED: Final = {
    "vendor": "vendor",
    "board": "board_name_amd",
    "OpenCL": "version",
    "OpenCL C": "opencl_c_version",
    "compute units": "max_compute_units",
    "clock MHz": "max_clock_frequency",
    "warp": "warp_size_nv",
    "SIMDs per compute unit": "simd_per_compute_unit_amd",
    "SIMD width": "simd_width_amd",
    "work-items in a group": "max_work_group_size",
    "memory is the host's": "host_unified_memory",
    "cache bytes": "global_mem_cache_size",
    "extensions": "extensions",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--device", default="", help="opencl, opencl:1, ... (default: the first GPU)"
    )
    parser.add_argument(
        "--hardware", default="", help="instead of --device: the device's full description"
    )
    options = parser.parse_args()
    tell("environment", **_environment())
    began = time.monotonic()
    from tensorplug_opencl import device
    from tensorplug_opencl.machine.settings import read_trial

    found = device.finish_trials()  # of those that are new
    seconds = time.monotonic() - began
    infos = device.list_infos()
    tell(
        "devices",
        devices=[
            f"`{_name(number)}`: {info.hardware}, {info.driver}"
            for number, info in enumerate(infos)
        ],
    )
    number = _chosen([candidate.device for candidate in found], options.device, options.hardware)
    if number is None:
        wanted = options.hardware or options.device or "GPU (DEVICE=opencl takes any device)"
        why = f"there is no {wanted}" if found else "OpenCL finds no device"
        tell("none", why=why)
        print(why)
        return 2
    told = _device(found[number].device)
    told["verdict"] = str(found[number].verdict)
    told["findings"] = list(found[number].verdict.findings)
    told["refused"] = infos[number].refused
    told["dtypes"] = ", ".join(sorted(dtype.name for dtype in infos[number].dtypes or ()))
    told["name"] = _name(number)
    told["tried"] = read_trial() != "never"
    if told["tried"]:
        told["trial seconds"] = f"{seconds:.1f} (0.0: an earlier verdict was used)"
    tell("device", **told)
    for key, value in told.items():
        print(f"{key}: {value}")
    if find_spec("torch"):
        tell("peer", PyTorch=_torch())  # last: its import takes seconds
    return 0


def _name(number: int) -> str:
    return f"opencl:{number}" if number else "opencl"


def _chosen(devices: Sequence[Any], named: str, hardware: str) -> int | None:
    """Return the number of the chosen device, as ``tp.set_backend`` numbers them."""
    import pyopencl as cl

    from tensorplug_opencl.machine import features

    if hardware:
        described = [features.describe(candidate) for candidate in devices]
        return described.index(hardware) if hardware in described else None
    if not named:
        gpus = [at for at, candidate in enumerate(devices) if candidate.type & cl.device_type.GPU]
        return gpus[0] if gpus else None
    _, _, at = named.partition(":")
    if at and not at.isdecimal():
        texts = [
            f"{features.describe(candidate)} {candidate.driver_version}".lower()
            for candidate in devices
        ]
        return next((number for number, text in enumerate(texts) if at.lower() in text), None)
    number = int(at or 0)
    return number if number < len(devices) else None


def _device(of: Any) -> dict[str, Any]:
    import pyopencl as cl

    from tensorplug_opencl.machine import features

    kinds = {"GPU": cl.device_type.GPU, "accelerator": cl.device_type.ACCELERATOR}
    told: dict[str, Any] = {
        "hardware": features.describe(of),
        "driver": of.driver_version.strip(),
        "kind": next((name for name, kind in kinds.items() if of.type & kind), "CPU"),
        "memory MiB": of.global_mem_size // MIB,
        "largest piece MiB": of.max_mem_alloc_size // MIB,
        "local memory KiB": of.local_mem_size // 1024,
    }
    for name, asked in _ASKED.items():
        with suppress(cl.Error, AttributeError):
            value = getattr(of, asked)
            told[name] = value.strip() if isinstance(value, str) else value
    with suppress(cl.Error, AttributeError):
        major, minor = of.compute_capability_major_nv, of.compute_capability_minor_nv
        told["compute capability"] = f"{major}.{minor}"
    return told


def _environment() -> dict[str, str]:
    told = {
        "machine": f"{platform.platform()}, {os.cpu_count()} processors",
        "Python": platform.python_version(),
    }
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            told[package] = version(package)
    if shutil.which("nvidia-smi"):
        told["nvidia-smi"] = _nvidia()
    settings = sorted(name for name in os.environ if name.startswith(("TENSORPLUG_", "PYOPENCL_")))
    if settings:
        told["settings"] = ", ".join(f"{setting}={os.environ[setting]}" for setting in settings)
    return told


def _torch() -> str:
    try:
        import torch
    except Exception as error:  # noqa: BLE001  # whatever is wrong with it, it takes no part
        return f"cannot be imported: {error}"
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and module.is_available():
            return f"{torch.__version__} on {module.get_device_name()}, without TensorFloat-32"
    return f"{torch.__version__} on the CPU: it finds no GPU"


def _nvidia() -> str:
    command = ["nvidia-smi", f"--query-gpu={NVIDIA}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "; ".join((done.stdout or done.stderr).strip().splitlines())


if __name__ == "__main__":
    raise SystemExit(main())

"""The drivers that pip and Debian offer, and the places of their libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
from ctypes.util import find_library
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Oclgrind's compiler must change nothing: an access that it removes is not watched, and the
# simulator does not know some of its optimizer's output. The check for uninitialized reads is off
# (OCLGRIND_UNINITIALIZED): version 21.10 also reports memory that clEnqueueFillBuffer has written,
# and the upper half of a vector.
WATCHING: Final = {
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_CHECK_API": "1",
    "OCLGRIND_MAX_ERRORS": "1000000000",
    "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable -disable-llvm-passes",
}


@dataclass(frozen=True)
class Driver:
    """One driver.

    ``backend``: which it serves. ``extra``: of that backend's distribution, which installs it.
    ``package``: of Debian, which does. ``library``: returns its library in an environment (for
    Vulkan, the file that names it), None if it is not installed.
    ``registered``: whether pyopencl's loader finds it without help. ``watches``: it reports
    kernels' errors, and is not certified.
    """

    name: str
    title: str
    library: Callable[[Path], Path | str | None]
    backend: str = "opencl"
    extra: str = ""
    package: str = ""
    registered: bool = False
    watches: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


def _of_system(name: str) -> Callable[[Path], str | None]:
    return lambda _environment: find_library(name)


def _of_environment(name: str) -> Callable[[Path], Path | None]:
    return lambda environment: next(environment.rglob(name), None)


def _of_vulkan(pattern: str) -> Callable[[Path], Path | None]:
    folders = ("/usr/share/vulkan/icd.d", "/usr/lib/chromium")
    return lambda _environment: next(
        (file for folder in folders for file in sorted(Path(folder).glob(pattern))), None
    )


def _of_oclgrind(_environment: Path) -> Path | None:
    command = shutil.which("oclgrind")
    if command is None:
        return None
    installed = Path(command).resolve().parents[1]
    return next(installed.glob("lib*/**/liboclgrind-rt-icd.so"), None)


DRIVERS: Final = (
    Driver("intel", "Intel's, from pip", _of_environment("libintelocl.so"), extra="cpu"),
    Driver(
        "pocl-pip",
        "PoCL 3.0, from pip",
        _of_environment("libpocl*.so*"),
        extra="pocl",
        registered=True,
    ),
    Driver("pocl-debian", "PoCL, Debian's", _of_system("pocl"), package="pocl-opencl-icd"),
    Driver(
        "rusticl",
        "rusticl on llvmpipe, Debian's",
        _of_system("RusticlOpenCL"),
        package="mesa-opencl-icd",
        variables={"RUSTICL_ENABLE": "llvmpipe"},
    ),
    Driver(
        "oclgrind",
        "Oclgrind, Debian's",
        _of_oclgrind,
        package="oclgrind",
        watches=True,
        variables=WATCHING,
    ),
    Driver(
        "lavapipe",
        "lavapipe, Debian's",
        _of_vulkan("lvp_icd.*.json"),
        backend="webgpu",
        package="mesa-vulkan-drivers",
    ),
    Driver(
        "swiftshader",
        "SwiftShader, Debian's",
        _of_vulkan("vk_swiftshader_icd.json"),
        backend="webgpu",
        package="chromium-common",
    ),
)


def install(package: str) -> str:
    """Install a package of Debian; return the reason for a failure, or ""."""
    if shutil.which("apt-get") is None:
        return f"this system has no apt-get to install {package}"
    if os.geteuid() != 0:
        return f"only root can install {package}: apt-get install {package}"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        done = subprocess.run(
            ["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = [*done.stderr.strip().splitlines(), "it says nothing"]
            return f"apt-get {command[0]} failed: {last[0]}"
    return ""

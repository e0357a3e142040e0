"""Drivers of GPUs that are on the machine, but not registered with OpenCL's loader.

In containers that is common: the host's libraries are mounted, ``/etc/OpenCL/vendors`` is not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


VENDORS: Final = "OCL_ICD_VENDORS"
SYSTEM: Final = Path("/etc/OpenCL/vendors")
LIBRARIES: Final = ("libnvidia-opencl.so.1", "libamdocl64.so", "libigdrcl.so")
PLACES: Final = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
    "/opt/rocm/lib",
    "/usr/lib/x86_64-linux-gnu/intel-opencl",
)


def unregistered(places: Iterable[str | Path] = (), system: Path = SYSTEM) -> list[Path]:
    """Return the libraries of GPUs' drivers that no .icd file in ``system`` names."""
    told = "\n".join(path.read_text(errors="replace") for path in sorted(system.glob("*.icd")))
    found: dict[str, Path] = {}
    for place in places:
        for name in LIBRARIES:
            file = Path(place, name)
            if name not in told and name not in found and file.is_file():
                found[name] = file
    return list(found.values())


def register(folder: Path, system: Path = SYSTEM) -> tuple[dict[str, str], list[str]]:
    """Write .icd files into ``folder`` for drivers that have none.

    Return the environment variables that let the loader find them, and a remark. Both are empty if
    the user names a folder, or if all drivers are registered.
    """
    if os.environ.get(VENDORS):
        return {}, []
    places = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)), *PLACES]
    found = unregistered(places, system)
    if not found:
        return {}, []
    folder.mkdir(parents=True, exist_ok=True)
    for file in system.glob("*.icd"):
        (folder / file.name).write_bytes(file.read_bytes())
    for library in found:
        (folder / f"{library.name}.icd").write_text(f"{library}\n")
    named = ", ".join(map(str, found))
    return {VENDORS: str(folder)}, [f"No .icd file names {named}; this run registered it"]

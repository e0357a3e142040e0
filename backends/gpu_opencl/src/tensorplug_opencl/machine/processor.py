"""The processor's model and instruction sets, for which drivers for CPUs compile."""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
from pathlib import Path
from typing import Final

_CPUINFO: Final = Path("/proc/cpuinfo")
# Linux's names of the model and the instruction sets, on x86-64, 64-bit Arm and others.
_FIELDS: Final = (
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    "Features",
    "CPU implementer",
    "CPU architecture",
    "CPU part",
    "CPU variant",
    "cpu",
    "isa",
)


@functools.cache
def read_facts() -> dict[str, str]:
    """Return the processor's model and instruction sets, under the system's names."""
    facts = {"machine": platform.machine(), "processor": platform.processor()}
    if sys.platform == "darwin":
        facts["model name"] = _read_sysctl("machdep.cpu.brand_string")
        facts["flags"] = _read_sysctl("machdep.cpu.features")
    elif _CPUINFO.exists():
        with _CPUINFO.open(errors="replace") as lines:
            for line in lines:
                name, colon, value = line.partition(":")
                if not colon:
                    break  # the next processor: reading hundreds of them takes long
                if name.strip() in _FIELDS:
                    facts[name.strip()] = value.strip()
    return facts


def _read_sysctl(name: str) -> str:
    import subprocess  # on macOS only

    command = ["/usr/sbin/sysctl", "-n", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # fixed
    return done.stdout.strip()


def read_model() -> str:
    """Return the processor's name, for display."""
    facts = read_facts()
    return facts.get("model name") or facts["processor"] or facts["machine"]


@functools.cache
def compute_digest() -> str:
    """Return a digest that differs if drivers compile differently for two processors."""
    text = "\0".join(f"{name}={value}" for name, value in sorted(read_facts().items()))
    return hashlib.sha256(text.encode()).hexdigest()

"""Whether LLVM is used: the environment variable ``TENSORPLUG_CPU_JIT``."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

from tensorplug.plugin import SettingsError
from tensorplug_cpu.jit.codegen.compiler import is_available

JIT: Final = "TENSORPLUG_CPU_JIT"
_LEAST: Final = {"0": None, "1": 1 << 15, "always": 1}


def least_elements() -> int | None:
    """Return the number of elements from which LLVM's loops are used; None for never.

    Raises:
        SettingsError: the variable has a value that is not allowed.

    """
    least = _asked()
    return least if least is not None and is_available() else None


def is_on() -> bool:
    """Return the same as whether ``least_elements`` returns a number, without a slow import.

    Raises: as ``least_elements``.
    """
    return _asked() is not None and find_spec("llvmlite") is not None


def _asked() -> int | None:
    asked = os.environ.get(JIT, "").strip() or "1"
    if asked not in _LEAST:
        raise SettingsError(f"{JIT}={asked!r}: must be 0, 1 or always")
    return _LEAST[asked]


def is_worthwhile(elements: int) -> bool:
    """Return whether a loop over so many elements is to be compiled by LLVM.

    Raises: as ``least_elements``.
    """
    least = least_elements()
    return least is not None and elements >= least

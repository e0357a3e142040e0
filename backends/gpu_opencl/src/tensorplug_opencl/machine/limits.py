"""The limits of a device: what failed in its trial, and what the backend therefore avoids."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tensorplug.plugin import KernelRefusedError

# Mesa's llvmpipe silently ends all loops of a work-item after 65,535 steps. Half of them are left
# for loops inside of the counted one.
STEPS: Final = 32_768
_DOUBLE: Final = re.compile(r"\bdouble\d*\b")
_HALF: Final = re.compile(r"\bhalf\d*\b")
TRIED_LATER: Final = re.compile(
    rf"{_DOUBLE.pattern}|{_HALF.pattern}|\batom_|\bu?(?:char|short|int|long)(?:2|4|8|16)\b"
    r"|\b(?:sqrt|floor|ceil|trunc|rint|copysign|fma|fmod)\("
)
"""What programs have that the first stages of the trial do not cover."""


class Limits(NamedTuple):
    """How far a driver is trusted.

    ``vector_bytes``: the longest vectors that kernels may use. ``float64``, ``float16``,
    ``atomics64``: whether double and half precision and atomics on 64-bit integers may be used
    where the device declares them. ``binaries``: whether built programs can be loaded again.
    ``long_loops``: whether a work-item may take more than ``STEPS`` steps of loops in all.
    ``shared_memory``: whether the host may use the device's memory where the driver offers that.
    """

    vector_bytes: int = 64  # a cache line, and two or four registers
    float64: bool = True
    float16: bool = True
    atomics64: bool = True
    binaries: bool = True
    long_loops: bool = True
    shared_memory: bool = True

    def check(self, source: str) -> None:
        """Check that a program uses no dtype that has failed.

        Raises:
            KernelRefusedError: it does.

        """
        for word, has in ((_DOUBLE, self.float64), (_HALF, self.float16)):
            if not has and word.search(source):
                raise KernelRefusedError("the driver's trial has shown that its dtype fails")

    def describe(self) -> list[str]:
        """Return descriptions of what the backend does not use."""
        failures = []
        if self.vector_bytes < NONE.vector_bytes:
            failures.append(f"vectors of at most {self.vector_bytes} bytes")
        lacks = {
            "no float64": self.float64,
            "no float16": self.float16,
            "no 64-bit atomics": self.atomics64,
            "programs are built anew in each process": self.binaries,
            f"no loops of more than {STEPS:,} steps": self.long_loops,
            "no memory shared with the host": self.shared_memory,
        }
        return failures + [text for text, has in lacks.items() if not has]


NONE: Final = Limits()

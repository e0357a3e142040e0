"""The processor that loops are written for: this machine's, perhaps with shorter vectors.

Widths of vectors and sizes of tiles follow from this description, and from nothing else. The
environment variable ``TENSORPLUG_CPU_VECTORS`` limits the vectors.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from tensorplug.plugin import SettingsError

VECTORS: Final = "TENSORPLUG_CPU_VECTORS"
_WITHOUT: Final[dict[str, tuple[str, ...]]] = {
    "": (),
    "64": (),
    "32": ("avx512", "avx10", "evex"),
    "16": ("avx", "evex", "fma", "f16c", "vaes", "vpclmulqdq", "xop", "sha512", "sm3", "sm4"),
}
"""What the names of the features begin with that a processor with shorter vectors lacks."""


@cache
def features() -> dict[str, bool]:
    """Return LLVM's names of what processors may have, and whether this one has it.

    Raises:
        SettingsError: the variable has a value that is not allowed.

    """
    import llvmlite.binding as llvm  # an extra

    limit = os.environ.get(VECTORS, "").strip()
    if limit not in _WITHOUT:
        raise SettingsError(f"{VECTORS}={limit!r}: must be 16, 32 or 64")
    lacking = _WITHOUT[limit]
    host = llvm.get_host_cpu_features()
    return {name: has and not name.startswith(lacking) for name, has in host.items()}


def flags() -> str:
    """Return the features as LLVM's compiler takes them."""
    return ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(features().items()))


def vector_bytes() -> int:
    """Return the bytes of a vector register."""
    has = features().get
    return 64 if has("avx512f") else 32 if has("avx") else 16


def registers() -> int:
    """Return the number of vector registers."""
    has = features().get
    return 32 if has("avx512f") or has("neon") else 16


def converts_halves() -> bool:
    """Return whether the processor converts float16; LLVM calls a function that may lack, else."""
    has = features().get
    return bool(has("f16c") or has("neon"))


def attributes() -> str:
    """Return LLVM's attributes of a function that may use the largest vectors."""
    bits = 8 * vector_bytes()
    return f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


def lanes(itemsize: int) -> int:
    """Return how many numbers of a size fit into a register."""
    return max(2, vector_bytes() // itemsize)

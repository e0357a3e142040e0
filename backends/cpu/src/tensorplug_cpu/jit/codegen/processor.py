"""What the renderer needs to know about this machine's processor."""

from __future__ import annotations

from functools import cache


@cache
def _features() -> dict[str, bool]:
    import llvmlite.binding as llvm  # an extra

    return dict(llvm.get_host_cpu_features())


def vector_bytes() -> int:
    """Return the bytes of a vector register."""
    features = _features()
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


def registers() -> int:
    """Return the number of vector registers."""
    features = _features()
    return 32 if features.get("avx512f") or features.get("neon") else 16


def has_fma() -> bool:
    """Return whether the processor multiplies and adds in one instruction."""
    features = _features()
    return bool(features.get("fma") or features.get("neon"))


def attributes() -> str:
    """Return LLVM's attributes of a function that may use the largest vectors."""
    bits = 8 * vector_bytes()
    return f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


def lanes(itemsize: int) -> int:
    """Return how many numbers of a size fit into a register."""
    return max(2, vector_bytes() // itemsize)

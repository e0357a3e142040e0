"""The CPU backend has a kernel for every spec of the core."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import specs
from tensorplug_cpu.plugin import TABLES

FUSED: Final = "the distribution tensorplug-attention has the fused kernel"
DECOMPOSED_ON_PURPOSE: Final[dict[str, str]] = {  # kernel: why the decomposition is good enough
    "ScaledDotProductAttention": FUSED,
    "ScaledDotProductAttentionGrad": FUSED,
}


def test_the_kernels_that_are_missing_are_missing_on_purpose():
    native = {entry.spec.name for table in TABLES for entry in table}
    assert {spec.name for spec in specs} - native == set(DECOMPOSED_ON_PURPOSE)

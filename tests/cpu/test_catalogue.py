"""The CPU backend has a kernel for every spec of the core."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import specs
from tensorplug_cpu.plugin import TABLES

FUSED: Final = "the distribution tensorplug-attention has the fused kernel"
GROUP: Final = "its decomposition runs as one group, in less time than NumPy's functions take"
DECOMPOSED_ON_PURPOSE: Final[dict[str, str]] = {  # kernel: why the decomposition is good enough
    "Dequantize": GROUP,
    "FakeQuantize": GROUP,
    "Quantize": GROUP,
    "ScaledDotProductAttention": FUSED,
    "ScaledDotProductAttentionGrad": FUSED,
}


def test_the_kernels_that_are_missing_are_missing_on_purpose():
    native = {entry.spec.name for table in TABLES for entry in table}
    assert {spec.name for spec in specs} - native == set(DECOMPOSED_ON_PURPOSE)

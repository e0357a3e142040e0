"""What loops are written for: this machine's processor, or one with shorter vectors."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tensorplug.errors import SettingsError
from tensorplug_cpu.jit.codegen import processor

pytest.importorskip("llvmlite")

SERVER = (
    *("64bit", "sse4.2", "gfni", "avx", "avx2", "fma", "f16c", "vaes", "vpclmulqdq"),
    *("avx512f", "avx512vl", "avx10.1", "evex512", "avxvnni"),
)
SMALL = ("64bit", "sse4.2", "gfni")

# limit, what LLVM says of the host, bytes of vectors, registers, float16
PROCESSORS = [
    ("", SERVER, 64, 32, True),
    ("64", SERVER, 64, 32, True),
    ("32", SERVER, 32, 16, True),
    ("16", SERVER, 16, 16, False),
    ("64", ("avx", "avx2", "fma", "f16c"), 32, 16, True),
    ("32", SMALL, 16, 16, False),
    ("32", ("neon", "fullfp16"), 16, 32, True),
]


@pytest.fixture(autouse=True)
def _ask_again():
    processor.features.cache_clear()
    yield
    processor.features.cache_clear()


@pytest.mark.parametrize(("limit", "has", "vector", "registers", "halves"), PROCESSORS)
def test_processors(monkeypatch, limit, has, vector, registers, halves):
    import llvmlite.binding as llvm

    monkeypatch.setenv(processor.VECTORS, limit)
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: dict.fromkeys(has, True))
    assert processor.vector_bytes() == vector
    assert processor.registers() == registers
    assert processor.converts_halves() == halves
    assert [processor.lanes(size) for size in (4, 8)] == [vector // 4, vector // 8]
    kept = {flag[1:] for flag in processor.flags().split(",") if flag[0] == "+"}
    assert ("avx512f" in kept, "avx2" in kept) == (vector == 64, vector >= 32)
    assert not kept & {"vaes", "vpclmulqdq"} or vector >= 32
    assert kept & set(SMALL) == set(has) & set(SMALL)


@pytest.mark.parametrize("limit", ["8", "128", "avx2"])
def test_a_wrong_limit(monkeypatch, limit):
    monkeypatch.setenv(processor.VECTORS, limit)
    with pytest.raises(SettingsError, match=f"TENSORPLUG_CPU_VECTORS='{limit}': must be 16, 32"):
        processor.features()


PROGRAM = """
import numpy as np
import tensorplug as tp
from tensorplug_cpu.jit.codegen import processor
x = tp.asarray(np.arange(1 << 16, dtype=np.float32).reshape(256, 256) % 7)
product = tp.maximum(x @ x, 0)
print(processor.vector_bytes(), np.asarray(product).sum(dtype=np.float64))
"""


@pytest.mark.parametrize("limit", [16, 32])
def test_a_process_with_shorter_vectors(tmp_path, limit):
    x = np.arange(1 << 16).reshape(256, 256) % 7
    limits = {"TENSORPLUG_CPU_CACHE": str(tmp_path / "kept"), "TENSORPLUG_CPU_VECTORS": str(limit)}
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **limits},
        capture_output=True,
        text=True,
        check=True,
    )
    vector, total = process.stdout.split()
    assert int(vector) <= limit
    assert float(total) == (x @ x).sum()

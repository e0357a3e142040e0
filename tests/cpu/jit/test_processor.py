"""What loops are written for: this machine's processor, or one with shorter vectors."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys

import numpy as np
import pytest

from tensorplug.errors import SettingsError
from tensorplug_cpu.jit.codegen import compiler, control_flow, processor
from tensorplug_cpu.jit.loops import multiplication, partitions

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
from tensorplug_cpu.jit.codegen import compiler, control_flow, processor
from tensorplug_cpu.jit.loops import multiplication, partitions
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


_AVX512 = ("avx512f", "avx512vl", "avx512dq", "avx512bw")
NAMED = [
    ("znver3", ("avx", "avx2", "fma"), "ymm"),
    ("skylake-avx512", ("avx", "avx2", "fma", *_AVX512), "zmm"),
    ("sapphirerapids", ("avx", "avx2", "fma", *_AVX512), "zmm"),
    ("znver4", ("avx", "avx2", "fma", *_AVX512), "zmm"),
    ("znver5", ("avx", "avx2", "fma", *_AVX512), "zmm"),
]


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="of x86-64")
@pytest.mark.parametrize(("name", "has", "register"), NAMED)
def test_the_sums_of_a_tile_stay_in_registers(monkeypatch, name, has, register):
    import llvmlite.binding as llvm

    monkeypatch.delenv(processor.VECTORS, raising=False)
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: name)
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: dict.fromkeys(has, True))
    monkeypatch.setattr(
        llvm.TargetMachine, "emit_object", lambda self, module: self.emit_assembly(module).encode()
    )
    texts = []
    monkeypatch.setattr(control_flow, "compile_function", lambda text, *_: texts.append(text))
    size = partitions.tile_size(np.dtype("float32"), 2048, 2048)
    layout = multiplication.Layout(turned=False, panels=True, across=False)
    multiplication.multiply_function.__wrapped__("float32", size, layout, "linear", bias=False)
    assembly = compiler._Compiler().compile(texts[0]).decode()
    sums = re.findall(rf"vfmadd\w+\s.*%{register}", assembly)
    assert len(sums) >= size.vectors * size.positions
    assert not re.findall(rf"vmov\w+\s+%{register}\d+, -?\d*\(%rsp\)", assembly)

"""Tests of the record of a program's memory, and of the programs within a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("resource")
pytest.importorskip("tensorplug_dask")
if not Path("/proc/self/status").exists():
    pytest.skip("the memory of a process is read from /proc", allow_module_level=True)

import measure_memory
from memory_trace import MIB, Trace, run_pca

ROWS = 40 * MIB // 256  # a table of 40 MiB


def trace(**changes: object) -> Trace:
    made = {
        "backend": "cpu",
        "rows": 4096,
        "limit": 2 * MIB,
        "seconds": [0.0, 0.5],
        "memory": [0, 3],
        "code": 0,
        "said": "variances [25. 16. 9.]",
    }
    return Trace(**{**made, **changes})  # type: ignore[arg-type]  # a table of fields


def test_sizes_and_peak() -> None:
    assert trace().data == MIB
    assert trace(memory=[1, 7, 2]).peak == 7


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({"code": 1, "said": "numpy.exceptions.MemoryError: no 64 MiB"}, True),
        ({"code": 1, "said": "AssertionError: weights"}, False),
        ({"said": "no MemoryError"}, False),
    ],
)
def test_failures_for_memory(changes: dict[str, object], *, failed: bool) -> None:
    assert trace(**changes).failed_for_memory == failed


@pytest.mark.slow
def test_one_backend_holds_the_table_and_the_other_does_not() -> None:
    whole, chunks = (run_pca(backend, ROWS, 200 * MIB) for backend in ("cpu", "dask"))
    assert (whole.code, chunks.code) == (0, 0)
    assert "cosines" in whole.said
    assert whole.peak > whole.data
    assert chunks.peak < chunks.data
    assert whole.seconds[0] == 0
    assert len(whole.seconds) == len(whole.memory)


@pytest.mark.slow
def test_a_program_that_ends_early() -> None:
    with pytest.raises(RuntimeError, match="nowhere"):
        run_pca("nowhere", ROWS, MIB)


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "code"), [(50, 0), (400, 1)])
def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], memory: int, code: int
) -> None:
    """There must be less memory than data, or there is nothing to show."""
    file = tmp_path / "folder" / "memory.png"
    arguments = ["--data", "60", "--memory", str(memory), "--output", str(file)]
    assert measure_memory.main(arguments) == code
    printed = capsys.readouterr().out
    assert ("MemoryError" in printed) == (code == 0)
    assert ("cpu, 60 MiB: not as expected" in printed) == (code == 1)
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

"""Run a program and record its memory while it runs. It needs Linux's /proc."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
FEATURES = 64  # columns of the table, of 4 bytes each
PCA = Path(__file__).parents[3] / "plugins_example" / "dask_backend" / "examples" / "pca.py"
PAUSE = 0.005  # seconds between two looks at the memory


@dataclass(frozen=True)
class Trace:
    """What a run took, counted from the moment when the limit was set.

    ``seconds`` and ``memory``, in bytes, have one number for each look. ``memory`` is what the
    process has beyond what it had at the beginning. ``said`` is the last line that it printed.
    """

    backend: str
    rows: int
    limit: int
    seconds: list[float]
    memory: list[int]
    code: int
    said: str

    @property
    def data(self) -> int:
        """The size of the table in bytes."""
        return 4 * FEATURES * self.rows

    @property
    def peak(self) -> int:
        """The most memory that was seen."""
        return max(self.memory)

    @property
    def failed_for_memory(self) -> bool:
        """Whether the program ended with an error that says so."""
        return self.code != 0 and "MemoryError" in self.said


def run_pca(backend: str, rows: int, limit: int) -> Trace:
    """Find principal components of a table, with at most ``limit`` bytes more than at the start.

    Raises:
        RuntimeError: the program ended before it set the limit.

    """
    # Threads of BLAS would stand in the way of those of Dask.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PCA), "--backend", backend]
    command += ["--rows", str(rows), "--memory", str(limit)]
    with tempfile.TemporaryFile() as printed:
        with subprocess.Popen(
            command, cwd=PCA.parent, env=environment, stdout=printed, stderr=subprocess.STDOUT
        ) as process:
            looks = _look(process, limit)
        printed.seek(0)
        lines = printed.read().decode("utf-8").replace("\r", "\n").split("\n")
    said = next((line for line in reversed(lines) if line.strip()), "")
    if not looks:
        raise RuntimeError(f"{' '.join(command)} ended early: {said}")
    start = looks[0][0]
    return Trace(
        backend=backend,
        rows=rows,
        limit=limit,
        seconds=[when - start for when, _ in looks],
        memory=[memory for _, memory in looks],
        code=process.returncode,
        said=said,
    )


def _look(process: subprocess.Popen[bytes], limit: int) -> list[tuple[float, int]]:
    """Look at the process again and again until it ends; begin when its limit is set."""
    looks = []
    while process.poll() is None:
        # The program allows itself what it has and ``limit`` more: the rest is what it had.
        allowed, _ = resource.prlimit(process.pid, resource.RLIMIT_DATA)
        if allowed != resource.RLIM_INFINITY:
            data = _data(process.pid)
            if data:  # nothing is left of it in the moment when it ends
                looks.append((time.perf_counter(), data - (allowed - limit)))
        time.sleep(PAUSE)
    return looks


def _data(process: int) -> int:
    """Return the bytes that ``RLIMIT_DATA`` counts."""
    status = Path(f"/proc/{process}/status").read_text("utf-8")
    found = [line for line in status.splitlines() if line.startswith("VmData")]
    return int(found[0].split()[1]) * 1024 if found else 0

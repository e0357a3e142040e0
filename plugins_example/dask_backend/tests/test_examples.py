"""The examples: the same program on each backend, and on more data than there is memory for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NO_LIMITS = "this platform has no /proc, by which the examples know what to allow"


def example(name, *arguments):
    """Run an example as users do; return the finished process."""
    environment = {**os.environ, "TENSORPLUG_FALLBACK": "error", "OMP_NUM_THREADS": "1"}
    environment.pop("TENSORPLUG_DASK_CHUNK_BYTES")  # what other tests set
    command = [sys.executable, "-W", "error", f"{name}.py", *arguments]
    return subprocess.run(
        command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "dask"])
@pytest.mark.parametrize(("name", "found"), [("pca", "cosines"), ("logistic", "weights off by")])
def test_a_program_finds_what_was_planted(name, found, backend):
    """The programs compare the result with what was planted, and fail if it differs."""
    done = example(name, "--backend", backend, "--rows", "20000")
    assert (done.returncode, done.stderr) == (0, "")
    assert found in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason=NO_LIMITS)
@pytest.mark.parametrize("name", ["pca", "logistic"])
def test_more_data_than_memory(name):
    """54 MB of data, where the process may have 50 MB more than it has."""
    limited = ("--rows", "210000", "--memory", "50MB")
    eager = example(name, "--backend", "cpu", *limited)
    assert eager.returncode
    assert "MemoryError: Unable to allocate" in eager.stderr
    lazy = example(name, "--backend", "dask", *limited)
    assert (lazy.returncode, lazy.stderr) == (0, "")
    assert "limit: 50MB" in lazy.stdout


@pytest.mark.slow
def test_on_a_cluster_of_which_a_worker_is_killed():
    pytest.importorskip("distributed")
    done = example("pca", "--workers", "2", "--kill", "--rows", "60000")
    assert done.returncode == 0, done.stderr
    assert "cosines" in done.stdout
    assert re.search(r"killed on the way: process \d+, with \d+ results", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kill",), "--kill kills one of the processes that --workers starts"),
        (("--workers", "2", "--address", "tcp://127.0.0.1:1"), "choose one of them"),
        (("--workers", "2", "--backend", "cpu"), "a cluster needs --backend dask"),
        (("--workers", "2", "--memory", "1GiB"), "--memory is for this process alone"),
    ],
)
def test_options_that_do_not_fit_together(arguments, message):
    done = example("pca", *arguments)
    assert done.returncode == 2
    assert message in done.stderr

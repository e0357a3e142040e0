"""Arguments beyond every limit, in each place of each public function: only our errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.core.support import hostile_calls, valid_calls

from tensorplug.errors import ArgumentError

ROOT = Path(__file__).parents[3]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # stacks count as memory


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each function runs in a forked process")
def test_only_our_errors():
    program = [sys.executable, "-m", "tests.core.support.hostile_calls"]
    done = subprocess.run(
        program,
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **ONE_THREAD},
    )
    assert done.returncode == 0, done.stderr
    *result, last = done.stdout.splitlines()
    assert last == f"{len(valid_calls.CALLS)} functions"
    assert result == []


def raises(error):
    def function():
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ArgumentError("bad"), None),
        (ValueError("bad \ud800"), "ValueError: 'bad \\ud800'"),
        (MemoryError(), "MemoryError: ''"),
    ],
)
def test_the_check_finds_errors_of_others(error, expected):
    assert hostile_calls.foreign(raises(error), []) == expected

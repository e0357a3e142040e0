"""The tests of the backend, in ``tests/opencl``: ``correctness.py [--device opencl:1]``.

If a test takes the process down, a new process continues after it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from outcomes import records, told
from telling import FILE, tell

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
AGAIN: Final = 10  # processes at most
ENDED: Final = (0, 1, 5)  # exit statuses of pytest after all tests: passed, failed, none were left
CONFIGURED: Final = ("pytest_timeout", "xdist")  # requirements of the project's configuration


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    os.environ.setdefault(FILE, str(Path("tests.jsonl").resolve()))
    command = [
        *(sys.executable, "-m", "pytest", "tests/opencl", "-q", "-p", "outcomes"),
        *("-p", "no:cacheprovider", "--opencl-device", options.device.partition(":")[2] or "0"),
        *_configuration(options.jobs),
    ]
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    status = 0
    for _ in range(AGAIN):
        before = len(told())
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False
        )
        status = done.returncode
        if status in ENDED:
            break
        _crashed(status)
        if len(told()) == before:  # it dies before any test
            tell("error", why=f"pytest ended with exit status {status}, see tests.log")
            break
    failed = any(record.get("outcome") in ("failed", "crashed") for record in records())
    return 1 if failed or status not in ENDED else 0


def _configuration(jobs: int) -> list[str]:
    """Return pytest's options: the project's own if their requirements are installed."""
    if all(map(find_spec, CONFIGURED)):
        return ["--numprocesses", str(jobs)] if jobs > 1 else []
    file = Path(os.environ[FILE]).with_name("pytest.ini")
    file.write_text("[pytest]\n")
    return ["-c", str(file), "--rootdir", str(ROOT), "--import-mode=importlib"]


def _crashed(status: int) -> None:
    """Report the test that was begun last and has no outcome."""
    done = told()
    begun = [record["test"] for record in records() if record["about"] == "start"]
    if begun and begun[-1] not in done:
        why = f"the process ended with exit status {status} in this test"
        tell("outcome", test=begun[-1], outcome="crashed", message=why)


if __name__ == "__main__":
    raise SystemExit(main())

"""Certify backends that lack dtypes: the example ``minimal``, with fewer of them or with others.

``python -m tests.conformance.narrow --report out/narrow``. A row whose cases need a dtype that a
backend lacks says so, and all others must pass. Exit code: 1 if a backend does not conform.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.conformance.tests.installing import install

from tensorplug.plugin import dtypes as dt

REQUIRED: Final = frozenset({dt.bool_, dt.int32, dt.float32})
BACKENDS: Final = {
    "three": REQUIRED,
    "bfloat": REQUIRED | {dt.bfloat16},
    "narrow": frozenset(x for x in dt.BOOL | dt.REAL if x.itemsize < dt.int64.itemsize),
}
LEFT: Final = {dt.float16, dt.bfloat16, dt.int8, dt.uint8}  # to the core

PLUGIN: Final = """\
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import hookimpl
from tensorplug_example_minimal.backend import MinimalBackend
from tensorplug_example_minimal.kernels import kernels


class Narrow(MinimalBackend):
    name = device = {name!r}
    dtypes = frozenset(map(dt.of, {dtypes!r}))
    widens = dtypes & set(map(dt.of, {left!r}))


@hookimpl
def tensorplug_create_backend(device):
    return Narrow()


@hookimpl
def tensorplug_kernels():
    return (kernels,)
"""


def main() -> int:
    """Certify all backends, or those of ``--only``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(BACKENDS), action="append")
    parser.add_argument("--level", default="3")
    parser.add_argument("--report", type=Path, required=True, help="the folder of the reports")
    parser.add_argument("--jobs", default=str(len(os.sched_getaffinity(0))))
    options, others = parser.parse_known_args()  # the others are for the suite: --dtypes int8
    failed = 0
    for name in options.only or BACKENDS:
        began = time.monotonic()
        failed |= certify(name, options, others)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
    return failed


def certify(name: str, options: argparse.Namespace, others: list[str]) -> int:
    """Certify one backend, in a process that finds it as a plugin; return its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        names = sorted(dtype.name for dtype in BACKENDS[name])
        left = sorted(dtype.name for dtype in LEFT)
        install(Path(folder), PLUGIN.format(name=name, dtypes=names, left=left), name=name)
        command = ["-m", "tensorplug_conformance", "run", "--backend", name]
        command += ["--level", options.level, "--jobs", options.jobs]
        path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.run(
            [sys.executable, *command, "--report", str(options.report / name), *others],
            env={**os.environ, "PYTHONPATH": path},
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())

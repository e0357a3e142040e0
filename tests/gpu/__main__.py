"""Test and measure the OpenCL backend on a GPU, within a given time.

The steps, in this order: facts about the device and the verdict of its driver's trial; conformance
up to level 2; the tests of the backend; the same levels of the backend webgpu, if it finds a GPU;
bandwidth and FLOP/s as shares of the device's peak; the benchmarks, beside PyTorch on the same GPU
if it is installed; conformance at levels 3 and 4. Each step runs in a separate process and has a
share of the time; time that it does not use goes to the later steps.

The exit status is 0 if all steps finished and nothing failed, 1 if not, 2 if there is no device.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from children import run
from folding import failures
from icd import register
from record import Record
from steps import LEAST, STEPS, allowance
from telling import FILE

if TYPE_CHECKING:
    from types import FrameType

    from steps import Step

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
TRIAL: Final = "TENSORPLUG_OPENCL_TRIAL"
CACHE: Final = "TENSORPLUG_OPENCL_CACHE"
NONE: Final = 3  # the exit status of a program that finds no GPU for another backend
LARGE: Final = {True: 26, False: 21}  # elements of large arrays in benchmarks on GPUs, on others
EPILOG: Final = """\
The folder OUT gets summary.md, which you paste into an issue; result.json, with all figures; and
a log and a file of records for each step. All of them are up to date at any time.

For a machine without internet access there are two ways.

1. With wheels. On a machine with internet access, run make wheels FOR=3.12 (the Python version of
the other machine). Copy out/wheels and this repository to the other machine, and run there:
  python3 -m venv --system-site-packages gpu
  gpu/bin/pip install --no-index --no-deps out/wheels/*.whl
  gpu/bin/python tests/gpu
Or without a virtual environment:
  pip install --no-index --no-deps --target DIR out/wheels/*.whl
  PYTHONPATH=DIR python3 tests/gpu

2. From this checkout, if hatchling and editables are installed:
  pip install --no-deps --no-build-isolation -e core -e backends/gpu_opencl -e tests/conformance
A PYTHONPATH of src folders alone is not enough, because tensorplug finds only installed backends.

The run needs numpy, pluggy, importlib-metadata, packaging and pyopencl. Conformance also needs
hypothesis (and jinja2, jsonschema and rich to write its report as a page). The tests need pytest
and hypothesis (pytest-xdist makes them faster, pytest-timeout ends tests that hang). The
comparison with PyTorch needs torch. If packages are missing, the run skips the step, and the
summary says what the step needs.
"""


class StoppedError(Exception):
    """The run was told to stop."""


def main() -> int:
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _stop)
    command = shlex.join(["python", "tests/gpu", *sys.argv[1:]])
    record = Record(options.out.resolve(), ROOT, options.seconds, command)
    variables, notes = register(record.folder / "vendors")
    record.result["notes"] += notes
    variables[CACHE] = str(_cache(record.folder))
    done = _Run(options, record, {**os.environ, **variables})
    try:
        done.all_steps()
    except (KeyboardInterrupt, StoppedError):
        done.stopped()
        print(f"Stopped. The results so far are in {record.folder}")
        return 130
    record.result["finished"] = True
    record.save()
    print((record.folder / "summary.md").read_text("utf-8"))
    print(f"All results are in {record.folder}")
    if not done.device:
        return 2
    states = {step.get("status") for step in record.result["steps"].values()}
    return 0 if states == {"done"} else 1


def _cache(folder: Path) -> Path:
    """Return a folder for programs and verdicts, separate from the user's.

    A process that dies while it builds a program leaves a mark, and later ones leave that program
    out. Here most of those that die were stopped, for lack of time.
    """
    cache = folder / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    for mark in cache.glob("*.attempt"):
        mark.unlink()
    return cache


def _stop(_number: int, _context: FrameType | None) -> None:
    raise StoppedError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tests/gpu",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--device",
        default="",
        metavar="NAME",
        help="opencl, opencl:1, ...; may be a CPU (default: the first GPU)",
    )
    parser.add_argument("--seconds", type=float, default=600, help="for all steps (default: 600)")
    parser.add_argument(
        "--out", type=Path, default=Path("out/gpu"), help="folder (default: out/gpu)"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=min(os.cpu_count() or 1, 16),
        help="processes that share the device in tests and conformance (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        choices=[step.name for step in STEPS],
        help="run only these steps and the first one",
    )
    return parser


class _Run:
    """All steps, one after the other."""

    def __init__(
        self, options: argparse.Namespace, record: Record, environment: dict[str, str]
    ) -> None:
        self.options, self.record, self.environment = options, record, environment
        self.now: Step | None = None
        self.device: dict[str, Any] = {}

    def all_steps(self) -> None:
        only = (*self.options.only, STEPS[0].name) if self.options.only else ()
        steps = [step for step in STEPS if not only or step.name in only]
        for step in STEPS:
            if step not in steps:
                self.record.note(step.name, status="not done", why="not among the steps of --only")
        for at, step in enumerate(steps):
            self.now = step
            limit = allowance(step, steps[at:], self.options.seconds - self.record.seconds)
            lacking = [package for package in step.packages if not _importable(package)]
            if lacking:
                self.record.note(step.name, status="not done", why=f"needs {', '.join(lacking)}")
            elif step is not STEPS[0] and step.backend == "opencl" and not self.device:
                self.record.note(step.name, status="not done", why="there is no usable device")
            elif limit < LEAST:
                self.record.note(step.name, status="not done", why="there was no time left")
            else:
                self._do(step, limit)
                if step is STEPS[0]:
                    self._meet(limit)

    def _do(self, step: Step, limit: float, **more: str) -> None:
        print(f"{step.title}: {limit:.0f} s at most", flush=True)
        self.record.note(step.name, status="running")
        end = run(
            self._command(step, limit, **more),
            log=self.record.file(step.name, "log"),
            limit=limit,
            environment={
                **self.environment,
                "PYTHONUNBUFFERED": "1",
                FILE: str(self.record.file(step.name, "jsonl")),
            },
            folder=ROOT,
            look=lambda: self.record.note(step.name),
        )
        if end.status is None:
            status = "out of time"
            _cache(self.record.folder)
        else:
            status = {0: "done", 1: "failed", NONE: "not done"}.get(end.status, "broken")
        self.record.note(step.name, status=status, seconds=round(end.seconds, 1))
        why = end.told
        results = self.record.result["steps"][step.name].get("results", {})
        if status == "not done":
            why = results["none"]
        elif status == "broken":
            why = "; ".join([why, *(failure["why"] for failure in failures(results)[-1:])])
        why = "" if status in ("done", "failed") else why
        self.record.note(step.name, why=why)
        print(f"  {status} after {end.seconds:.0f} s {why}", flush=True)

    def _command(self, step: Step, limit: float, **more: str) -> list[str]:
        gpu = self.device.get("kind") == "GPU"
        words = {
            "asked": self.options.device,
            "hardware": "",
            "device": self.device.get("name", ""),
            "jobs": str(self.options.jobs),
            "item_limit": f"{max(60.0, limit / 3):.0f}",
            "folder": str(self.record.folder / "conformance"),
            "large": str(LARGE[gpu]),
            **more,
        }
        command = [sys.executable, str((HERE / step.program).resolve())]
        command += [argument.format(**words) for argument in step.arguments]
        if step.name == "benchmarks":
            command += ["--json", str(self.record.file(step.name, "rows.json"))]
            command += ["--gpu"] if gpu else []
        return command

    def _meet(self, limit: float) -> None:
        """Take the device that the first step found; one that is refused is opened untried."""
        found = self._found()
        if found.get("refused") and found.get("tried"):
            before = dict(self.record.result["steps"][STEPS[0].name])
            self.environment[TRIAL] = "0"
            self.record.result["untried"] = True
            records = self.record.file(STEPS[0].name, "jsonl")
            kept = records.read_bytes()
            records.unlink()
            self._do(STEPS[0], limit, hardware=str(found["hardware"]))
            again = self._found()
            records.write_bytes(kept)
            self.record.note(STEPS[0].name, **{k: before[k] for k in ("status", "seconds", "why")})
            found = {**again, "refused": again.get("refused", "it is gone")}
        if found and not found["refused"]:
            self.device = found

    def _found(self) -> dict[str, Any]:
        results = self.record.result["steps"][STEPS[0].name].get("results", {})
        device: dict[str, Any] = results.get("device", {})
        return device

    def stopped(self) -> None:
        """Note which step was running when the run was stopped."""
        if self.now is not None:
            self.record.note(
                self.now.name, status="stopped", why="the run was stopped in this step"
            )
        self.record.save()


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


if __name__ == "__main__":
    raise SystemExit(main())

"""Tries each adapter's driver in another process before the user's process computes with it.

A driver that crashes, hangs or computes nonsense ends that process, or is told by its numbers. The
verdict is kept on disk, for this driver and these checks. What something else than the driver has
ended is no verdict.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from multiprocessing.spawn import get_executable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import wgpu

from tensorplug.plugin import BackendUnavailableError, SettingsError, child_processes, disk_cache
from tensorplug_webgpu import adapters, single

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, Any]

TRIAL: Final = "TENSORPLUG_WEBGPU_TRIAL"
CACHE: Final = "TENSORPLUG_WEBGPU_CACHE"
SECONDS: Final = 60.0  # a trial takes two; a compiler that has not ended by then hangs
_TRIALS: Final = {"": "once", "1": "once", "0": "never", "again": "again"}
_FOLDER: Final = disk_cache.CacheFolder(
    CACHE, "tensorplug-webgpu", "verdicts on WebGPU's drivers", ("tensorplug_webgpu",)
)
_CODE: Final = "from tensorplug_webgpu.trial import main; main()"
_known: Final[dict[str, str]] = {}  # verdicts of this process, by key

ITEMS: Final = 6_400
_INTEGERS: Final = """
var<workgroup> shared_numbers: array<u32, 64>;
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64)
fn run(
  @builtin(global_invocation_id) item: vec3<u32>, @builtin(local_invocation_id) at: vec3<u32>
) {
  var state = x[item.x];
  for (var step = 0u; step < 100u; step++) { state = state * 1664525u + 1013904223u; }
  shared_numbers[at.x] = state;
  workgroupBarrier();
  x[item.x] = state ^ shared_numbers[63u - at.x];
}
"""
_FLOATS: Final = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn run(@builtin(global_invocation_id) item: vec3<u32>) {
  let number = x[item.x];
  x[item.x] = select(sqrt(number) * 0.5, floor(number / 4.0) - 3.0, item.x % 2u == 0u);
}
"""
_HALVES: Final = """enable f16;
@group(0) @binding(0) var<storage, read_write> x: array<f16>;
@compute @workgroup_size(64)
fn run(@builtin(global_invocation_id) item: vec3<u32>) {
  x[item.x] = x[item.x] * 0.5h + 3.0h;
}
"""


class UndecidedError(BackendUnavailableError):
    """Something else than the driver ended a trial; the message says what."""


def check(adapter: wgpu.GPUAdapter) -> None:
    """Try an adapter, unless its verdict is known.

    Raises:
        BackendUnavailableError: it failed.
        UndecidedError: it could not be tried.
        SettingsError: the variable that says when to try has another value.

    """
    when = os.environ.get(TRIAL, "").strip().lower()
    if when not in _TRIALS:
        raise SettingsError(f"{TRIAL}={when!r}: must be 0 (no trial), 1 (one trial) or again")
    if when == "0" or getattr(sys, "frozen", False):  # frozen programs have no interpreter
        return
    facts = _facts(adapter)
    key = hashlib.sha256(f"{facts}\n{Path(__file__).read_text('utf-8')}".encode()).hexdigest()
    wrong = _known.get(key)
    if wrong is None:
        folder = _FOLDER.find()
        file = folder / f"{key}.verdict.json" if folder else None
        wrong = None if when == "again" or file is None else _recall(file)
        if wrong is None:
            wrong = _try(facts)
            if file is not None:
                disk_cache.write(file, json.dumps({"wrong": wrong, "facts": facts}).encode())
        _known[key] = wrong
    if wrong:
        raise BackendUnavailableError(
            f"{adapters.name_of(adapter)}: its driver failed its trial: {wrong} ({TRIAL}=again "
            f"tries it once more, {TRIAL}=0 opens it untried)"
        )


def _facts(adapter: wgpu.GPUAdapter) -> str:
    versions = {"wgpu": wgpu.__version__, "half": adapters.HALF in adapter.features}
    return json.dumps({**adapter.info, **versions}, sort_keys=True, default=str)


def _recall(file: Path) -> str | None:
    content = disk_cache.read(file)
    try:
        told = json.loads(content) if content else None
    except ValueError:
        return None
    wrong = told.get("wrong") if isinstance(told, dict) else None
    return wrong if isinstance(wrong, str) else None


def _try(facts: str) -> str:
    """Return what is wrong with the adapter of these facts; "" if nothing is.

    Raises:
        UndecidedError: something else than the driver ended the trial.

    """
    command = [get_executable(), *child_processes.code_arguments(_CODE, facts)]
    try:
        done = subprocess.run(  # noqa: S603  # our own module
            command, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {SECONDS:.0f} seconds"
    except OSError as error:  # no more processes or files
        raise _undecided(f"no process can be started: {error}") from error
    begun = [line.partition(b"@@ ")[2] for line in done.stdout.splitlines() if b"@@ " in line]
    stages = [line.decode(errors="replace") for line in begun]
    if done.returncode == 0 and stages:
        return stages[-1].removeprefix("done").strip()
    end = child_processes.describe_end(done.returncode)
    if done.returncode < 0 and stages:
        if not end.from_outside:
            return f"{end.text} during {stages[-1]}"
        raise _undecided(end.text)
    last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"])[-1]
    raise _undecided(f"{end.text}: {last}")


def _undecided(why: str) -> UndecidedError:
    return UndecidedError(f"the trial of WebGPU's driver could not be made: {why}")


# In the other process ------------------------------------------------------------------------


def main() -> None:
    """Try the adapter whose facts the arguments have; print each stage, then what is wrong."""
    facts = sys.argv[1]
    for adapter in adapters.find():
        if _facts(adapter) == facts:
            _say(f"done {_compute(adapter)}")
            return
    raise SystemExit("a new process does not find the adapter")


def _say(text: str) -> None:
    sys.stdout.write(f"@@ {text}\n")
    sys.stdout.flush()


def _compute(adapter: wgpu.GPUAdapter) -> str:
    _say("opening the device")
    half = adapters.HALF in adapter.features
    try:
        device = adapter.request_device_sync(required_features=[adapters.HALF] if half else [])
        for stage, text, x, expected in _stages(half=half):
            _say(stage)
            found = single.run(device, text, x)
            if not np.allclose(found, expected, rtol=1e-6, atol=0):
                at = int(np.argmax(found != expected))
                return f"{stage}: number {at} is {found[at]}, must be {expected[at]}"
    except wgpu.GPUError as error:
        return " ".join(str(error).split())[:300]
    return ""


def _stages(*, half: bool) -> Iterator[tuple[str, str, Array, Array]]:
    """Yield a name, a shader, its numbers, and what they must become."""
    seeds = np.arange(ITEMS, dtype=np.uint32)
    factor, term = np.uint64(1), np.uint64(0)
    for _ in range(100):
        factor, term = factor * 1664525 % 2**32, (term * 1664525 + 1013904223) % 2**32
    states = (seeds * factor + term).astype(np.uint32)
    yield "integers", _INTEGERS, seeds, states ^ states.reshape(-1, 64)[:, ::-1].reshape(-1)
    numbers = np.arange(ITEMS, dtype=np.float32)
    even = np.arange(ITEMS) % 2 == 0
    wide = numbers.astype(np.float64)
    yield "floats", _FLOATS, numbers, np.where(even, wide // 4 - 3, np.sqrt(wide) / 2)
    if half:
        few = (np.arange(ITEMS) % 1000).astype(np.float16)
        yield "half floats", _HALVES, few, few * np.float16(0.5) + np.float16(3)

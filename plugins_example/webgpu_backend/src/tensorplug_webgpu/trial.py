"""Tries each adapter's driver in another process before the user's process computes with it.

A driver that crashes, hangs or computes nonsense ends that process, or is told by its numbers. The
verdict is kept on disk, for this driver and these checks, with how many neighbours exchange
values. What something else than the driver has ended is no verdict.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from multiprocessing.spawn import get_executable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import wgpu

from tensorplug.plugin import BackendUnavailableError, SettingsError, child_processes, disk_cache
from tensorplug_webgpu import adapters, exchange, single

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
_FILES: Final = (__file__, adapters.__file__, exchange.__file__, single.__file__)  # its code

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


class Verdict(NamedTuple):
    """What is wrong with a driver, "" if nothing is; how many neighbours exchange values."""

    wrong: str
    exchanged: int = 0


_known: Final[dict[str, Verdict]] = {}  # of this process, by key


class UndecidedError(BackendUnavailableError):
    """Something else than the driver ended a trial; the message says what."""


def check(adapter: wgpu.GPUAdapter) -> int:
    """Try an adapter, unless its verdict is known; return how many neighbours exchange values.

    That is 0 for an adapter that may not be tried.

    Raises:
        BackendUnavailableError: it failed.
        UndecidedError: it could not be tried.
        SettingsError: the variable that says when to try has another value.

    """
    when = os.environ.get(TRIAL, "").strip().lower()
    if when not in _TRIALS:
        raise SettingsError(f"{TRIAL}={when!r}: must be 0 (no trial), 1 (one trial) or again")
    if when == "0" or getattr(sys, "frozen", False):  # frozen programs have no interpreter
        return 0
    facts = _facts(adapter)
    code = [Path(file).read_bytes() for file in _FILES]
    key = hashlib.sha256(b"\0".join([facts.encode(), *code])).hexdigest()
    verdict = _known.get(key)
    if verdict is None:
        folder = _FOLDER.find()
        file = folder / f"{key}.verdict.json" if folder else None
        verdict = None if when == "again" or file is None else _parse(disk_cache.read(file))
        if verdict is None:
            verdict = _try(facts)
            if file is not None:
                disk_cache.write(file, json.dumps(verdict._asdict()).encode())
        _known[key] = verdict
    if verdict.wrong:
        raise BackendUnavailableError(
            f"{adapters.name_of(adapter)}: its driver failed its trial: {verdict.wrong} "
            f"({TRIAL}=again tries it once more, {TRIAL}=0 opens it untried)"
        )
    return verdict.exchanged


def _facts(adapter: wgpu.GPUAdapter) -> str:
    versions = {"wgpu": wgpu.__version__, "features": sorted(adapter.features)}
    return json.dumps({**adapter.info, **versions}, sort_keys=True, default=str)


def _parse(text: bytes | str | None) -> Verdict | None:
    try:
        told = json.loads(text or "")
        return Verdict(str(told["wrong"]), int(told["exchanged"]))
    except (ValueError, TypeError, KeyError):
        return None


def _try(facts: str) -> Verdict:
    """Return the verdict on the adapter of these facts.

    Raises:
        UndecidedError: something else than the driver ended the trial.

    """
    command = [get_executable(), *child_processes.code_arguments(_CODE, facts)]
    try:
        done = subprocess.run(  # noqa: S603  # our own module
            command, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict(f"it did not end within {SECONDS:.0f} seconds")
    except OSError as error:  # no more processes or files
        raise _undecided(f"no process can be started: {error}") from error
    begun = [line.partition(b"@@ ")[2] for line in done.stdout.splitlines() if b"@@ " in line]
    stages = [line.decode(errors="replace") for line in begun]
    verdict = _parse(stages[-1].removeprefix("done")) if stages else None
    if done.returncode == 0 and verdict is not None:
        return verdict
    end = child_processes.describe_end(done.returncode)
    if done.returncode < 0 and stages:
        if not end.from_outside:
            return Verdict(f"{end.text} during {stages[-1]}")
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
            _say(f"done {json.dumps(_compute(adapter)._asdict())}")
            return
    raise SystemExit("a new process does not find the adapter")


def _say(text: str) -> None:
    sys.stdout.write(f"@@ {text}\n")
    sys.stdout.flush()


def _compute(adapter: wgpu.GPUAdapter) -> Verdict:
    _say("opening the device")
    features = {adapters.HALF, exchange.FEATURE} & set(adapter.features)
    half = adapters.HALF in features
    try:
        device = adapter.request_device_sync(required_features=sorted(features))
        for stage, text, x, expected in _stages(half=half):
            _say(stage)
            found = single.run(device, text, x)
            if not np.allclose(found, expected, rtol=1e-6, atol=0):
                at = int(np.argmax(found != expected))
                return Verdict(f"{stage}: number {at} is {found[at]}, must be {expected[at]}")
        if exchange.FEATURE in features and adapters.is_processor(adapter):
            _say("neighbours")
            return Verdict("", exchange.measure(device))
    except wgpu.GPUError as error:
        return Verdict(" ".join(str(error).split())[:300])
    return Verdict("")


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

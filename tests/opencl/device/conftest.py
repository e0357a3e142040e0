"""A trial whose child process is replaced: its driver fails as a test says."""

from __future__ import annotations

import json
from contextlib import suppress
from types import SimpleNamespace

import pytest

from tensorplug.errors import BackendUnavailableError
from tensorplug_opencl.machine import cache_folder, settings
from tensorplug_opencl.trial import parent

# A child process whose driver gets stages wrong, dies in them, or never ends: the environment
# chooses which, and it replaces the real child.
CHILD = """
import json, os, signal, sys, time
FIRST = ["together", "floats", "binaries", "long loops", "shared memory"]
asked = json.loads(sys.stdin.readline())
told = json.loads(os.environ["STAGES"])
with open(os.environ["RUNS"], "a") as runs:
    runs.write(json.dumps(asked) + "\\n")
for name, what in sorted(told.items(), key=lambda item: item[0] != "together"):
    if name in asked["passed"] or name in asked["failed"] or (name in FIRST) == asked["rest"]:
        continue
    print(json.dumps({"begin": name}), flush=True)
    if what in ("SIGSEGV", "SIGKILL", "SIGTERM"):
        os.kill(os.getpid(), getattr(signal, what))
    if what.startswith("fault: "):
        print(json.dumps({"fault": what.removeprefix("fault: ")}), flush=True)
        sys.exit()
    if what == "hangs":
        time.sleep(600)
    if what == "exits":
        sys.exit("no such thing")
    print(json.dumps({"end": name, "wrong": what}), flush=True)
print(json.dumps({"done": True}))
"""
ALL = (
    "floats",
    "binaries",
    "float64",
    "float16",
    "64-bit atomics",
    "vectors of 64 bytes",
)
MORE = ("vectors of 32 bytes", "vectors of 16 bytes", "long loops", "shared memory")


def fake(name="Big GPU"):
    platform = SimpleNamespace(name="Vendor", version="OpenCL 3.0")
    return SimpleNamespace(
        name=name, vendor="Acme", version="OpenCL 3.0", driver_version="1.2", platform=platform
    )


@pytest.fixture
def folder(monkeypatch, tmp_path, target):
    monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
    monkeypatch.delenv(settings.TRIAL, raising=False)
    monkeypatch.setenv(cache_folder.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(parent, "_known", {})
    monkeypatch.setattr(parent, "_children", {})
    monkeypatch.setattr(parent, "_forgot", False)
    yield tmp_path / "cache"
    for one in parent._children.values():
        one.end()


@pytest.fixture
def child(monkeypatch, tmp_path, folder):
    """Return a function that sets a child's findings and returns the children's requests."""
    monkeypatch.setattr(parent, "_CODE", CHILD)
    monkeypatch.setattr(parent, "SECONDS", 20.0)
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))

    def finds(**told):
        names = {**dict.fromkeys(ALL, ""), **{key.replace("_", " "): told[key] for key in told}}
        monkeypatch.setenv("STAGES", json.dumps(names))
        (tmp_path / "runs").write_text("")
        return lambda: [json.loads(line) for line in (tmp_path / "runs").read_text().splitlines()]

    return finds


def judge(device):
    """Return the verdict after all stages."""
    (first,) = parent.find_verdicts([device])
    assert first.finished == (not first.usable)
    if first.usable:
        with suppress(BackendUnavailableError):
            parent.finish(device)
    (last,) = parent.find_verdicts([device])
    assert last.finished
    return last

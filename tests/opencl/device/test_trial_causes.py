"""A trial that something else than the driver ends is no verdict, and is not remembered."""

from __future__ import annotations

import re

import pytest
from tests.opencl.device.conftest import fake, judge

from tensorplug.errors import BackendUnavailableError
from tensorplug_opencl import device
from tensorplug_opencl.machine import driver_caches
from tensorplug_opencl.trial import parent, process


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        ("SIGKILL", "the process died of SIGKILL"),  # as for lack of memory
        ("SIGTERM", "the process died of SIGTERM"),
        ("fault: OSError: [Errno 28] No space left on device", "OSError: [Errno 28]"),
    ],
)
@pytest.mark.parametrize("stage", ["floats", "float64"])
def test_what_something_else_ended_is_not_remembered(child, folder, stage, what, cause):
    child(**{stage: what})
    (first,) = parent.find_verdicts([fake()])
    if stage == "float64":  # in the rest of the trial
        assert first.usable
        with pytest.raises(BackendUnavailableError, match=re.escape(cause)):
            parent.finish(fake())
    else:
        assert (first.state, first.usable) == ("undecided", False)
        assert first.findings[0].startswith(cause)
        assert not list(folder.glob("*.verdict.json"))
    child()  # the cause is gone
    assert judge(fake()).state == "sound"


def raising(error):
    def start(_code):
        raise error

    return start


@pytest.mark.parametrize(
    ("start", "cause"),
    [
        (BlockingIOError(11, "Resource temporarily unavailable"), "no process can be started: "),
        (RuntimeError("can't start new thread"), "no process can be started: can't start"),
        (None, "exit status 1: no module named tensorplug_opencl"),
    ],
)
def test_a_child_that_does_not_start_proves_nothing(monkeypatch, child, folder, start, cause):
    with monkeypatch.context() as patch:
        code = "raise SystemExit('no module named tensorplug_opencl')"
        patch.setattr(parent, "_CODE", code)
        if start is not None:
            patch.setattr(process, "Child", raising(start))
        parent.begin()
        (actual,) = parent.find_verdicts([fake()])
        assert (actual.state, actual.usable) == ("undecided", False)
        assert cause in actual.findings[0]
        refused = device.Found(fake(), actual).refused
        assert "not remembered" in refused
        assert cause in refused
    assert not list(folder.glob("*.verdict.json"))
    child()
    assert judge(fake()).state == "sound"


@pytest.mark.parametrize(
    ("told", "state"),
    [({"floats": "BUILD_PROGRAM_FAILURE"}, "undecided"), ({"long_loops": "wrong"}, "limited")],
)
def test_nothing_is_blamed_on_a_driver_whose_cache_is_blocked(
    monkeypatch, child, folder, tmp_path, told, state
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "file" / "kcache"))
    pocl = fake()
    pocl.platform.name = driver_caches.POCL
    child(**told)
    (actual,) = parent.find_verdicts([pocl])
    assert actual.state == state
    assert not list(folder.glob("*.verdict.json"))
    if state == "undecided":
        assert f"{tmp_path}/file/kcache: Not a directory. Set POCL_CACHE_DIR" in actual.findings[0]


FAILING = """
import pyopencl as cl
from tensorplug_opencl.trial import child

def said(name):
    return cl.Error(cl._cl._ErrorRecord("f", getattr(cl.status_code, name), ""))

def fail(*arguments):
    raise {error}

{place} = fail
child.main()
"""


@pytest.mark.parametrize(
    ("place", "error", "state", "finding"),
    [
        ("child.loader.list_platforms", "FileNotFoundError('/x')", "undecided", "FileNotFoundE"),
        ("child._Tried._build", "PermissionError('/x')", "undecided", "PermissionError: /x"),
        ("child._Tried._build", "MemoryError()", "undecided", "MemoryError"),
        ("child._Tried._build", "said('OUT_OF_HOST_MEMORY')", "undecided", "f failed: OUT"),
        ("cl.Context", "said('DEVICE_NOT_AVAILABLE')", "undecided", "f failed: DEVICE_NOT"),
        ("cl.Context", "said('INVALID_VALUE')", "unsound", "opening the device: f failed"),
        ("child._Tried._build", "said('BUILD_PROGRAM_FAILURE')", "unsound", "floats in v"),
    ],
)
def test_whose_fault_it_is(monkeypatch, folder, target, place, error, state, finding):
    monkeypatch.setattr(parent, "_CODE", FAILING.format(place=place, error=error))
    (actual,) = parent.find_verdicts([target])
    assert (actual.state, actual.findings[0][: len(finding)]) == (state, finding)
    assert len(list(folder.glob("*.verdict.json"))) == (state == "unsound")

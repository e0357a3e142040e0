"""The seam: frames, the default engine, and which engine answers."""

from __future__ import annotations

import contextvars
import subprocess
import sys

import pytest

import tensorplug as tp
from tensorplug import dispatch as seam

from . import engines
from .engines import using


def test_frames_differ_in_what_is_said(engine):
    frame = seam.current()
    marks = {"recording": object(), "scope": object(), "device": engine.open("other")}
    assert not frame.watched
    for name, value in marks.items():
        changed = frame.replace(**{name: value})
        assert getattr(changed, name) is value
        others = [each for each in marks if each != name]
        assert [getattr(changed, each) for each in others] == [None] * len(others)
        assert changed.watched is (name != "device")
        assert changed.replace(**{name: None}).watched is False


def test_a_frame_is_left_after_an_error(engine):
    outer = seam.current()
    inner = outer.replace(scope=object())
    with pytest.raises(ZeroDivisionError), seam.entered(inner):
        _ = 1 / (seam.current() is not inner)
    assert seam.current() is outer
    assert outer.engine is engine


def test_a_copied_context_keeps_its_engine():
    first, second = engines.make(("memory",)), engines.make(("other",))
    with using(first):
        context = contextvars.copy_context()
    with using(second):
        assert context.run(tp.get_backend) == "memory"
        assert tp.get_backend() == "other"


def test_frames_follow_the_active_device(engine):
    inner = seam.current().replace(scope=None)
    x = tp.asarray([1.0])
    tp.add(x, x)
    assert inner.plans is engine.device.plans
    tp.set_backend("other")
    assert inner.plans is engine.device.plans is engine.open("other").plans
    engine.close("other")
    assert inner.plans == {}


def test_chained_marks_a_function():
    def op(x): ...

    assert seam.chained(op) is op
    assert op.__tensorplug_chained__ is True


def run_alone(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_loads_no_plugin_machinery_and_builds_nothing():
    code = """
import sys, tensorplug
from tensorplug import dispatch
unwanted = {"pluggy", "importlib_metadata", "tensorplug_cpu", "tensorplug_opencl", "asyncio"}
print(sorted(unwanted & set(sys.modules)), dispatch.ROOT.engine)
"""
    assert run_alone(code) == "[] None"


def test_the_first_ops_of_many_threads_share_one_engine():
    code = """
import threading, tensorplug as tp
from tensorplug import dispatch
built, build = [], dispatch._Default.build
def slow():
    built.append(1)
    threading.Event().wait(0.05)
    return build()
dispatch.set_default_engine(slow)
found, barrier = [], threading.Barrier(10)
def work():
    barrier.wait()
    found.append(tp.add(tp.asarray(1), 1)._placement.device)
threads = [threading.Thread(target=work) for _ in range(10)]
[each.start() for each in threads]; [each.join() for each in threads]
print(len(built), len(found), len(set(map(id, found))))
"""
    assert run_alone(code) == "1 10 1"


def test_the_seam_alone_has_no_engine():
    code = """
from tensorplug import dispatch
dispatch._Default.build = None
try:
    dispatch.as_tensor(1)
except RuntimeError as error:
    print(error)
"""
    assert run_alone(code) == "tensorplug.dispatch was used without the tensorplug package"

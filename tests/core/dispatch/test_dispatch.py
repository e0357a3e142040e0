"""Dispatch: contexts, the default engine, and which engine answers."""

from __future__ import annotations

import contextvars
import subprocess
import sys

import pytest
from tests.core.support import engines
from tests.core.support.engines import using

import tensorplug as tp
from tensorplug.autodiff.recording import Recording
from tensorplug.dispatch.calls import chained, dispatch
from tensorplug.dispatch.context import current_context, engine_of, use_context
from tensorplug.ops.indexing import slicing


def test_frames_differ_in_what_is_said(engine):
    context = current_context()
    marks = {"recording": Recording(), "scope": object(), "device": engine.open("other")}
    assert not context.watched
    for name, value in marks.items():
        changed = context.replace(**{name: value})
        assert getattr(changed, name) is value
        others = [mark for mark in marks if mark != name]
        assert [getattr(changed, other) for other in others] == [None] * len(others)
        assert changed.watched is (name != "device")
        assert changed.replace(**{name: None}).watched is False


def test_a_frame_is_left_after_an_error(engine):
    outer = current_context()
    inner = outer.replace(scope=object())
    with pytest.raises(ZeroDivisionError), use_context(inner):
        _ = 1 / (current_context() is not inner)
    assert current_context() is outer
    assert outer.engine is engine


def test_a_copied_context_keeps_its_engine():
    first, second = engines.make(("memory",)), engines.make(("other",))
    with using(first):
        context = contextvars.copy_context()
    with using(second):
        assert context.run(tp.get_backend) == "memory"
        assert tp.get_backend() == "other"


def test_frames_follow_the_active_device(engine):
    inner = current_context().replace(scope=None)
    x = tp.asarray([1.0])
    tp.add(x, x)
    assert inner.plans is engine.devices.active.plans
    tp.set_backend("other")
    assert inner.plans is engine.devices.active.plans is engine.open("other").plans
    engine.devices.close("other")
    assert inner.plans == {}


def test_chained_marks_a_function():
    def op(x): ...

    assert chained(op) is op
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
from tensorplug.dispatch import calls, context
unwanted = {"pluggy", "importlib_metadata", "ml_dtypes", "asyncio"}
unwanted |= {"tensorplug_cpu", "tensorplug_opencl"}
print(sorted(unwanted & set(sys.modules)), context.ROOT.engine)
"""
    assert run_alone(code) == "[] None"


def test_the_first_ops_of_many_threads_share_one_engine():
    code = """
import threading, tensorplug as tp
from tensorplug.dispatch import calls, context
built, build = [], context._Default.build
def slow():
    built.append(1)
    threading.Event().wait(0.05)
    return build()
context.set_default_engine(slow)
found, barrier = [], threading.Barrier(10)
def work():
    barrier.wait()
    found.append(tp.add(tp.asarray(1), 1)._placement.device)
threads = [threading.Thread(target=work) for _ in range(10)]
[each.start() for each in threads]; [each.join() for each in threads]
print(len(built), len(found), len(set(map(id, found))))
"""
    assert run_alone(code) == "1 10 1"


def test_dispatch_alone_has_no_engine():
    code = """
from tensorplug.dispatch import calls, context
context._Default.build = None
try:
    calls.as_tensor(1)
except RuntimeError as error:
    print(error)
"""
    assert run_alone(code) == "tensorplug.dispatch was used without the tensorplug package"


def test_plans_serve_lists_absent_inputs_and_several_outputs_without_the_engine(monkeypatch):
    x, y = tp.asarray([[1.0, 2.0]]), tp.asarray([[3.0, 4.0]])
    image, taps, bias = tp.ones((1, 2, 2, 1)), tp.ones((1, 1, 1, 1)), tp.ones((1,))
    calls = (
        lambda: tp.concat([x, y]).tolist(),
        lambda: tp.concat((x, y, x), axis=1).tolist(),
        lambda: tp.nn.fused_conv2d(image, taps, 1, "valid", bias=bias).tolist(),
        lambda: [item.tolist() for item in tp.unstack(x, axis=1)],
        lambda: [item.tolist() for item in tp.topk(x, 1)],
    )
    first = [call() for call in calls]
    monkeypatch.setattr(type(engine_of(current_context())), "run", None)
    assert [call() for call in calls] == first


def test_a_plan_of_several_outputs_serves_nobody_who_wants_one():
    x = tp.asarray([1.0, 2.0])
    tp.unstack(x)
    with pytest.raises(tp.errors.ArgumentError, match="multiple outputs"):
        dispatch(slicing.UNPACK, x, axis=0)


def test_the_tape_sees_lists_and_parts():
    x, y = tp.asarray([1.0, 2.0]), tp.asarray([3.0, 4.0])

    def joined(x):
        first, second = tp.unstack(tp.stack((x * x, y)))
        return tp.sum(first * second)

    for _ in range(2):
        assert tp.grad(joined)(x).tolist() == [6.0, 16.0]

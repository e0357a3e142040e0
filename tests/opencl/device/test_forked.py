"""Forked children: they open devices of their own, or say that the driver does not allow it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tensorplug.errors import BackendUnavailableError
from tensorplug_opencl import device
from tensorplug_opencl.machine import loader
from tensorplug_opencl.trial import forked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

START = """
import multiprocessing, os, signal, sys, warnings
import tensorplug as tp
warnings.simplefilter("ignore", DeprecationWarning)

def opened():
    try:
        tp.set_backend("opencl")
    except tp.errors.BackendUnavailableError as error:
        assert "does not work in this forked child" in str(error), error
        return False
    return True

def computed():
    x = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
    return [(x @ x).tolist(), tp.sum(tp.ones(100_000, dtype=tp.float32)).item(), x.device]

RIGHT = [[[7.0, 10.0], [15.0, 22.0]], 100_000.0, "opencl"]

def raises(use):
    try:
        use()
    except tp.errors.BackendClosedError as error:
        return "tp.remove_backend, then tp.set_backend" in str(error)

def in_child(work):
    child = os.fork()
    if not child:
        signal.alarm(100)
        right = work()
        sys.exit(0 if right else 1)  # with all that Python does at exit
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
STORIES = {
    "before first use": """
in_child(lambda: opened() and computed() == RIGHT)
""",
    "after the devices were listed": """
tp.devices("opencl")
in_child(lambda: not opened() or computed() == RIGHT)
""",
    "after use, with live tensors": """
opened()
computed()
x = tp.asarray([1.0] * 5000)
def work():
    assert raises(lambda: tp.asarray([1.0])) and raises(x.numpy)
    tp.remove_backend("opencl")
    if not opened():
        return True
    y = tp.asarray([2.0] * 5000)
    return computed() == RIGHT and all(map(raises, (x.numpy, lambda: x + 1, lambda: y + x)))
in_child(work)
assert (x + 1).tolist() == [2.0] * 5000
""",
    "in a pool": """
opened()
computed()
def start():
    tp.remove_backend("opencl")
    opened()
def work(number):
    return tp.get_backend() != "opencl" or computed() == RIGHT
with multiprocessing.get_context("fork").Pool(2, start) as pool:
    print(0 if all(pool.map_async(work, range(4)).get(timeout=100)) else 1)
""",
}


@pytest.mark.parametrize("story", STORIES)
def test_a_child_computes_or_says_why_not(target, story):
    environment = {**os.environ, "TENSORPLUG_BACKEND": "cpu,opencl"}
    done = subprocess.run(
        [sys.executable, "-c", START + STORIES[story]],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda _: signal.pause(), "a computation did not end"),
        (lambda _: os.kill(os.getpid(), signal.SIGKILL), "a computation failed"),
        (lambda _: False, "a computation failed"),
    ],
)
def test_a_driver_that_does_not_survive_is_refused(monkeypatch, target, act, said):
    monkeypatch.setattr(forked, "SECONDS", 1.0)
    monkeypatch.setattr(forked, "_compute", act)
    monkeypatch.setattr(loader, "_asker", os.getpid() + 1)
    with pytest.raises(BackendUnavailableError, match=said) as caught:
        device.choose(None)
    assert "'spawn'" in str(caught.value)


def test_the_process_that_loaded_the_drivers_tries_nothing(monkeypatch, target):
    monkeypatch.setattr(forked, "explain_failure", None)
    assert not device.choose(None).refused

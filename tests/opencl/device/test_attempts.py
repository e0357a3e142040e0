"""Fatal attempts are remembered: a program kills only one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from tests.opencl.conftest import require_device

from tensorplug_opencl.machine import attempts, cache_folder
from tensorplug_opencl.machine.settings import TRIAL

HELD = """
import sys, time
from tensorplug_opencl.machine import attempts
with attempts.attempting("key", program="exp", step=sys.argv[1]):
    print("begun", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(monkeypatch, tmp_path):
    require_device()  # its verdict is remembered elsewhere
    monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
    monkeypatch.setenv(cache_folder.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def other_process():
    """Return a function that begins an attempt in another process."""
    begun = []

    def begin(step):
        process = subprocess.Popen(
            [sys.executable, "-c", HELD, step], stdout=subprocess.PIPE, text=True
        )
        begun.append(process)
        assert process.stdout.readline() == "begun\n"
        return process

    yield begin
    for process in begun:
        process.kill()
        process.wait()
        process.stdout.close()


def test_finished_attempts_leave_nothing(folder):
    with attempts.attempting("key", program="exp"):
        (file,) = folder.iterdir()
        assert json.loads(file.read_text()) == {"program": "exp", "process": str(os.getpid())}
    assert not list(folder.iterdir())
    assert attempts.find_fatal("key") is None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_is_not_a_crash(folder, error):
    with pytest.raises(error), attempts.attempting("key"):
        raise error
    assert not list(folder.iterdir())


def test_an_attempt_of_another_process_is_not_a_crash(folder, other_process):
    other_process("run")
    assert attempts.find_fatal("key") is None
    with attempts.attempting("key"):
        assert attempts.find_fatal("key") is None
    assert len(list(folder.iterdir())) == 1  # still the other process's


def test_an_attempt_of_a_second_thread_is_not_a_crash(folder):
    with attempts.attempting("key"):
        assert attempts.find_fatal("key") is None
        with attempts.attempting("key"):
            assert attempts.find_fatal("key") is None
    assert not list(folder.iterdir())


@pytest.mark.parametrize("step", ["build", "run"])
def test_fatal_attempts_are_known(folder, other_process, step):
    process = other_process(step)
    process.send_signal(signal.SIGKILL)
    process.wait()
    actual = attempts.find_fatal("key")
    assert actual.story == {"program": "exp", "step": step, "process": str(process.pid)}
    assert attempts.find_fatal("key") == actual  # until the user says otherwise
    attempts.forget()
    assert attempts.find_fatal("key") is None
    assert not list(folder.iterdir())


def test_forgetting_spares_running_attempts(folder, other_process):
    other_process("run")
    attempts.forget()
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff" * 9])
def test_a_file_that_says_nothing_is_a_crash_all_the_same(folder, content):
    assert cache_folder.write(folder / "key.attempt", content)
    assert attempts.find_fatal("key").story == {}


def test_without_a_cache_nothing_is_noted(monkeypatch, folder):
    monkeypatch.setenv(cache_folder.CACHE, "0")
    with attempts.attempting("key"):
        assert attempts.find_fatal("key") is None
    assert not folder.exists()


# With kernels ----------------------------------------------------------------------------------

# A driver that dies over one program: when it is built, or when it runs.
PROGRAM = """
import json, os, signal, sys, warnings
import pyopencl as cl
import tensorplug as tp
from tensorplug_opencl.programs import program
step, lethal = sys.argv[1:]
name = lethal.split()[0]
op = {"Sinh": tp.sinh, "Silu": tp.nn.silu}[name]
build, enqueue = program.build, cl.enqueue_nd_range_kernel
created, kernel_of = {}, program.Programs.kernel

def creating(self, source):
    kernel = kernel_of(self, source)
    created[kernel.int_ptr] = source
    return kernel

program.Programs.kernel = creating

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def building(built, options):
    if lethal in str(getattr(built, "_source", "")):
        die()
    build(built, options)

def running(queue, kernel, *sizes):
    if lethal in created[kernel.int_ptr]:
        die()
    return enqueue(queue, kernel, *sizes)

if step == "build":
    program.build = building
elif step == "run":
    cl.enqueue_nd_range_kernel = running
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tp.set_backend("opencl")
    a = tp.asarray([1.0, 5.0])
    for _ in range(3):
        result = op(a).tolist()
    more = op(tp.asarray([3.0, 4.0, 9.0])).tolist()
    with tp.profile() as p:
        op(a)
print(json.dumps({
    "result": [result, more],
    "how": [kernel.how for kernel in p.kernels if kernel.name == name],
    "said": [str(warning.message) for warning in caught],
    "at": [warning.filename for warning in caught],
}))
"""


def ran(step, lethal, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), step, lethal],
        env={**os.environ, "TENSORPLUG_BACKEND": "opencl", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(
    ("step", "lethal", "usual", "formula"),
    [
        pytest.param("build", "Sinh", "native", np.sinh, marks=pytest.mark.slow),
        pytest.param("run", "Sinh", "native", np.sinh, marks=pytest.mark.slow),
        ("run", "Silu", "decomposed", lambda x: x / (1 + np.exp(-x))),  # as a group
    ],
)
def test_a_kernel_that_kills_the_process_does_it_once(folder, step, lethal, usual, formula):
    # Without a trial, programs are built in the process that needs them.
    untried = {TRIAL: "0"} if step == "build" else {}
    assert ran(step, lethal, **untried).returncode == -signal.SIGKILL
    after = ran(step, lethal, **untried)
    assert after.returncode == 0, after.stderr
    told = json.loads(after.stdout)
    for actual, x in zip(told["result"], ([1.0, 5.0], [3.0, 4.0, 9.0]), strict=True):
        np.testing.assert_allclose(actual, formula(np.array(x)), rtol=1e-6)
    assert told["how"] == ["decomposed"]
    assert len(told["said"]) == 1, told["said"]
    assert f"'{lethal.split()[0]}" in told["said"][0]
    assert f"{TRIAL}=again" in told["said"][0]
    assert told["at"] == ["<string>"]
    # A driver that was mended is used again when it is asked for, and then for good.
    again = ran("never", lethal, **{TRIAL: "again"})
    assert json.loads(again.stdout)["how"] == [usual], again.stderr
    later = ran("never", lethal)
    assert json.loads(later.stdout)["how"] == [usual], later.stderr
    assert json.loads(later.stdout)["said"] == []


def test_an_interrupted_run_is_not_a_crash(folder):
    told = json.loads(ran("never", "Sinh").stdout)
    assert (told["how"], told["said"]) == (["native"], [])
    assert not list(folder.glob("*.attempt"))

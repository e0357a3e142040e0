"""Forked and spawned children: they work, or get a clear error; they never hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager

import pytest
from tests.core.support import engines
from tests.core.support.engines import using

import tensorplug as tp
from tensorplug.dispatch.locks import Lock
from tensorplug.errors import BackendClosedError, TensorplugError
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen import compiler

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

SECONDS = 30
IDLE = "define void @idle() { ret void }"


def in_child(work) -> str:
    """Return what ``work`` returns, or the error it raises, in a forked child."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is the point
        child = os.fork()
    if not child:
        try:
            signal.alarm(SECONDS)  # ends a child that hangs
            result = str(work())
        except TensorplugError as error:
            result = f"{type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001  # reported to the parent
            result = f"unexpected {type(error).__name__}: {error}"
        os.write(writer, result.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        result = lines.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the child hung or crashed"
    return result


@pytest.fixture
def engine():
    engine = engines.make(("plain", "driver", "unused"))
    engine.devices.source.offers["plain"] = {"survives_fork": True}
    engine.open("plain")
    engine.open("driver")
    with using(engine):
        yield engine


def test_plain_memory_survives(engine):
    tp.set_backend("plain")
    x = tp.asarray([1.0, 2.0])
    assert in_child(lambda: tp.grad(lambda v: tp.sum(v * v))(x).tolist()) == "[2.0, 4.0]"


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.numpy(),
        lambda x: x + 1,
        lambda _: tp.asarray([1.0]),
        lambda _: tp.set_backend("driver"),
        lambda _: tp.set_backend("driver:1"),
        lambda x: x.to("plain"),
    ],
)
def test_a_driver_does_not(engine, use):
    tp.set_backend("driver")
    x = tp.asarray([1.0])
    backend = engine.devices.source.backends["driver"]
    backend.lost = True  # a call that reaches it in the child raises another error
    said = in_child(lambda: use(x))
    backend.lost = False
    assert said.startswith("BackendClosedError")
    assert "opened by the parent process" in said
    assert "spawn" in said
    assert (x + 1).tolist() == [2.0]  # the parent is none the worse


def test_the_child_moves_to_another_backend_only_when_told(engine):
    tp.set_backend("driver")
    x = tp.asarray([1.0])

    def work():
        with pytest.raises(BackendClosedError):
            tp.asarray([1.0])
        tp.set_backend("plain")
        with pytest.raises(BackendClosedError):
            _ = x + 1
        return (tp.asarray([1.0]) + 1).tolist()

    assert in_child(work) == "[2.0]"


@pytest.mark.parametrize("name", ["driver", "driver:1"])
def test_the_child_opens_the_backend_anew_once_it_is_removed(engine, name):
    """The parent's tensors stay closed there, and the parent is none the worse."""
    engine.open("driver:1")
    tp.set_backend(name)
    x = tp.asarray([1.0])

    def work():
        tp.remove_backend(name)
        tp.set_backend(name)
        made = tp.asarray([1.0, 2.0]) + tp.asarray([3.0, 4.0])
        for use in (x.numpy, lambda: x + 1, lambda: made + x):
            with pytest.raises(BackendClosedError, match="opened by the parent process"):
                use()
        tp.remove_backend(name)  # its own, this time
        return made.device, made.tolist(), engine.devices.source.opened.count(name)

    assert in_child(work) == "('host', [4.0, 6.0], 2)"
    assert (x + 1).tolist() == [2.0]


def test_a_child_that_removes_the_active_backend_gets_another(engine):
    tp.set_backend("driver")

    def work():
        tp.remove_backend("driver")
        return tp.asarray([1.0]).device

    assert in_child(work) == "plain"


def test_a_backend_unused_in_the_parent_opens_in_the_child(engine):
    def work():
        tp.set_backend("unused")
        return (tp.asarray([1.0]) + 1).device

    assert in_child(work) == "unused"
    assert engine.devices.source.opened == ["plain", "driver"]


@contextmanager
def held_by_a_thread(lock, seconds=None):
    """Let another thread, which a forked child does not have, hold ``lock`` meanwhile."""
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait(seconds)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_lock_that_another_thread_held():
    lock = Lock()

    def work():
        with lock:
            return "open"

    with held_by_a_thread(lock):
        assert in_child(work) == "open"


def test_forking_while_another_thread_opens_a_backend(engine):
    """The engine's lock is held by the opening thread."""
    slow, started = engine.devices.source.open, threading.Event()

    def opening(name, device):
        started.set()
        time.sleep(0.5)
        return slow(name, device)

    engine.devices.source.open = opening
    tp.set_backend("plain")
    thread = threading.Thread(target=engine.open, args=("unused",))
    thread.start()
    started.wait()
    try:
        engine.devices.source.open = slow
        assert in_child(lambda: engine.open("plain:1").name) == "plain:1"
    finally:
        thread.join()


def test_forking_while_another_thread_compiles():
    """LLVM's lock is held by that thread, and fork waits for it."""
    llvm = pytest.importorskip("llvmlite.binding")
    compiler.compile_function(IDLE, "idle", [])  # LLVM is in use
    with held_by_a_thread(llvm.ffi.lib._lock, 0.5):
        assert in_child(lambda: llvm.parse_assembly(IDLE).name) == "<string>"


SIZE = 1 << 22  # elements, which the threads of cpu share


@pytest.mark.parametrize("threads", [3])
def test_forking_while_threads_compute(monkeypatch, threads):
    """The child starts its own threads, whatever those of its parent were doing."""
    monkeypatch.setattr(parallel, "thread_count", lambda: threads)
    parallel._workers.forget()
    held, done = threading.Event(), threading.Event()

    def busy():
        held.set()
        done.wait(SECONDS)

    def work():
        calls = []
        parallel.together(lambda: calls.append(threading.get_ident()))
        with tp.use_backend("cpu"):
            x = tp.ones(SIZE, dtype=tp.float32)
            total = float(tp.sum(x + x)), float(tp.sum(tp.exp(x - x)))
        return total, parallel._workers.count

    try:
        parallel._workers.submit(busy)
        held.wait()
        assert in_child(work) == f"(({2.0 * SIZE}, {1.0 * SIZE}), {threads - 1})"
    finally:
        done.set()
        monkeypatch.undo()
        parallel._workers.forget()


def test_a_generator_that_another_thread_uses():
    generator = tp.random.Generator(1)
    with held_by_a_thread(generator._lock):
        assert in_child(lambda: generator._next() is not None) == "True"


POOL = """
import multiprocessing, sys, warnings
import tensorplug as tp

def squared(values):
    x = tp.asarray(values)
    return tp.grad(lambda v: tp.sum(v * v * v))(x).numpy().tolist(), tp.get_backend()

if __name__ == "__main__":
    assert tp.get_backend() == "cpu"
    warnings.simplefilter("ignore", DeprecationWarning)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map_async(squared, [[1.0, 2.0], [3.0]]).get(timeout=100))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_of_processes(method, tmp_path):
    """The default engine, with all installed backends, in forked and spawned children."""
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    environment = {**os.environ, "TENSORPLUG_BACKEND": "cpu"}
    done = subprocess.run(
        [sys.executable, str(script), method],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "[([3.0, 12.0], 'cpu'), ([27.0], 'cpu')]", done.stderr

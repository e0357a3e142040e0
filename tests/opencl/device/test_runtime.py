from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from tensorplug.dispatch.context import use_context
from tensorplug.ops import creation, reduction
from tensorplug.ops.elementwise import arithmetic
from tensorplug_opencl.programs import program

ADD_CONSTANT = """
kernel void run(global const int *x, const long x_at, global int *y, const long y_at,
                const int n, const int constant_term) {
  const int i = get_global_id(0);
  if (i < n) y[y_at + i] = x[x_at + i] + constant_term;
}"""


def test_a_program_is_built_once(backend):
    runtime = backend.runtime
    for constant in (1, 2):
        launch = runtime.launch(ADD_CONSTANT, 2, [np.int32(4), np.int32(constant)], 4)
        x = backend.from_host(np.arange(4, dtype=np.int32))
        y = runtime.empty(x.type)
        launch(x, y)
        np.testing.assert_array_equal(backend.to_host(y), np.arange(4) + constant)
    assert backend.memory()["programs"] == 1


def test_the_last_programs_are_kept(backend, monkeypatch):
    monkeypatch.setattr(program, "MOST_KEPT", 4)
    runtime = backend.runtime
    x = backend.from_host(np.arange(4, dtype=np.int32))
    launches = []
    for number in range(7):
        source = ADD_CONSTANT.replace("+ constant_term", f"+ constant_term * {number}")
        launches.append(runtime.launch(source, 2, [np.int32(4), np.int32(10)], 4))
        assert backend.memory()["programs"] == min(number + 1, 4)
    for number, launch in enumerate(launches):
        for _ in range(2):
            y = runtime.empty(x.type)
            launch(x, y)
            np.testing.assert_array_equal(backend.to_host(y), np.arange(4) + 10 * number)


def test_a_launch_follows_the_offset_of_views(backend):
    runtime = backend.runtime
    launch = runtime.launch(ADD_CONSTANT, 2, [np.int32(2), np.int32(10)], 2)
    x = backend.from_host(np.arange(6, dtype=np.int32))
    y = backend.from_host(np.zeros(6, np.int32))
    for start in (0, 4, 2, 0):
        launch(x.view((2,), start), y.view((2,), start))
    np.testing.assert_array_equal(backend.to_host(y), [10, 11, 12, 13, 14, 15])


@pytest.mark.parametrize("items", [1, 127, 128, 129, 1000])
@pytest.mark.parametrize("heavy", [False, True])
def test_any_number_of_items(backend, items, heavy):
    launch = backend.runtime.launch(
        ADD_CONSTANT, 2, [np.int32(items), np.int32(1)], items, heavy=heavy
    )
    x = backend.from_host(np.zeros(items + 300, np.int32))
    y = backend.from_host(np.zeros(items + 300, np.int32))
    launch(x, y)
    np.testing.assert_array_equal(backend.to_host(y), np.arange(items + 300) < items)


@pytest.fixture
def eager_switching():
    """Let threads take turns as often as they can, so that races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_switching")
def test_threads_share_one_launch(backend):
    """Another thread must not come between setting arguments and enqueueing."""
    launch = backend.runtime.launch(ADD_CONSTANT, 2, [np.int32(3), np.int32(0)], 3)
    wrong = []

    def work(number):
        x = backend.from_host(np.full(9, number, np.int32))
        results = [backend.from_host(np.zeros(9, np.int32)) for _ in range(300)]
        for result in results:
            launch(x.view((3,), number % 3), result)
        actual = [backend.to_host(buffer)[:3].tolist() for buffer in results]
        wrong.extend(numbers for numbers in actual if numbers != [number] * 3)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(("size", "times"), [(257, 100), (2**18 + 256, 20)])
@pytest.mark.usefixtures("eager_switching")
def test_threads_share_one_plan(context, size, times):
    """Every thread runs the same cached plans on its own numbers; long sums have two launches."""
    wrong = []

    def work(number):
        with use_context(context):
            x = creation.asarray(np.full(size, number, np.float32))
            for _ in range(times):
                product = arithmetic.multiply(arithmetic.add(x, x), x)
                actual = reduction.sum(product).numpy()
                if actual != 2 * number * number * size:
                    wrong.append((number, actual))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.usefixtures("context")  # skips where there is no device
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_gets_an_error_and_does_not_hang():
    code = textwrap.dedent("""
        import os, sys, warnings
        import numpy as np
        from tensorplug.errors import DeviceLostError
        from tensorplug_opencl.backend import OpenCLBackend

        backend = OpenCLBackend.open(None)
        x = backend.from_host(np.zeros(3))
        actions = [
            lambda: backend.from_host(np.zeros(3)),
            lambda: backend.to_host(x),
            lambda: backend.runtime.fill(x, np.zeros(())),
            lambda: backend.synchronize(),
            lambda: backend.runtime.empty(x.type),
            lambda: backend.runtime.launch("kernel void run() {}", 0, [], 1),
        ]
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is the point
        child = os.fork()
        if not child:
            refused = 0
            for action in actions:
                try:
                    action()
                except DeviceLostError as error:
                    refused += "forked child" in str(error)
            backend.close()
            os._exit(refused)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert not backend.to_host(x).any()
        sys.exit(status != len(actions))
    """)
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        assert process.wait(timeout=60) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

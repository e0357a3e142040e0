"""Faults injected where this package meets pyopencl."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pyopencl as cl
import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import BackendMemoryError, DeviceLostError
from tensorplug.testing import isolated_engine
from tensorplug_opencl import faults
from tensorplug_opencl.faults import BuildError

CODE = cl.status_code
MEMORY = [
    CODE.MEM_OBJECT_ALLOCATION_FAILURE,
    CODE.OUT_OF_RESOURCES,
    CODE.OUT_OF_HOST_MEMORY,
    CODE.INVALID_BUFFER_SIZE,
]
LOST = [
    CODE.DEVICE_NOT_AVAILABLE,
    CODE.INVALID_COMMAND_QUEUE,
    CODE.INVALID_CONTEXT,
    CODE.INVALID_DEVICE,
    faults.NVIDIA_FAULT,
]
ADD = """// add one
kernel void run(global const float *x, const long x_at, global float *y, const long y_at) {
  const size_t i = get_global_id(0);
  if (i < 3) y[y_at + i] = x[x_at + i] + 1;
}"""


def fault(code):
    return cl.RuntimeError(cl._cl._ErrorRecord("clSomething", code, ""))


class Failing:
    """Raises ``code`` for the first ``times`` calls, then does what ``real`` does."""

    def __init__(self, code, times, real=None):
        self.code, self.times, self.real, self.calls = code, times, real, 0

    def __call__(self, *args, **options):
        self.calls += 1
        if self.calls <= self.times:
            raise fault(self.code)
        return self.real(*args, **options)


class Pool:
    """A memory pool whose ``allocate`` fails; everything else is the real pool's."""

    def __init__(self, real, code, times):
        self.real, self.freed = real, 0
        self.allocate = Failing(code, times, real.allocate)

    def free_held(self):
        self.freed += 1
        self.real.free_held()

    def __getattr__(self, name):
        return getattr(self.real, name)


@pytest.fixture
def numbers(backend):
    return backend.from_host(np.array([1, 2, 3], np.float32))


@pytest.mark.parametrize("code", MEMORY)
def test_a_failed_allocation_is_tried_again_with_the_pool_emptied(backend, code):
    spare = backend.from_host(np.zeros(1000))
    del spare
    backend.runtime.memory.pool = pool = Pool(backend.runtime.memory.pool, code, 1)
    buffer = backend.from_host(np.arange(3))
    np.testing.assert_array_equal(backend.to_host(buffer), [0, 1, 2])
    assert (pool.allocate.calls, pool.freed, pool.held_blocks) == (2, 1, 0)


@pytest.mark.parametrize("code", MEMORY)
def test_out_of_memory(backend, numbers, code):
    backend.runtime.memory.pool = pool = Pool(backend.runtime.memory.pool, code, 9)
    with pytest.raises(BackendMemoryError, match=r"no room for 80,000 bytes: tensors hold \d"):
        backend.from_host(np.zeros(10_000))
    assert pool.allocate.calls == 2
    assert backend.explain_loss() == ""
    backend.runtime.memory.pool = pool.real
    np.testing.assert_array_equal(backend.to_host(numbers), [1, 2, 3])  # and life goes on


def test_a_request_beyond_the_device_is_refused_by_the_driver_itself(backend):
    room = backend.runtime.device.global_mem_size
    with pytest.raises(BackendMemoryError, match="no room for"):
        backend.runtime.empty(TensorType(dt.uint8, (4 * room,)))


@pytest.mark.parametrize("code", LOST)
def test_a_lost_device_while_allocating(backend, code):
    backend.runtime.memory.pool = pool = Pool(backend.runtime.memory.pool, code, 9)
    with pytest.raises(DeviceLostError, match="is lost"):
        backend.from_host(np.zeros(3))
    assert pool.allocate.calls == 1


TRANSFERS = {
    "read": ("enqueue_copy", lambda runtime, x: runtime.read(x)),
    "write": ("enqueue_copy", lambda runtime, x: runtime.write(np.zeros(3, np.float32), x)),
    "fill": ("enqueue_fill_buffer", lambda runtime, x: runtime.fill(x, np.float32(0))),
}


@pytest.mark.parametrize("code", LOST)
@pytest.mark.parametrize("what", TRANSFERS)
def test_a_lost_device_in_a_transfer(monkeypatch, backend, numbers, what, code):
    function, transfer = TRANSFERS[what]
    with monkeypatch.context() as patch:
        patch.setattr(cl, function, Failing(code, 9))
        with pytest.raises(DeviceLostError, match="all tensors stored there") as caught:
            transfer(backend.runtime, numbers)
    assert backend.device in str(caught.value)
    assert isinstance(caught.value.__cause__, cl.Error)
    assert backend.explain_loss().startswith(
        "copying" if function == "enqueue_copy" else "filling"
    )


def test_a_lost_device_opens_anew_by_set_backend_alone(monkeypatch):
    with isolated_engine() as engine:
        tp.set_backend("opencl")
        x, first = tp.asarray([1.0, 2.0]) + 1, engine.open("opencl").backend
        with monkeypatch.context() as patch:
            patch.setattr(cl, "enqueue_nd_range_kernel", Failing(CODE.DEVICE_NOT_AVAILABLE, 9))
            with pytest.raises(DeviceLostError, match=r"tp\.set_backend opens it anew"):
                _ = x + 1
        cause = first.explain_loss()
        assert "running 'Add'" in cause
        assert "DEVICE_NOT_AVAILABLE" in cause
        tp.set_backend("opencl")
        assert engine.open("opencl").backend is not first
        assert (x + 1).tolist() == [3.0, 4.0]  # here, it could be read back


class Queue:
    def __init__(self, code):
        self.finish = Failing(code, 1, lambda: None)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (CODE.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, DeviceLostError),
        (CODE.OUT_OF_RESOURCES, BackendMemoryError),
    ],
)
def test_synchronize_raises_what_became_of_the_work(monkeypatch, backend, code, expected):
    with monkeypatch.context() as patch:
        patch.setattr(backend.runtime, "queue", Queue(code))
        with pytest.raises(expected):
            backend.synchronize()


def launched(backend, numbers):
    launch = backend.runtime.launch(ADD, 2, [], 3)
    result = backend.runtime.empty(numbers.type)
    launch(numbers, result)
    return backend.to_host(result)


@pytest.mark.parametrize("code", MEMORY)
def test_a_launch_short_of_memory_is_tried_again(monkeypatch, backend, numbers, code):
    failing = Failing(code, 1, cl.enqueue_nd_range_kernel)
    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", failing)
    np.testing.assert_array_equal(launched(backend, numbers), [2, 3, 4])
    assert failing.calls == 2


@pytest.mark.parametrize(
    ("code", "expected", "calls"),
    [(code, BackendMemoryError, 2) for code in MEMORY if code != CODE.OUT_OF_RESOURCES]
    + [(CODE.OUT_OF_RESOURCES, BackendMemoryError, 2 + 7)]  # with ever smaller groups: 64 to 1
    + [(code, DeviceLostError, 1) for code in LOST],
)
def test_a_launch_that_fails(monkeypatch, backend, numbers, code, expected, calls):
    failing = Failing(code, 9)
    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", failing)
    with pytest.raises(expected, match="running 'add one'"):
        launched(backend, numbers)
    assert failing.calls == calls


def test_a_fault_of_our_own_keeps_its_error_with_a_note(monkeypatch, backend, numbers):
    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", Failing(CODE.INVALID_WORK_GROUP_SIZE, 9))
    with pytest.raises(cl.Error, match="INVALID_WORK_GROUP_SIZE") as caught:
        launched(backend, numbers)
    assert "while running 'add one'" in caught.value.__notes__[0]


def test_a_program_that_does_not_build(backend):
    with pytest.raises(BuildError, match="refused program 'my kernel'") as caught:
        backend.runtime.launch("// my kernel\nkernel void run( {", 0, [], 1)
    assert "error" in str(caught.value)
    assert backend.memory()["programs"] == 0


CHATTY = "// chatty\n#warning this is said\nkernel void run() {}"


@pytest.mark.parametrize(("asked", "said"), [(None, 0), ("1", 1)])
def test_a_log_is_shown_to_those_who_ask_for_it(monkeypatch, backend, asked, said):
    """Some drivers write one for every program; here the test removes the option -w."""
    monkeypatch.setattr(backend.runtime.programs, "_options", ["-cl-std=CL1.2"])
    monkeypatch.delenv("PYOPENCL_COMPILER_OUTPUT", raising=False)
    if asked:
        monkeypatch.setenv("PYOPENCL_COMPILER_OUTPUT", asked)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        backend.runtime.launch(CHATTY, 0, [], 1)
    assert len(caught) == said
    assert all("this is said" in str(warning.message) for warning in caught)


def test_a_long_build_log_is_trimmed():
    log = "\n".join(f"line {number}" for number in range(100))
    error = cl.RuntimeError(cl._cl._ErrorRecord("clBuildProgram", CODE.BUILD_PROGRAM_FAILURE, log))
    message = str(faults.explain_build_failure(error, "device", "kernel"))
    assert "line 5" in message
    assert "line 50" not in message
    assert "more lines" in message
    assert len(message.splitlines()) == faults.LOG_LINES + 2


@pytest.mark.parametrize(
    ("code", "expected"), [(LOST[0], DeviceLostError), (MEMORY[0], BackendMemoryError)]
)
def test_building_and_opening_translate_too(monkeypatch, backend, code, expected):
    with monkeypatch.context() as patch:
        patch.setattr(cl, "Program", Failing(code, 9))
        with pytest.raises(expected, match=r"(building|loading) a program"):
            backend.runtime.launch(ADD, 2, [], 3)
    with monkeypatch.context() as patch:
        patch.setattr(cl, "Context", Failing(code, 9))
        with pytest.raises(expected, match="opening the device"):
            type(backend)(backend.runtime.device)


def test_closing_frees_the_pool(backend):
    backend.from_host(np.zeros(1000))
    gc.collect()
    assert backend.memory()["held_blocks"] > 0
    backend.close()
    assert backend.memory()["held_blocks"] == 0

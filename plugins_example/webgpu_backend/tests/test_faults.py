"""What goes wrong on the device becomes an error of ours, with what to do."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import wgpu
from wgpu.backends.wgpu_native import GPUAdapter
from wgpu.backends.wgpu_native._ffi import ffi, lib

import tensorplug as tp
from tensorplug.testing import isolated_engine
from tensorplug_webgpu import faults, runtime

SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
LATE = """
import threading
import time
import numpy as np
import wgpu
import tensorplug as tp

tp.set_backend("webgpu")
x = tp.asarray(np.arange(4, dtype=np.float32)) + 1
device = tp.find_backend("webgpu").runtime._device
module = device.create_shader_module(code='''
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn run() {
  var s = y[1];
  for (var i = 0u; i < y[0]; i++) { for (var j = 0u; j < y[0]; j++) {
    for (var k = 0u; k < y[0]; k++) { s = s * 1664525u + 1013904223u; } } }
  y[1] = s;
}''')
line = device.create_compute_pipeline(
    layout="auto", compute={"module": module, "entry_point": "run"}
)
numbers = np.array([2000, 1], np.uint32)
y = device.create_buffer_with_data(data=numbers, usage=wgpu.BufferUsage.STORAGE)
entries = [{"binding": 0, "resource": {"buffer": y, "offset": 0, "size": 8}}]
bound = device.create_bind_group(layout=line.get_bind_group_layout(0), entries=entries)
encoder = device.create_command_encoder()
steps = encoder.begin_compute_pass()
steps.set_pipeline(line)
steps.set_bind_group(0, bound)
steps.dispatch_workgroups(1)
steps.end()
device.queue.submit([encoder.finish()])
guard = tp.find_backend("webgpu").runtime.guard
guard._limit = 2.0


def read(y):
    try:
        y().numpy()
    except tp.errors.DeviceLostError as error:
        print(error, flush=True)


first = threading.Thread(target=read, args=(lambda: x,))
first.start()
while guard._pending is None:
    time.sleep(0.01)
read(lambda: x * 3)  # another thread's submission meanwhile would wait without a limit
first.join()
read(lambda: x)  # later uses do not ask the device again
tp.set_backend("webgpu")
print((tp.asarray(np.arange(4, dtype=np.float32)) * 2).tolist())
"""


@pytest.fixture
def guard(backend):
    return backend.runtime.guard


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (wgpu.GPUOutOfMemoryError("Out of memory"), tp.errors.BackendMemoryError),
        (wgpu.GPUValidationError("Not enough memory left."), tp.errors.BackendMemoryError),
        (wgpu.GPUValidationError("another"), faults.UsageError),
    ],
)
def test_errors_are_translated(error, expected, guard):
    with pytest.raises(expected) as caught, guard.using("an upload"):
        raise error
    assert guard.name in str(caught.value)
    assert "an upload" in str(caught.value)


def test_shader_that_does_not_compile_is_named_with_its_line(backend):
    runtime, wrong = backend.runtime, "fn wrong() -> f32 {\n  return 1u;\n}"
    with pytest.raises(faults.ShaderError, match=r"(?s)'softmax'.*return 1u;"):
        runtime._build(SimpleNamespace(name="softmax", arrays=()), wrong)


def test_compiling_has_a_limit_and_another_device_opens(backend):
    """Compilers that write each function where it is called write 2^14 of them."""
    if "llvmpipe" not in backend.device:
        pytest.skip("needs a compiler that takes a second for it, and little memory")
    twice = "fn f{}(x: u32) -> u32 {{ return f{}(f{}(x) ^ x); }}\n"
    text = "fn f0(x: u32) -> u32 { return x * 5u; }\n" + "".join(
        twice.format(at, at - 1, at - 1) for at in range(1, 15)
    )
    text += "@compute @workgroup_size(1) fn run(@builtin(workgroup_id) at: vec3<u32>) {\n"
    text += "  y[0] = f14(at.x);\n}"
    with isolated_engine() as engine:
        tp.set_backend("webgpu")
        runtime = engine.open("webgpu").backend.runtime
        x = tp.asarray(np.arange(4, dtype=np.float32))
        runtime.guard._limit = 0.1
        kernel = SimpleNamespace(name="slow", arrays=[SimpleNamespace(written=True)])
        begin = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
        for use in (lambda: runtime._build(kernel, begin + text), x.numpy):
            with pytest.raises(tp.errors.DeviceTimeoutError, match="did not end compiling 'slow'"):
                use()
        with pytest.warns(tp.errors.BackendWarning, match="could not be read back"):
            tp.set_backend("webgpu")
        assert (tp.asarray(np.arange(4, dtype=np.float32)) * 3).tolist() == [0, 3, 6, 9]


def test_a_device_that_does_not_open_says_why(monkeypatch):
    def refuse(_adapter, **_wanted):
        raise RuntimeError("Request device failed (3):\n  Not enough memory left.")

    monkeypatch.setattr(GPUAdapter, "request_device_sync", refuse)
    with (
        isolated_engine(),
        pytest.raises(
            tp.errors.BackendUnavailableError, match=r"does not open: .* Not enough memory left"
        ),
    ):
        tp.set_backend("webgpu")


def text_of(words):
    kept = ffi.new("char []", words.encode())
    view = ffi.new("WGPUStringView *")
    view.data, view.length = kept, len(words)
    return view[0], kept


def test_what_webgpu_reports_later_is_an_error_of_the_next_use(backend, caplog):
    """wgpu-py logs it: no call is under way that could raise it."""
    runtime = backend.runtime
    words, _kept = text_of("Buffer is too small")
    report = runtime._device._uncaptured_error_callback
    with (
        caplog.at_level(logging.ERROR, "wgpu"),
        pytest.raises(faults.UsageError, match="said, during a test or before: Buffer is too"),
        runtime.guard.using("a test"),
    ):
        report(ffi.NULL, lib.WGPUErrorType_Validation, words, ffi.NULL, ffi.NULL)
    assert not caplog.records
    with runtime.guard.using("a test"):  # once
        pass
    report(ffi.NULL, lib.WGPUErrorType_Validation, words, ffi.NULL, ffi.NULL)
    assert "Buffer is too small" in caplog.text  # of another user of wgpu


def lose_by_destroying(runtime):
    runtime._device.destroy()


def lose_by_report(runtime):
    words, _kept = text_of("it was unplugged")
    with pytest.raises(tp.errors.DeviceLostError), runtime.guard.using("a test"):
        runtime._device._device_lost_callback(
            ffi.NULL, lib.WGPUDeviceLostReason_Unknown, words, ffi.NULL, ffi.NULL
        )


@pytest.mark.parametrize(
    ("lose", "cause"), [(lose_by_destroying, "is lost"), (lose_by_report, "it was unplugged")]
)
def test_tensors_of_a_lost_device_say_so_and_another_opens(lose, cause):
    with isolated_engine() as engine:
        tp.set_backend("webgpu")
        x = tp.asarray(np.arange(4, dtype=np.float32)) + 1
        lose(engine.open("webgpu").backend.runtime)
        for use in (x.numpy, lambda: tp.asarray(np.ones(8, np.float32))):
            with pytest.raises(tp.errors.DeviceLostError, match=f"is lost, and with it.*{cause}"):
                use()
        with pytest.warns(tp.errors.BackendWarning, match="could not be read back"):
            tp.set_backend("webgpu")
        again = tp.asarray(np.arange(4, dtype=np.float32)) + 1
        assert again.numpy().tolist() == [1, 2, 3, 4]
        with pytest.raises(tp.errors.BackendClosedError, match=f"was lost.*{cause}"):
            x.numpy()


@pytest.mark.skipif(not SWIFTSHADER.exists(), reason="needs a driver without a limit of steps")
def test_waiting_has_a_limit_and_another_device_opens():
    environment = {
        **os.environ,
        "VK_DRIVER_FILES": str(SWIFTSHADER),
        "TENSORPLUG_FALLBACK": "error",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LATE],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    *errors, result = done.stdout.splitlines()
    assert len(errors) == 3
    for error in errors:
        assert "did not end a download of float32[4]" in error
        assert faults.TIMEOUT in error
    assert result == "[0.0, 2.0, 4.0, 6.0]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_child_says_that_it_cannot_use_webgpu():
    x = tp.asarray(np.arange(4, dtype=np.float32)) + 1
    x.numpy()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        lines = []
        try:
            for use in (
                x.numpy,
                lambda: tp.remove_backend("webgpu"),
                lambda: tp.set_backend("webgpu"),
            ):
                try:
                    use()
                except tp.errors.TensorplugError as error:
                    lines.append(f"{type(error).__name__}: {error}")
        finally:
            os.write(writer, "\n".join(lines).encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        closed, refused = told.read().splitlines()
    assert os.waitpid(child, 0)[1] == 0
    assert closed.startswith("BackendClosedError")
    assert refused.startswith("BackendUnavailableError")
    assert "forked child" in refused
    assert x.tolist() == [1, 2, 3, 4]


def test_compiled_shaders_are_bounded(monkeypatch):
    monkeypatch.setattr(runtime, "MOST_KEPT", 3)
    with isolated_engine("webgpu") as engine:
        found = engine.open("webgpu").backend.runtime
        for scale in range(2, 9):
            x = np.arange(scale, dtype=np.float32)
            for function in (tp.exp, tp.floor, tp.negative, tp.abs, tp.sqrt):
                expected = {"exp": np.exp(x)}.get(function.__name__)
                result = function(tp.asarray(x)).numpy()
                if expected is not None:
                    np.testing.assert_allclose(result, expected, rtol=1e-6)
        assert len(found._pipelines) == len(found._texts) == 3

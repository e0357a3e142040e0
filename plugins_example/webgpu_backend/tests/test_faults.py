"""What goes wrong on the device becomes an error of ours, with what to do."""

from __future__ import annotations

import numpy as np
import pytest
import wgpu

import tensorplug as tp
from tensorplug.testing import isolated_engine
from tensorplug_webgpu import faults


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (wgpu.GPUValidationError("Parent device is lost"), tp.errors.DeviceLostError),
        (wgpu.GPUOutOfMemoryError("Out of memory"), tp.errors.BackendMemoryError),
        (wgpu.GPUValidationError("another"), wgpu.GPUValidationError),
    ],
)
def test_errors_are_translated(error, expected):
    with pytest.raises(expected) as caught, faults.translated("the device", "an upload"):
        raise error
    text = "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "the device" in text
    assert "an upload" in text


def test_shader_that_does_not_compile_is_named_with_its_line(backend):
    runtime = backend.runtime
    wrong = "fn wrong() -> f32 {\n  return 1u;\n}"
    with pytest.raises(faults.ShaderError, match=r"(?s)'softmax'.*return 1u;"):
        faults.compile_shader(runtime._device, runtime.name, "softmax", wrong)


def test_tensors_of_a_lost_device_say_so_and_another_opens():
    with isolated_engine("webgpu") as engine:
        x = tp.asarray(np.arange(4, dtype=np.float32)) + 1
        engine.open("webgpu").backend.runtime._device.destroy()
        for use in (x.numpy, lambda: tp.asarray(np.ones(8, np.float32))):
            with pytest.raises(tp.errors.DeviceLostError, match="is lost, and with it"):
                use()
        with pytest.warns(tp.errors.BackendWarning, match="could not be read back"):
            tp.remove_backend("webgpu")
        with tp.use_backend("webgpu"):
            again = tp.asarray(np.arange(4, dtype=np.float32)) + 1
            assert again.numpy().tolist() == [1, 2, 3, 4]

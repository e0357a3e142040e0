"""The distribution as the core sees it: its entry point, its kernels, its buffers."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import tensorplug as tp
from tensorplug.plugin import specs

from tensorplug_example_minimal.backend import MinimalBackend
from tensorplug_example_minimal.kernels import launch
from tensorplug_example_minimal.plugin import kernels

DISTRIBUTION = "tensorplug-example-minimal"
PROJECT = Path(__file__).parents[1]

# The documentation of backends lists them: with these, everything runs.
PRIMITIVES = {
    *("Neg", "Abs", "Floor", "Exp", "Log", "Sqrt", "Sin", "Cos", "Atan", "Erf"),
    *("Add", "Sub", "Multiply", "RealDiv", "FloorDiv", "Mod", "Pow", "Maximum"),
    *("Equal", "Less", "LogicalAnd", "LogicalNot", "Select", "Cast", "Fill", "Range"),
    *("Identity", "Reshape", "Transpose", "BroadcastTo", "Slice", "PadV2", "Concat"),
    *("GatherV2", "ScatterNd", "Sum", "Prod", "Max", "ArgMax", "BatchMatMul", "TopK"),
}


def test_backend_is_listed_with_its_distribution():
    infos = {info.name: info for info in tp.backends()}
    info = infos["minimal"]
    assert (info.distribution, info.version) == (DISTRIBUTION, version(DISTRIBUTION))


def test_kernels_are_exactly_the_primitives():
    assert len(PRIMITIVES) == 41
    assert {entry.spec.name for entry in kernels} == PRIMITIVES


@pytest.mark.parametrize("spec", list(specs), ids=lambda spec: spec.name)
def test_every_kernel_can_run(spec):
    explained = tp.explain(spec)
    own = f"{DISTRIBUTION} {version(DISTRIBUTION)}"
    if spec.name in PRIMITIVES:
        assert (explained.how, explained.owner) == ("native", own)
    elif explained.how == "native":  # another package's kernel for this backend
        assert (spec, explained.owner[:20]) == (specs.ATTENTION, "tensorplug-attention")
    else:
        assert explained.how in ("decomposed", "host")
        assert explained.owner == f"tensorplug {tp.__version__}"


def test_no_other_backend_is_needed():
    script = """
import sys
import tensorplug as tp
tp.set_backend("minimal")
x = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
tp.grad(lambda x: tp.nn.softmax(x @ x).max())(x)
print(*sorted(name for name in sys.modules if name.startswith("tensorplug_")))
"""
    found = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in found.stdout.split()}
    assert "tensorplug_example_minimal" in loaded
    assert not loaded & {"tensorplug_cpu", "tensorplug_opencl", "tensorplug_conformance"}


@pytest.mark.parametrize("device", ["1", "gpu"])
def test_missing_device_is_refused(device):
    with pytest.raises(
        tp.errors.BackendUnavailableError, match=f"no device '{device}', only device 0"
    ):
        tp.set_backend(f"minimal:{device}")


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_undeclared_dtype_is_refused(dtype):
    with pytest.raises(tp.errors.DTypeError, match=dtype):
        tp.asarray(np.array([1], dtype))


def test_strings_stay_on_the_host():
    text = tp.asarray(["a", "bc"])
    assert (text.device, text.tolist()) == ("host", ["a", "bc"])
    with pytest.raises(tp.errors.DTypeError, match="not possible on backend 'minimal'"):
        text.to("minimal")


@pytest.mark.parametrize("buffer", [np.zeros(2, np.float32), 1, None])
def test_only_a_box_is_a_buffer(buffer):
    with pytest.raises(TypeError, match="is not a Box"):
        MinimalBackend().describe(buffer)


@pytest.mark.parametrize("dtype", sorted(dtype.name for dtype in MinimalBackend.dtypes))
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_data_survives_the_round_trip(dtype, shape):
    array = np.array(np.arange(np.prod(shape)).reshape(shape) % 2, dtype)
    tensor = tp.asarray(array)
    expected = array.tolist()
    array[...] = np.logical_not(array)  # the tensor must not change
    back = tensor.numpy()
    assert (back.dtype, back.shape) == (np.dtype(dtype), shape)
    assert back.tolist() == expected


def test_memory_is_freed_behind_the_programs_that_read_it(minimal):
    device = minimal.open("minimal").backend
    tp.synchronize()
    before = device.memory()["used"]
    x = tp.asarray(np.ones((4, 8), np.float32))
    y = tp.exp(x)
    del x
    assert device.memory()["used"] == before + 2 * 4 * 8 * 4  # x waits for its turn
    tp.synchronize()
    assert device.memory()["used"] == before + 4 * 8 * 4
    np.testing.assert_allclose(y.numpy(), np.full((4, 8), np.e), rtol=1e-6)


def test_errors_come_late_and_to_whoever_reads_what_is_not_there():
    x = tp.asarray([1.0, 2.0, 3.0])
    picked = tp.gather(x, tp.asarray([0, -4]))
    poisoned, other = picked + 1.0, x + 1.0
    assert other.tolist() == [2.0, 3.0, 4.0]
    message = r"^minimal: index -4 is out of range for an axis of length 3"
    for waits in (picked.numpy, poisoned.numpy, tp.synchronize, picked.numpy):
        with pytest.raises(tp.errors.OutOfRangeError, match=message):
            waits()
    tp.synchronize()  # it was told


def test_calls_that_fail_leave_nothing(minimal):
    memory = minimal.open("minimal").backend.driver._memory
    x, at = tp.asarray([1.0]), tp.asarray([7])
    tp.synchronize()
    before = len(memory)
    for _ in range(3):
        with suppress(IndexError):
            tp.gather(x, at).tolist()
    with suppress(IndexError):
        tp.synchronize()
    assert len(memory) == before


def test_no_memory(monkeypatch):
    def allocate(size):
        raise MemoryError(f"no {size} bytes")

    backend = MinimalBackend()
    monkeypatch.setattr(backend.driver, "allocate", allocate)
    with pytest.raises(tp.errors.BackendMemoryError, match="minimal: no 8 bytes"):
        backend.from_host(np.zeros(2, np.float32))


def test_a_fault_of_a_program_is_one_of_the_device():
    backend = MinimalBackend()
    x = backend.from_host(np.ones(2, np.float32))
    y = launch(lambda _, *, out: out.missing, x, backend=backend, out=x.type)
    with pytest.raises(tp.errors.DeviceFaultError, match=r"minimal: .* no attribute 'missing'"):
        backend.to_host(y)


@pytest.mark.parametrize(
    "block",
    re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text("utf-8"), re.DOTALL),
)
def test_readme(block):
    exec(block, {})


def test_size_is_as_documented():
    files = list((PROJECT / "src").rglob("*.py"))
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    assert len(files) == 5
    assert lines <= 425

"""What the distribution is to the core: its entry point, its kernels, its buffers."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import specs
from tensorplug_dask import plugin, settings
from tensorplug_dask.backend import DaskBackend

DISTRIBUTION = "tensorplug-dask"
PROJECT = Path(__file__).parents[1]

# The core's documentation of backends lists them: with these, everything runs.
PRIMITIVES = {
    *("Neg", "Abs", "Floor", "Exp", "Log", "Sqrt", "Sin", "Cos", "Atan", "Erf"),
    *("Add", "Sub", "Multiply", "RealDiv", "FloorDiv", "Mod", "Pow", "Maximum"),
    *("Equal", "Less", "LogicalAnd", "LogicalNot", "Select", "Cast", "Fill", "Range"),
    *("Identity", "Reshape", "Transpose", "BroadcastTo", "Slice", "PadV2", "Concat"),
    *("GatherV2", "ScatterNd", "Sum", "Prod", "Max", "ArgMax", "BatchMatMul", "TopK"),
}


def test_backend_is_listed_with_its_distribution():
    info = next(backend for backend in tp.backends() if backend.name == "dask")
    assert (info.distribution, info.version) == (DISTRIBUTION, version(DISTRIBUTION))


def test_listing_and_importing_tensorplug_import_no_dask():
    script = """
import sys
import tensorplug as tp
assert "dask" in {info.name for info in tp.backends()}
with tp.use_backend("cpu"):
    tp.ones(3)
print(*sorted(name for name in sys.modules if "dask" in name))
"""
    found = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []


def test_all_primitives_are_native():
    registered = {entry.spec.name for table in plugin.tensorplug_kernels() for entry in table}
    assert registered >= PRIMITIVES


@pytest.mark.parametrize("spec", list(specs), ids=lambda spec: spec.name)
def test_every_kernel_can_run(spec):
    assert tp.explain(spec).how in ("native", "decomposed", "host")


def test_missing_device_is_refused():
    with pytest.raises(
        tp.errors.BackendUnavailableError, match=f"no device '1'.*{settings.SCHEDULER}"
    ):
        tp.set_backend("dask:1")


def test_strings_stay_on_the_host():
    text = tp.asarray(["a", "bc"])
    assert (text.device, text.tolist()) == ("host", ["a", "bc"])


def test_only_a_lazy_array_is_a_buffer():
    with pytest.raises(TypeError, match="not a Lazy array"):
        DaskBackend(settings.read({})).describe(np.zeros(2))


@pytest.mark.parametrize("chunk_bytes", ["128MiB", "8B"], indirect=True)
@pytest.mark.parametrize("dtype", sorted(dtype_.name for dtype_ in DaskBackend.dtypes))
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_data_survives_the_round_trip(dtype, shape):
    kind = tp.result_type(dtype).numpy
    array = np.array(np.arange(np.prod(shape)).reshape(shape) % 2, kind)
    tensor = tp.asarray(array)
    expected = array.tolist()
    array[...] = np.logical_not(array)  # which the tensor must not see
    back = tensor.numpy()
    assert (back.dtype, back.shape) == (kind, shape)
    assert back.tolist() == expected


def test_diagnostics_name_versions():
    assert plugin.tensorplug_diagnostics()["dask"] == version("dask")


@pytest.mark.parametrize(
    "block",
    re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text("utf-8"), re.DOTALL),
)
def test_readme(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(block, {})


def test_slices_leave_the_garbage_collector_on():
    """Dask remembers the state of its import, during which tensorplug pauses the collector."""
    program = """
import gc
import tensorplug as tp
with tp.use_backend("dask"):
    x = tp.arange(6.0).reshape((2, 3))
    tp.gather(x, tp.asarray([1, 0])).numpy()
    x[1:, ::2].numpy()
raise SystemExit(not gc.isenabled())
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

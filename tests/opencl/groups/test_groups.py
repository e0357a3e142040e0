"""The size of groups: it never exceeds the kernel's limit on its device."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pyopencl as cl
import pytest
from tests.opencl.conftest import require_device
from tests.opencl.device.test_faults import fault

from tensorplug.errors import KernelRefusedError
from tensorplug_opencl import device
from tensorplug_opencl.launch import HEAVY_GROUP, LIGHT_GROUP, choose_group
from tensorplug_opencl.machine import cache_folder

INFO = cl.kernel_work_group_info
COUNT = """// count
kernel void run(global const int *x, const long x_at, global int *y, const long y_at) {
  local int seen[4];
  if (get_global_id(0) < 1000) y[y_at + get_global_id(0)] = x[x_at] + get_local_size(0);
}"""


class Kernel:
    """A kernel that reports its limits."""

    def __init__(self, most, step=1, local=0):
        self.says = {
            INFO.WORK_GROUP_SIZE: most,
            INFO.PREFERRED_WORK_GROUP_SIZE_MULTIPLE: step,
            INFO.LOCAL_MEM_SIZE: local,
        }

    def get_work_group_info(self, what, _device):
        return self.says[what]


class Device:
    local_mem_size = 1000
    max_work_item_sizes = (512, 512, 64)


@pytest.mark.parametrize(
    ("kernel", "wanted", "group"),
    [
        (Kernel(1024, 32), 128, 128),
        (Kernel(96, 32), 128, 96),  # it takes many registers
        (Kernel(100, 32), 128, 96),  # whole sub-groups
        (Kernel(20, 32), 128, 20),  # not even one
        (Kernel(1, 1), 128, 1),
        (Kernel(4096, 64), 1024, 512),  # max_work_item_sizes
        (Kernel(4096, 0), 8, 8),  # a driver that reports nothing
        (Kernel(4096, 8), 8, 8),
        (Kernel(4096, 64, local=1000), 8, 8),
    ],
)
def test_any_number(kernel, wanted, group):
    assert choose_group(Device, kernel, "title", wanted, None) == group


def test_a_certain_number():
    assert choose_group(Device, Kernel(100, 32), "title", 128, 70) == 70
    with pytest.raises(KernelRefusedError, match=r"'sum' needs groups of 128 .* allows it 100"):
        choose_group(Device, Kernel(100, 32), "sum", 64, 128)
    with pytest.raises(KernelRefusedError, match="needs groups of 513"):
        choose_group(Device, Kernel(4096), "sum", 64, 513)


def test_too_much_local_memory():
    with pytest.raises(KernelRefusedError, match=r"'sum' takes 1,001 bytes .* has 1,000"):
        choose_group(Device, Kernel(4096, local=1001), "sum", 64, None)


def counted(backend, launch):
    x = backend.from_host(np.zeros(1, np.int32))
    y = backend.from_host(np.zeros(1000, np.int32))
    launch(x, y)
    actual = set(backend.to_host(y).tolist())
    return actual.pop() if len(actual) == 1 else actual


@pytest.mark.parametrize("heavy", [False, True])
def test_on_the_device(backend, heavy):
    launch = backend.runtime.launch(COUNT, 2, [], 1000, heavy=heavy)
    most = backend.runtime.device.max_work_group_size
    expected = HEAVY_GROUP[backend.runtime.is_cpu] if heavy else LIGHT_GROUP
    assert counted(backend, launch) == launch.group == min(expected, most)
    assert counted(backend, backend.runtime.launch(COUNT, 2, [], 1000, group=50)) == 50


def test_a_group_beyond_the_device_is_refused(backend):
    most = backend.runtime.device.max_work_group_size
    with pytest.raises(KernelRefusedError, match=f"needs groups of {most + 1}"):
        backend.runtime.launch(COUNT, 2, [], 1000, group=most + 1)


def limited(monkeypatch, most, code):
    """Let the driver discover the limit ``most`` of groups only when it runs a kernel."""
    enqueue, sizes = cl.enqueue_nd_range_kernel, []

    def limiting(queue, kernel, items, group):
        sizes.append(group[0])
        if group[0] > most:
            raise fault(code)
        return enqueue(queue, kernel, items, group)

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", limiting)
    return sizes


@pytest.mark.parametrize(
    "code", [cl.status_code.INVALID_WORK_GROUP_SIZE, cl.status_code.OUT_OF_RESOURCES]
)
def test_smaller_groups_where_the_driver_refuses_late(monkeypatch, backend, code):
    launch = backend.runtime.launch(COUNT, 2, [], 1000)
    before = launch.group
    sizes = limited(monkeypatch, before // 4, code)
    assert counted(backend, launch) == before // 4
    assert counted(backend, launch) == before // 4  # it remembers
    assert sizes[-3:] == [before // 2, before // 4, before // 4]


def test_a_certain_number_is_never_changed(monkeypatch, backend):
    launch = backend.runtime.launch(COUNT, 2, [], 1000, group=64)
    sizes = limited(monkeypatch, 32, cl.status_code.INVALID_WORK_GROUP_SIZE)
    with pytest.raises(cl.Error, match="INVALID_WORK_GROUP_SIZE"):
        counted(backend, launch)
    assert sizes == [64]


def test_a_refused_kernel_is_decomposed(monkeypatch):
    """A limit of the device makes the engine take the kernel's decomposition."""
    import tensorplug as tp
    from tensorplug.testing import isolated_engine
    from tensorplug_opencl.runtime import Runtime

    real = Runtime.launch

    def poor(self, source, *args, **options):
        if source.startswith("// Log1p"):
            raise KernelRefusedError("'Log1p' needs groups of 9 work-items")
        return real(self, source, *args, **options)

    monkeypatch.setattr(Runtime, "launch", poor)
    with isolated_engine("opencl"), tp.profile() as p:
        np.testing.assert_allclose(tp.log1p([0.0, 1.0]).numpy(), np.log([1.0, 2.0]), rtol=1e-6)
    assert [kernel.how for kernel in p.kernels][-1] == "decomposed"


ON_A_SMALL_DEVICE = """
import json
import numpy as np
import tensorplug as tp
tp.set_backend("opencl")
x = np.random.default_rng(0).standard_normal((70, 300)).astype(np.float32)
t = tp.asarray(x)
e = np.exp(x)
pairs = {
    "add": (t + 1.0, x + 1),
    "sum": (tp.sum(t), x.sum()),
    "rows": (tp.sum(t, axis=1), x.sum(1)),
    "sort": (tp.sort(tp.reshape(t, (-1,))), np.sort(x.reshape(-1))),
    "matmul": (t @ tp.permute_dims(t, (1, 0)), x @ x.T),
    "softmax": (tp.nn.softmax(t), e / e.sum(1, keepdims=True)),
    "cumsum": (tp.cumulative_sum(t, axis=1), np.cumsum(x, 1)),
}
device = tp.find_backend("opencl").runtime.device
print(json.dumps({
    "most": device.max_work_group_size,
    "local": device.local_mem_size,
    "wrong": [n for n, (a, b) in pairs.items() if not np.allclose(a.numpy(), b, atol=1e-4)],
}))
"""


# Settings that make drivers report smaller devices, by platform, and the reports.
SMALLER = {
    "Intel(R) OpenCL": ({"CL_CONFIG_CPU_FORCE_LOCAL_MEM_SIZE": "16KB"}, {"local": 16 << 10}),
    "Portable Computing Language": ({"POCL_MAX_WORK_GROUP_SIZE": "4"}, {"most": 4}),
}


def test_a_device_that_allows_little(tmp_path):
    require_device()
    platform = device.choose(None).device.platform.name.strip()
    if platform not in SMALLER:
        pytest.skip(f"the driver of {platform} cannot be told to allow less")
    told, says = SMALLER[platform]
    own = {cache_folder.CACHE: str(tmp_path)}  # it has the name of the device that it was
    done = subprocess.run(
        [sys.executable, "-c", ON_A_SMALL_DEVICE],
        env={**os.environ, **told, **own},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    actual = json.loads(done.stdout)
    assert actual["wrong"] == []
    assert actual.items() >= says.items()

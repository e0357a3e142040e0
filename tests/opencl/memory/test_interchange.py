"""Tensors on OpenCL and other libraries: everything passes through the host, by copies."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract.backend import SharesHostMemory
from tensorplug.dispatch.context import use_context
from tensorplug.errors import CopyNeededError, DisposedError
from tensorplug.ops import creation, movement

DTYPES = ["bool", "int8", "uint16", "int32", "int64", "uint64", "float32", "complex64"]


@pytest.fixture
def context(core_context):
    return core_context


@pytest.fixture(autouse=True)
def entered(context):
    with use_context(context):
        yield


def numbers(dtype):
    return (np.arange(24).reshape(4, 6) % 5).astype(dtype)


def layouts(x):
    return [x, x.T, x[1:3], x[::-1, ::2], x[:0], x[1, 1], movement.broadcast_to(x[0], (3, 6))]


def test_the_capability_is_not_here(context):
    assert not isinstance(context.device.backend, SharesHostMemory)


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(dtype):
    for x in layouts(tp.from_dlpack(numbers(dtype))):
        assert (x.device, x.__dlpack_device__()) == ("opencl", (1, 0))
        expected = x.numpy()
        for taken in (np.from_dlpack(x), np.asarray(x), tp.from_dlpack(x).numpy()):
            assert (taken.dtype.name, taken.shape) == (dtype, x.shape)
            np.testing.assert_array_equal(taken, expected)


def test_imports_are_copies():
    array = np.zeros(3, np.float32)
    x = tp.from_dlpack(array)
    array[:] = 1
    assert x.tolist() == [0, 0, 0]
    with pytest.raises(CopyNeededError, match="x must be copied, since backend 'opencl'"):
        tp.from_dlpack(array, copy=False)


def test_exports_belong_to_the_consumer():
    x = creation.zeros((3,))
    first, second = np.from_dlpack(x), np.from_dlpack(x)
    assert not np.shares_memory(first, second)
    x.dispose()
    assert first.tolist() == second.tolist() == [0, 0, 0]
    with pytest.raises(DisposedError):
        np.from_dlpack(x)


@pytest.mark.parametrize(
    "convert",
    [lambda x: x.__dlpack__(copy=False), lambda x: np.asarray(x, copy=False)],
    ids=["dlpack", "array"],
)
def test_never_copied_is_impossible(convert):
    with pytest.raises(CopyNeededError, match=r"float32\[3\] .*'opencl'"):
        convert(creation.ones((3,)))


def test_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    source = torch.arange(6.0).reshape(2, 3).T
    x = tp.from_dlpack(source)
    assert (x.device, x.tolist()) == ("opencl", source.tolist())
    assert torch.equal(torch.from_dlpack(x + 1), source + 1)
    narrow = tp.from_dlpack(source.to(torch.bfloat16) / 8)
    assert (narrow.device, narrow.dtype, narrow.tolist()) == (
        "opencl",
        tp.bfloat16,
        (source / 8).tolist(),
    )
    assert torch.equal(torch.from_dlpack(narrow), source.to(torch.bfloat16) / 8)


def test_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    source = jax.numpy.arange(6.0).reshape(2, 3)
    x = tp.from_dlpack(source)
    assert (x.device, x.tolist()) == ("opencl", source.tolist())
    assert jax.numpy.from_dlpack(x).tolist() == source.tolist()


def test_saved_here_and_loaded_here(tmp_path):
    tensors = {f"{dtype}.{at}": x for dtype in DTYPES for at, x in enumerate(layouts_of(dtype))}
    tp.save(tensors, tmp_path / "file")
    for name, x in tp.load(tmp_path / "file").items():
        assert (x.device, x.type) == ("opencl", tensors[name].type)
        np.testing.assert_array_equal(x.numpy(), tensors[name].numpy())


def layouts_of(dtype):
    return layouts(creation.asarray(numbers(dtype)))


READ = """
import pickle, sys
x = pickle.load(sys.stdin.buffer)
assert (str(x.type), x.device) == ("float32[2,3]", "cpu"), x
assert (x + 1).tolist() == [[1, 2, 3], [4, 5, 6]], x
assert not any(name.startswith(("pyopencl", "tensorplug_opencl")) for name in sys.modules)
"""


def test_a_process_with_the_cpu_alone_reads_a_pickle():
    x = creation.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert x.device == "opencl"
    environment = {**os.environ, "TENSORPLUG_PLUGINS": "cpu", "TENSORPLUG_AUTOLOAD": "0"}
    environment.pop("TENSORPLUG_BACKEND", None)
    command = [sys.executable, "-c", READ]
    data = pickle.dumps(x)
    subprocess.run(command, input=data, env=environment, check=True, timeout=120)
    assert pickle.loads(data).device == "opencl"

"""Pickles of every dtype, to other devices and processes; deepcopy of shared memory."""

from __future__ import annotations

import copy
import multiprocessing
import operator
import os
import pickle
import pickletools
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import BackendWarning

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
DTYPES = sorted(dtype.name for dtype in dt.ANY)


def values(dtype, shape):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3
    if dtype == "string":
        return np.array(["", "ÄÖ", "long enough for the heap " * 4], np.dtypes.StringDType())[
            numbers
        ]
    return (numbers * (1 + 1j if dtype.startswith("complex") else 1)).astype(dt.of(dtype).numpy)


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pickles_of_every_dtype(dtype, shape):
    given = values(dtype, shape)
    x = tp.asarray(given)
    for protocol in PROTOCOLS:
        made = pickle.loads(pickle.dumps(x, protocol))
        assert (made.dtype.name, made.shape, made.device) == (dtype, shape, "cpu")
        np.testing.assert_array_equal(made.numpy(), given)


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize(
    "view",
    [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: tp.broadcast_to(x[0], (4, 3)), lambda x: +x],
)
def test_pickles_hold_the_elements_of_a_view_alone(view):
    whole = tp.asarray(np.arange(3000.0).reshape(1000, 3))
    x = view(whole)
    made = pickle.loads(pickle.dumps(x))
    np.testing.assert_array_equal(made.numpy(), x.numpy())
    small = tp.asarray(np.arange(3000.0).reshape(1000, 3))[:2]
    assert len(pickle.dumps(small)) < 1000


@pytest.mark.usefixtures("engine")
def test_elements_travel_beside_the_pickle():
    given = np.arange(3000.0)
    x = tp.asarray(given)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(data) < 1000
    assert len(buffers) == 1
    assert np.shares_memory(np.frombuffer(buffers[0]), x._buffer)
    lent = bytearray(buffers[0].raw())
    made = pickle.loads(data, buffers=[lent])
    lent[:] = bytes(len(lent))  # a tensor is a value: it has copied them
    engines.expect(made, "float64", (3000,), given)


@pytest.mark.usefixtures("engine")
def test_a_pickle_names_no_class_of_the_backend():
    x = tp.asarray([1.0])
    named = [
        value
        for code, value, _ in pickletools.genops(pickle.dumps(x))
        if code.name.endswith(("UNICODE", "UNICODE8")) and "tensorplug" in str(value)
    ]
    assert named == ["tensorplug.tensors.interchange"]


@pytest.mark.usefixtures("engine")
def test_on_the_tape_a_constant_is_pickled():
    x = tp.asarray([2.0, 3.0])
    gradient = tp.grad(total(lambda p: pickle.loads(pickle.dumps(p)) * p))(x)
    engines.expect(gradient, "float32", (2,), [2, 3])


@pytest.mark.usefixtures("engine")
def test_shared_tensors_stay_shared():
    x, y = tp.asarray([1.0]), tp.asarray([2.0])
    given = {"a": x, "b": [x, (y, x)], "c": y}
    for made in (copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
        first, (second, (other, third)), last = made.values()
        assert first is second is third
        assert other is last
        assert first is not x
        assert (first.tolist(), last.tolist()) == ([1], [2])


@pytest.mark.usefixtures("engine")
def test_copies_keep_the_device():
    given = {name: tp.asarray([1.0]).to(name) for name in ("memory", "other")}
    for duplicate in (copy.deepcopy, lambda d: {name: copy.copy(x) for name, x in d.items()}):
        assert {name: x.device for name, x in duplicate(given).items()} == {
            "memory": "memory",
            "other": "other",
        }
    with tp.use_backend("other"):
        free = tp.asarray([3.0])
    loaded = pickle.loads(pickle.dumps([*given.values(), free]))
    assert [(x.device, x.is_committed) for x in loaded] == [
        ("memory", True),
        ("other", True),
        ("other", False),
    ]


def test_a_worker_process_computes_where_its_argument_was_placed():
    x = tp.asarray([1.0, 2.0], device="minimal")
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as pool:
        result = pool.submit(operator.mul, x, 2).result(timeout=120)
    assert (result.device, result.is_committed, result.tolist()) == ("minimal", True, [2.0, 4.0])


@pytest.mark.usefixtures("engine")
def test_a_pickle_from_a_device_that_is_not_here():
    """It comes to the active device, once with a warning that names both."""
    data = pickle.dumps([tp.asarray([1.0]).to("other")] * 2)
    elsewhere = data.replace(b"other", b"third")  # a name of the same length
    with pytest.warns(BackendWarning, match="unpickled from 'third' onto 'memory': ") as told:
        made, same = pickle.loads(elsewhere)
    assert len(told) == 1
    assert made is same
    engines.expect(made, "float32", (1,), [1])
    assert made.device == "memory"


READ = """
import pickle, sys
x = pickle.load(sys.stdin.buffer)
assert str(x.type) == "float32[2,3]", x
assert x.device == "cpu", x
assert (x + 1).tolist() == [[1, 2, 3], [4, 5, 6]], x
"""


@pytest.mark.usefixtures("engine")
def test_another_process_without_the_backend_reads_it():
    x = tp.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert x.device == "memory"  # which that process does not have
    with tp.use_backend("other"):
        data = pickle.dumps(x)
    environment = {**os.environ, "TENSORPLUG_BACKEND": "cpu"}
    command = [sys.executable, "-c", READ]
    subprocess.run(command, input=data, env=environment, check=True, timeout=120)


@pytest.mark.usefixtures("on_the_cpu")
def test_spawned_processes_take_and_give_tensors():
    x = tp.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        jobs = [
            pool.submit(operator.mul, x, x),
            pool.submit(tp.matmul, x, x.T),
            pool.submit(dict, nested=[x, x]),
        ]
        product, matrix, nested = [job.result(timeout=120) for job in jobs]
    engines.expect(product, "float32", (2, 3), [[0, 1, 4], [9, 16, 25]])
    engines.expect(matrix, "float32", (2, 2), [[5, 14], [14, 50]])
    assert nested["nested"][0] is nested["nested"][1]

"""Scatters: by atomics or in order, duplicates, and indices out of range."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import use_context
from tensorplug.errors import SettingsError
from tensorplug.ops import creation
from tensorplug.ops.indexing import scattering as combining
from tensorplug.ops.indexing import writing
from tensorplug_opencl.kernels import scattering
from tensorplug_opencl.machine.limits import STEPS


@pytest.fixture(params=["form", "atomics", "in order"])
def way(monkeypatch, request, core_context):
    """Let later plans add in each way, which needs separate shapes; return its number."""
    number = ("form", "atomics", "in order").index(request.param)
    monkeypatch.setenv(scattering.SETTING, "01"[number == 2])
    if number == 1:  # CPUs take the form
        monkeypatch.setattr(core_context.device.backend.runtime, "is_cpu", False)
    return number


def launched(monkeypatch):
    """Return the list of the titles of programs launched from now on."""
    seen = []
    original = scattering._launch_atomic_add

    def noted(*args):
        seen.append("atomic")
        return original(*args)

    monkeypatch.setattr(scattering, "_launch_atomic_add", noted)
    return seen


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float32", "float64"])
def test_all_ways_add_the_same(call, near, way, dtype):
    count = 700 + way
    rng = np.random.default_rng(3)
    indices = rng.integers(-5, 5, (count, 1))
    updates = rng.integers(0, 50, (count, 3)).astype(dtype)
    expected = np.zeros((5, 3), dtype)
    np.add.at(expected, indices[:, 0], updates)
    near(call(writing.SCATTER_ND, indices, updates, shape=(5, 3)), expected, dtype)


def test_in_order_there_are_no_atomics(call, core_context, monkeypatch):
    seen = launched(monkeypatch)
    runtime = core_context.device.backend.runtime
    own = runtime.is_cpu
    monkeypatch.setattr(runtime, "is_cpu", False)
    monkeypatch.setenv(scattering.SETTING, "1")
    call(writing.SCATTER_ND, np.zeros((13, 1), int), np.ones(13, np.float32), shape=(2,))
    assert not seen
    monkeypatch.setenv(scattering.SETTING, "0")
    call(writing.SCATTER_ND, np.zeros((14, 1), int), np.ones(14, np.float32), shape=(2,))
    assert seen
    seen.clear()
    monkeypatch.setattr(runtime, "is_cpu", own)
    call(writing.SCATTER_ND, np.zeros((15, 1), int), np.ones(15, np.float32), shape=(2,))
    assert bool(seen) is not own


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_long_runs_are_added_in_pieces(call, core_context, near, monkeypatch, dtype):
    """Drivers that do not finish long loops get short ones; of others, a run is one loop."""
    monkeypatch.setenv(scattering.SETTING, "1")
    count = 2 * STEPS + 5 + len(dtype)  # so that each dtype has its own plan
    rows = np.repeat([2, -9, 0, 1], [STEPS + 7, 3, 1, count - STEPS - 11])
    updates = np.random.default_rng(4).integers(0, 50, (count, 2)).astype(dtype)
    expected = np.stack([updates[rows == row].sum(0) for row in range(3)])
    order = np.random.default_rng(5).permutation(count)
    steps = []
    runtime = core_context.device.backend.runtime
    monkeypatch.setattr(runtime, "check_steps", steps.append)
    monkeypatch.setattr(runtime, "limits", runtime.limits._replace(long_loops=False))
    found = call(writing.SCATTER_ND, rows[order, None], updates[order], shape=(3, 2))
    near(found, expected, dtype)
    assert steps == [3]  # pieces


def test_the_setting_is_0_or_1(monkeypatch):
    monkeypatch.setenv(scattering.SETTING, "often")
    with pytest.raises(SettingsError, match=r"TENSORPLUG_OPENCL_DETERMINISTIC.*'often'"):
        scattering.is_deterministic()


def test_updates_in_order_give_the_same_bits_every_time(context, monkeypatch):
    monkeypatch.setenv(scattering.SETTING, "1")
    rng = np.random.default_rng(5)
    indices = rng.integers(0, 3, (5000, 1))
    updates = (rng.normal(size=5000) * 10.0 ** rng.integers(-20, 20, 5000)).astype(np.float32)
    with use_context(context):
        operands = creation.asarray(indices), creation.asarray(updates)
        sums = {writing.scatter_nd(*operands, (3,)).numpy().tobytes() for _ in range(5)}
    assert len(sums) == 1


def test_infinities_and_nan_add(call, near, way):
    updates = np.array([np.inf, 1, -np.inf, np.inf, 2, np.nan], np.float32)
    indices = np.array([[0], [0], [1], [2], [3], [4]])
    expected = [np.inf, -np.inf, np.inf, 2, np.nan, *[0] * way]
    near(call(writing.SCATTER_ND, indices, updates, shape=(5 + way,)), expected, "float32")


def test_updates_out_of_range_are_dropped(call, way):
    count = 5 + way
    indices = np.array([4, -5, 1, 2**31 - 1, -(2**31), 0, 9][:count]).reshape(-1, 1)
    updates = np.arange(1, count + 1, dtype=np.float32)
    actual = call(writing.SCATTER_ND, indices, updates, shape=(4,))
    assert actual.tolist() == [6.0 if way else 0.0, 3.0, 0.0, 0.0]


@pytest.mark.parametrize("inner", [3, 300])
def test_the_last_update_of_a_row_remains(call, near, inner):
    x = np.arange(7.0 * inner, dtype=np.float32).reshape(7, inner)
    indices = np.array([[6], [0], [5], [-2], [7]], np.int32)
    updates = np.stack([-x[0], -x[1], -x[2], -x[3], -x[4]])
    expected = x.copy()
    expected[[6, 0, 5]] = updates[[0, 1, 3]]
    near(call(writing.TENSOR_SCATTER_UPDATE, x, indices, updates), expected, "float32")


@pytest.mark.parametrize(("reduction", "signed"), [("max", False), ("min", True)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_zeros_do_not_depend_on_the_order(call, backend, dtype, reduction, signed):
    if dt.of(dtype) not in backend.dtypes:
        pytest.skip("the device has no double precision")
    zeros = np.array([0.0, -0.0] * 500, dtype)
    indices = np.zeros((1000, 1), np.int32)
    for updates in (zeros, zeros[::-1].copy()):
        how = {"reduction": reduction, "include_self": True}
        actual = call(combining.TENSOR_SCATTER_REDUCE, zeros[1:2], indices, updates, **how)
        assert np.signbit(actual).tolist() == [signed]


def test_the_way_to_add_depends_on_the_device(backend):
    def kept(name):
        return scattering._choose_accumulator(backend, dt.of(name))

    assert kept("int8") is kept("uint32") is dt.uint32
    assert kept("float64") is None  # double additions in any order are not exact enough
    backend.dtypes -= {dt.float64}
    assert kept("float32") is None


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", ["max", "min"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "int64", "uint64", "float32"])
def test_extremes(call, near, dtype, reduction, include_self):
    """Of unsigned integers too, whose keys a compiler has mixed up; -5 and 9 are dropped."""
    rng = np.random.default_rng(5)
    limits = (0, 1) if dtype == "float32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    tensor, updates = rng.integers(0, 100, (4, 3)), rng.integers(0, 100, (200, 3))
    tensor, updates = tensor.astype(dtype), updates.astype(dtype)
    updates[7], updates[11] = limits
    indices = rng.integers(-4, 3, (200, 1))  # negative ones count from the end
    indices[::9] = [[-5], [9]][rng.integers(2)]
    indices[7] = 0
    fold = np.maximum if reduction == "max" else np.minimum
    places = np.where(indices < 0, indices + 4, indices)[:, 0]
    expected = tensor.copy()
    for row in range(4):
        actual = updates[places == row]
        if len(actual):
            own = [tensor[row : row + 1]] if include_self else []
            expected[row] = fold.reduce(np.concatenate([*own, actual]))
    how = {"reduction": reduction, "include_self": include_self}
    near(call(combining.TENSOR_SCATTER_REDUCE, tensor, indices, updates, **how), expected, dtype)

"""Strided copies: views where nothing must move, runs, and tiles as CPUs and GPUs carry them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import use_context
from tensorplug.ops import arrangement, creation, diagonals, joining, movement
from tensorplug.ops.indexing import slicing
from tensorplug_opencl.codegen.layouts import row_major
from tensorplug_opencl.movement import moving


def numbers(shape, dtype="int32", seed=1):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


@pytest.fixture(params=[True, False], ids=["CPU", "GPU"])
def runtime(backend, request):
    """Return a runtime whose kernels are written for either kind of device."""
    backend.runtime.is_cpu = request.param
    return backend.runtime


def moved(backend, shape, strides, x, start=0):
    """Return x, flat, read with ``strides`` from ``start`` on."""
    out = TensorType(dt.of(x.dtype), shape)
    copy = moving.make_mover(
        backend.runtime, out.dtype, shape, strides, row_major(shape), x.size, starts=(start, 0)
    )
    result = backend.runtime.prepare_empty(out)()
    copy(backend.from_host(x.reshape(-1)), result)
    return backend.to_host(result)


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "int64"])
@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((8, 8), (1, 0)),
        ((64, 96), (1, 0)),
        ((33, 47), (1, 0)),
        ((3, 40, 21), (0, 2, 1)),
        ((3, 40, 2, 21), (0, 3, 2, 1)),
        ((5, 300), (1, 0)),
        ((300, 5), (1, 0)),
        ((4, 3, 5000), (1, 0, 2)),
    ],
)
def test_axes_in_another_order(backend, shape, perm, dtype):
    x = numbers(shape, dtype)
    own = row_major(shape)
    expected = x.transpose(perm)
    actual = moved(backend, expected.shape, tuple(own[axis] for axis in perm), x)
    np.testing.assert_array_equal(actual, expected)


def test_no_tiles_where_local_memory_is_short(backend, monkeypatch):
    runtime = backend.runtime
    monkeypatch.setattr(runtime, "is_cpu", False)
    runtime.description = replace(runtime.description, shared_bytes=1 << 10)
    x = numbers((64, 96))
    np.testing.assert_array_equal(moved(backend, (96, 64), (1, 96), x), x.T)


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(
    ("shape", "strides", "start"),
    [
        ((5, 7), (0, 1), 3),
        ((5, 7), (1, 0), 3),
        ((40, 30), (0, 0), 9),
        ((50,), (-1,), 49),
        ((4, 10), (-10, 1), 30),
        ((10, 4), (-1, -10), 39),
        ((3, 200), (400, 2), 1),
        ((1, 1), (7, 7), 2),
        ((40, 30), (-30, 1), 39 * 30),
    ],
)
def test_any_strides(backend, shape, strides, start):
    x = numbers((1500,))
    step = x.itemsize
    view = np.lib.stride_tricks.as_strided(x[start:], shape, [step * stride for stride in strides])
    np.testing.assert_array_equal(moved(backend, shape, strides, x, start), view)


def memory_of(context, *tensors):
    return [context.device.backend.allocation(tensor._buffer)[0] for tensor in tensors]


def sliced(x, *key):
    return x[key]


@pytest.mark.parametrize(
    "take",
    [
        lambda x: movement.expand_dims(x, 1),
        lambda x: sliced(x, slice(1, 4)),
        lambda x: sliced(x, slice(2, 3), slice(1, 3)),
        lambda x: sliced(x, slice(2, 3), None, slice(3, 4)),
        lambda x: slicing.split(x, [2, 4])[1],
        lambda x: slicing.unstack(x)[5],
        lambda x: movement.permute_dims(x[:, None, :], (1, 0, 2)),
        lambda x: arrangement.flip(x[2:3], axis=0),
        lambda x: arrangement.tile(x, (1, 1)),
        lambda x: joining.stack([x]),
    ],
)
def test_contiguous_parts_are_views(core_context, take):
    with use_context(core_context):
        x = creation.asarray(numbers((6, 5)))
        part = take(x)
    ours, theirs = memory_of(core_context, x, part)
    assert ours == theirs


def test_parts_that_are_not_contiguous_are_copies(context):
    with use_context(context):
        x = creation.asarray(numbers((6, 5)))
        copies = [x[:, 1:3], x[::2], x[::-1], slicing.unstack(x, axis=1)[0]]
    ours, *theirs = memory_of(context, x, *copies)
    assert ours not in theirs


def test_kernels_take_views(core_context):
    """Each input is a part of a longer tensor: it begins at an offset."""
    whole = numbers((9, 6, 8))
    part = whole[3:5]
    with use_context(core_context):
        x = creation.asarray(whole)[3:5]
        actual = {
            "flip": (arrangement.flip(x, axis=(0, 2)), part[::-1, :, ::-1]),
            "tile": (arrangement.tile(x, (2, 1, 3)), np.tile(part, (2, 1, 3))),
            "repeat": (arrangement.repeat(x, 3, axis=1), part.repeat(3, 1)),
            "mirror": (
                arrangement.mirror_pad(x, ((1, 0), (2, 3), (0, 5)), "reflect"),
                np.pad(part, ((1, 0), (2, 3), (0, 5)), "reflect"),
            ),
            "split": (slicing.split(x, 2, axis=2)[1], part[:, :, 4:]),
            "unstack": (slicing.unstack(x, axis=2)[7], part[:, :, 7]),
            "steps": (x[:, ::-2, 1::3], part[:, ::-2, 1::3]),
            "concat": (joining.concat([x, x], axis=1), np.concatenate([part, part], 1)),
            "stack": (joining.stack([x, x], axis=2), np.stack([part, part], 2)),
            "triangle": (diagonals.tril(x, k=-1), np.tril(part, -1)),
            "diag": (diagonals.diag(x[0, 0]), np.diag(part[0, 0])),
        }
    for name, (tensor, expected) in actual.items():
        np.testing.assert_array_equal(tensor.numpy(), expected, name)

"""Random numbers on the device: extreme words, wide indices, and the bits of the CPU backend."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.calls import dispatch
from tensorplug.dispatch.context import use_context
from tensorplug.ops import creation, extents, movement
from tensorplug.ops.random import box_muller
from tensorplug.ops.random import random as ops
from tensorplug.testing import isolated_engine
from tensorplug_conformance.oracle import random as oracle
from tensorplug_cpu.numerics import variates
from tensorplug_opencl.codegen import layouts, philox, templates

KEY = np.array([0xA4093822, 0x299F31D0, 0x13198A2E, 0x03707344], np.uint32)
FLOATS = ["float16", "float32", "float64"]
REAL = [ops.RANDOM_UNIFORM, ops.RANDOM_EXPONENTIAL, ops.RANDOM_NORMAL]


def needs(context, dtype):
    if dt.of(dtype) not in context.device.backend.dtypes:
        pytest.skip(f"this device has no {dtype}")


def test_wide_indices(call, near, monkeypatch):
    """Large draws count in 64 bits; here a small one does too."""
    monkeypatch.setattr(layouts, "NARROW_LIMIT", 10)
    shape, spans = (77,), np.arange(1, 78, dtype=np.uint32)
    near(call(ops.RANDOM_BITS, KEY, shape=shape), oracle.bits(KEY, shape=shape), "uint32")
    actual = call(ops.RANDOM_INTEGERS, KEY, spans, shape=shape)
    near(actual, oracle.integers(KEY, spans, shape=shape), "uint32")


def test_a_key_may_be_a_view(context):
    rows = np.arange(12, dtype=np.uint32).reshape(3, 4)
    with use_context(context):
        row = movement.reshape(extents.slice(creation.asarray(rows), (1, 0), (1, 4)), (4,))
        actual = dispatch(ops.RANDOM_BITS, row, shape=(9,))
    np.testing.assert_array_equal(actual.numpy(), oracle.bits(rows[1], shape=(9,)))


def test_one_program_serves_all_keys_shapes_and_starts(context, call):
    def run(seed, shape, start):
        call(ops.RANDOM_NORMAL, KEY + np.uint32(seed), shape=shape, start=start, dtype="float32")

    run(0, (5,), 0)
    programs = context.device.backend.memory()["programs"]
    for seed in range(1, 4):
        run(seed, (2 * seed, 3), 2**40 + seed)
    assert context.device.backend.memory()["programs"] == programs


# Bits of variates ---------------------------------------------------------------------------


def extremes(kind):
    """Return words near every power of two and limit, and where the logarithm turns."""
    size = 8 * kind.itemsize
    powers = [m for p in range(size) for m in (1 << p, (1 << size) - (1 << p))]
    turning = int(box_muller.LOW * 2**size)
    near = [m + d for m in (*powers, turning, turning >> 1) for d in range(-2, 3)]
    return np.array([word % (1 << size) for word in near], kind)


@pytest.mark.parametrize(("dtype", "kind"), [("float32", np.uint32), ("float64", np.uint64)])
def test_variates_of_extreme_words(context, near, dtype, kind):
    """The C functions on chosen words, in a separate program."""
    needs(context, dtype)
    words = extremes(np.dtype(kind))
    actual = _run(context, dtype, words, "minus_log(w[i]).x", 1)
    near(actual, oracle.minus_logs(words.tolist(), dtype), dtype, ulp=0.25)
    precision = box_muller.precision(dt.of(dtype))
    assert actual.tobytes() == variates.minus_log(precision, words)[0].tobytes()
    pairs = np.stack(np.meshgrid(words[::3], words[::4]), axis=-1).ravel()
    both = [
        _run(context, dtype, pairs, f"normals(w[2 * i], w[2 * i + 1]).{part}", 2) for part in "xy"
    ]
    actual = np.stack(both, axis=-1).ravel()
    near(actual, oracle.normals(pairs.tolist(), dtype), dtype, ulp=1.0)
    if rounds_as_ieee(context, dtype):
        assert actual.tobytes() == variates.normals(precision, pairs).tobytes()


def _run(context, dtype, words, expression, words_per_item):
    runtime, backend = context.device.backend.runtime, context.device.backend
    precision = box_muller.precision(dt.of(dtype))
    count = words.size // words_per_item
    text = templates.write_program(
        f"test {dtype}",
        [
            templates.Array("w", "ulong" if dtype == "float64" else "uint"),
            templates.Array("y", "double" if dtype == "float64" else "float", written=True),
        ],
        templates.declare_indices("n"),
        f"  const index_t i = get_global_id(0);\n  if (i < n) y[i] = {expression};",
        index=np.dtype(np.uint32),
        declarations=philox.define_variates(precision),
    )
    launch = runtime.launch(text, 2, [np.uint32(count)], count)
    result = runtime.empty(TensorType(dt.of(dtype), (count,)))
    launch(backend.from_host(words), result)
    return backend.to_host(result)


def rounds_as_ieee(context, dtype):
    """Return whether division and square root do; addition and multiplication always do."""
    import pyopencl as cl

    correct = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    config = context.device.backend.runtime.device.single_fp_config
    return dtype == "float64" or bool(config & correct)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("spec", REAL, ids=str)
def test_the_cpus_bits(context, call, spec, dtype):
    needs(context, dtype)
    if spec is ops.RANDOM_NORMAL and not rounds_as_ieee(context, dtype):
        pytest.skip("this device's square root is not correctly rounded")
    with isolated_engine("cpu"):
        expected = tp.run_kernel(spec, [KEY], {"shape": (100_003,), "dtype": dtype})
        expected = np.array(expected.numpy())
    actual = call(spec, KEY, shape=(100_003,), dtype=dtype)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.tobytes() == expected.tobytes()

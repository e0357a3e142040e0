"""Rows, scans and sorts whose work-groups a driver refuses, and the digits of log-softmax."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.ops.nn import activation
from tensorplug_loops.kernels import kernel_table
from tensorplug_opencl.ordering import merging

if TYPE_CHECKING:
    from tensorplug_opencl.backend import OpenCLBackend


def run(backend: OpenCLBackend, name: str, x: Any, out: TensorType, **attributes: Any) -> Any:
    """Run the kernel of a form; return its results."""
    table = kernel_table(type(backend).compile_form, sized=True)
    (entry,) = (each for each in table if each.spec.name == name)
    kernel = entry.function(
        TensorType(dt.of(x.dtype), x.shape), **attributes, backend=backend, out=out
    )
    return backend.to_host(kernel(backend.from_host(x)))


def test_groups_that_a_kernel_may_not_have_are_halved(backend, refusing):
    runtime = backend.runtime
    runtime.is_cpu = False
    refused = refusing(runtime, 4)
    x = np.random.default_rng(1).normal(size=(2, 700)).astype(np.float32)
    largest = run(backend, "Max", x, TensorType(dt.float32, (2,)), reduction_indices=(1,))
    np.testing.assert_array_equal(largest, x.max(1))
    sort = merging.make_sorter(runtime, dt.float32, 2, 700, descending=False)
    places = backend.to_host(sort(backend.from_host(x)))
    np.testing.assert_array_equal(places, np.argsort(x, axis=1))
    ones, out = np.ones((1, 700, 1), np.int32), TensorType(dt.int32, (1, 700, 1))
    sums = run(backend, "Cumsum", ones, out, axis=1, exclusive=False, reverse=False)
    np.testing.assert_array_equal(sums.reshape(-1), np.arange(1, 701))
    assert {8, 128} <= set(refused)


def test_log_softmax_keeps_the_digits_of_a_sure_guess(call, near):
    """log(1 + e**-20) is 2e-9, which a float32 sum of 1 and e**-20 cannot hold."""
    actual = call(activation.LOG_SOFTMAX, np.array([20.0, 0.0], np.float32))
    near(actual, [-math.log1p(math.exp(-20)), -20 - math.log1p(math.exp(-20))], "float32", ulp=4)

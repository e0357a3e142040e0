"""Vectors times matrices, as on CPUs and as on GPUs, against long doubles."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug_loops.forms import matrix_products
from tensorplug_loops.forms.table import Operand
from tensorplug_loops.templates import sized
from tensorplug_opencl.groups import loops

if TYPE_CHECKING:
    from tensorplug_opencl.backend import OpenCLBackend


@pytest.fixture(params=["cpu", "gpu", "gpu of small groups"])
def device(request, backend) -> OpenCLBackend:
    """Return a backend that treats its device as that kind."""
    if request.param != "cpu":
        runtime = backend.runtime
        runtime.description = replace(
            runtime.description,
            neighbours=True,
            vector_bytes=0,
            group_size=64 if request.param == "gpu" else 8,
            shared_bytes=1 << 14,
            cores=4,
        )
    return backend


def product(
    device: OpenCLBackend, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], before: int = 0
) -> np.ndarray[Any, Any]:
    """Return the product of two arrays that are dense, or whose last two axes are swapped."""
    buffers, types, turned = [], [], []
    for factor in (a, b):
        swapped = not factor.flags.c_contiguous
        dense = np.ascontiguousarray(factor.swapaxes(-1, -2) if swapped else factor)
        padded = np.concatenate([np.full(before, 99, dense.dtype), dense.ravel()])
        buffers.append(device.from_host(padded).view(dense.shape, before))
        types.append(TensorType(dt.of(dense.dtype), dense.shape))
        turned.append(swapped)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    form = matrix_products.product(
        *(Operand(type_, at) for at, type_ in enumerate(types)),
        TensorType(dt.of(a.dtype), (*batch, a.shape[-2], b.shape[-1])),
        transpose_a=turned[0],
        transpose_b=turned[1],
    )
    run = loops.compile_group(sized(form.group), device.runtime)
    assert run is not None
    (result,) = run(*buffers)
    return device.to_host(result)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("columns", [3, 70])
def test_sums_keep_their_bound(device, columns, turned):
    rng = np.random.default_rng(23)
    for inner in (5, 64, 1000, 30_000):
        a = rng.uniform(0.5, 1, (1, inner)).astype(np.float32)  # of one sign: nothing cancels
        b = np.full((columns, inner), 1 / 3, np.float32)
        b = b.T if turned else np.ascontiguousarray(b.T)
        exact = a.astype(np.longdouble) @ b
        off = np.abs(product(device, a, b) - exact)
        assert (off <= np.finfo(np.float32).eps * math.log2(inner) * exact).all(), inner

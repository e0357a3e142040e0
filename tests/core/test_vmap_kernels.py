"""vmap of each kernel of the catalogue: equal to the stack of the kernel's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import ShapeError, TensorplugError

from .catalogue_calls import KERNELS
from .vmap_calls import BatchedCall, batched_calls

pytestmark = pytest.mark.usefixtures("on_the_cpu")

WITHOUT_TENSORS = {"Eye", "Fill", "LinSpace", "Range"}
DEPENDING_ON_DATA = {
    *("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5", "RaggedGather"),
    *("RaggedRange", "RaggedTensorToTensor", "SparseFillEmptyRows"),
    *("SparseSegmentMean", "SparseSegmentSum", "StringNGrams", "StringSplit", "Unique", "Where"),
}
"""The shapes of outputs depend on the data, so that examples could differ in shape."""

CASES = 12
SLOW = {"Igamma": 1, "Igammac": 1}  # cases: the formulas are long


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name not in WITHOUT_TENSORS])
def test_equal_to_the_stack(kernel: str) -> None:
    compared = refused = 0
    for number, call in enumerate(batched_calls(kernel, SLOW.get(kernel, CASES))):
        try:
            expected = call.one_by_one()
        except TensorplugError:  # a variant that the kernel does not accept
            continue
        axis = number % 3
        mapped = tp.vmap(call.run, in_axes=call.axes(axis))
        if kernel in DEPENDING_ON_DATA:
            try:
                mapped(*call.tensors(axis))
            except ShapeError as error:
                assert "depends on the data" in str(error)  # noqa: PT017  # some calls succeed
                refused += 1
                continue
        _compare(call, mapped(*call.tensors(axis)), expected)
        compared += 1
    assert refused if kernel in DEPENDING_ON_DATA else compared, "no call was compared"


def _compare(call: BatchedCall, found: Any, expected: Any) -> None:
    for output, rows in zip(found, zip(*expected, strict=True), strict=True):
        wanted = np.stack([row.numpy() for row in rows])
        actual = output.numpy()
        assert actual.shape == wanted.shape, call
        assert output.dtype is rows[0].dtype, call
        if output.dtype not in dt.INEXACT:
            np.testing.assert_array_equal(actual, wanted, str(call))
            continue
        wide: Any = np.complex128 if output.dtype in dt.COMPLEX else np.float64
        wanted, actual = wanted.astype(wide), actual.astype(wide)
        # Products and sums may be in another order, or in a larger call with another algorithm.
        eps = float(output.dtype.eps) if output.dtype in dt.FLOATING else 2.0**-23
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
        close = np.isclose(actual, wanted, rtol=64 * eps, atol=16 * eps * largest, equal_nan=True)
        assert close.all(), call

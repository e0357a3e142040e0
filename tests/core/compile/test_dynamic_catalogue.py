"""Dynamic sizes of every kernel: where padding is allowed, the suite's cases give what they give.

The sizes of the cases are small, and most are in the series. So here every size is padded, by 3.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import DataNeededError, RecompileWarning, TensorplugError
from tensorplug.plugin import dispatch, dispatch_multiple
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.floats import finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_the_cpu")]

LARGEST = 1 << 14  # elements of an input
CASES = 4  # per kernel and dtype

NEVER_PADDED = {
    # Shapes that are attributes: the function asks for the same ones at each size.
    *("BroadcastTo", "RandomBits", "RandomExponential", "RandomIntegers", "RandomNormal"),
    *("RandomUniform", "SparseToDense", "StridedSliceGrad"),
    # Without inputs, or the shape depends on the data.
    *("Eye", "Fill", "LinSpace", "Range", "Unique", "Where"),
    *("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5"),
    *("RaggedGather", "RaggedRange", "RaggedTensorToTensor", "SparseFillEmptyRows"),
    *("SparseSegmentMean", "SparseSegmentSum", "StringNGrams", "StringSplit"),
    # On the host.
    *("BroadcastArgs", "Cholesky", "Eig", "LogMatrixDeterminant", "Lu"),
    *("MatrixDeterminant", "MatrixInverse", "MatrixSolve", "MatrixTriangularSolve"),
    *("PseudoInverse", "Qr"),
    *("SelfAdjointEigV2", "SparseReshape", "Svd"),
    "Diag",  # its decomposition merges the padded axis
}
SELDOM = {  # shapes or places are attributes of most cases, or axes are merged
    *("Bitcast", "DepthwiseConv2dNativeBackpropInput", "FusedDepthwiseConv2D", "Multinomial"),
    *("Reshape", "TensorScatterUpdate", "Tile"),
}


@dataclass
class Call:
    """A case of a kernel, with the dynamic axes of its tensors.

    ``further``: whether it is asked only as long as no other call was padded.
    """

    spec: Any
    case: Any
    axes: list[list[int]]
    further: bool

    def tensors(self) -> list[Any]:
        return [tp.asarray(array) for array in arrays(self.case)]

    def run(self, tensors: Any) -> list[Any]:
        rest = iter(tensors)
        inputs = [
            [next(rest) for _ in given]
            if isinstance(given, list)
            else None
            if given is None
            else next(rest)
            for given in self.case.inputs
        ]
        if self.spec.multiple_outputs:
            return list(dispatch_multiple(self.spec, *inputs, **self.case.attributes))
        return [dispatch(self.spec, *inputs, **self.case.attributes)]


def arrays(case: Any) -> list[Any]:
    listed = [given if isinstance(given, list) else [given] for given in case.inputs]
    return [array for members in listed for array in members if array is not None]


def calls(entry: Any) -> Iterator[Call]:
    """Yield calls in which axes of one size are dynamic: all, the first ones, the last ones."""
    expected = [dtype for dtype in (dt.float32, dt.int32) if dtype in entry.dtypes]
    sampled, others = [], []
    for dtype in expected or entry.dtypes[:1]:
        cases = [
            case
            for case in cases_of(entry, Row(entry.spec.name, dtype.name, "native"), 0)
            if not isinstance(case.expected, type)
            and not case.period
            and not case.alike  # results that are nearly 0: only rounding is left of them
            and all(array.size <= LARGEST for array in arrays(case))
        ]
        stride = max(1, len(cases) // CASES)
        sampled += [(case, False) for case in cases[::stride][:CASES]]
        others += [(case, True) for at, case in enumerate(cases) if at % stride]
    for case, further in sampled + others:
        given = arrays(case)
        for size in sorted({n for array in given for n in array.shape if n >= 2})[:3]:
            places = [[at for at, n in enumerate(x.shape) if n == size] for x in given]
            choices = (places, [at[:1] for at in places], [at[-1:] for at in places])
            for axes in {str(choice): choice for choice in choices}.values():
                yield Call(entry.spec, case, axes, further)


@pytest.mark.parametrize("kernel", sorted(entries()))
def test_padded_kernels_give_the_exact_results(kernel, monkeypatch):
    module = import_module("tensorplug.compile.dynamic.sizes")
    monkeypatch.setattr(module, "padded_size", lambda n: n + 3 if n >= 2 else n)
    padded = 0
    for call in calls(entries()[kernel]):
        if call.further and (padded or kernel in NEVER_PADDED | SELDOM):
            break
        tensors = call.tensors()
        try:
            expected = call.run(tensors)
        except TensorplugError:  # a dtype that the backend lacks
            continue
        compiled = tp.compile(call.run, dynamic={"tensors": call.axes})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecompileWarning)
                result = compiled(tensors)
        except DataNeededError:
            continue
        padded += any(each.programs for each in compiled._dynamic._templates.values())
        for got, value in zip(result, expected, strict=True):
            assert_same(got, value, f"{call.case.id}, {call.axes}")
    if kernel not in SELDOM:
        assert bool(padded) is (kernel not in NEVER_PADDED)


def assert_same(got: Any, value: Any, where: str) -> None:
    assert got.type == value.type, where
    a, b = np.asarray(got.numpy()), np.asarray(value.numpy())
    if kind_of(a.dtype) not in "fc":
        assert np.array_equal(a, b), where
        return
    eps = float(finfo(a.dtype).eps)
    wide: Any = np.complex128 if kind_of(a.dtype) == "c" else np.float64
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        a, b = a.astype(wide), b.astype(wide)
    largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    assert np.allclose(a, b, rtol=64 * eps, atol=16 * eps * largest, equal_nan=True), where

"""Tangent rules: the tangent of every kernel is its derivative along a direction.

At the points of gradients, tangents are compared with central differences of the kernel, and at
kinks with the transpose of its gradient.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.gradient_points import (
    OF_SYMMETRIC,
    POINTS,
    SUITE_KINKS,
    as_function,
    of_the_suite,
)

import tensorplug as tp
from tensorplug.autodiff import pushforward
from tensorplug.autodiff.pushforward import Pushforward, has_tangent
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context, use_context

if TYPE_CHECKING:
    from tests.core.support.samples import Case

pytestmark = pytest.mark.usefixtures("on_the_cpu")

STEP = 2.0**-14


class Recorder:
    """Keeps the calls of kernels: plans, inputs and outputs."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def record(self, plan: Any, inputs: Any, outputs: Any) -> None:
        self.calls.append((plan, inputs, list(outputs)))


def direction(x: np.ndarray, salt: int) -> np.ndarray:
    """Return numbers between -1 and 1, the same for the same shape."""
    random = np.random.default_rng(salt + x.size)
    result = random.uniform(-1, 1, x.shape)
    if x.dtype.kind == "c":
        result = result + 1j * random.uniform(-1, 1, x.shape)
    return result.astype(x.dtype)


def directions(case: Case) -> dict[str, Any]:
    """Return a direction for each input that the case differentiates."""
    result: dict[str, Any] = {}
    for salt, name in enumerate(case.wrt):
        given = case.inputs[name]
        several = isinstance(given, list)
        listed = [direction(np.asarray(x), salt) for x in (given if several else [given])]
        if case.kernel in OF_SYMMETRIC:  # they read one triangle
            listed = [(x + x.swapaxes(-1, -2).conj()) / 2 for x in listed]
        result[name] = listed if several else listed[0]
    return result


def call(case: Case, inputs: dict[str, Any]) -> Any:
    """Return plan, inputs and outputs of the case's kernel at ``inputs``."""
    given = dict(inputs)
    if case.kernel == "MaxPoolGrad":
        given["output"] = tp.run_kernel("MaxPool", {"x": given["input"]}, case.attributes)
    recorder = Recorder()
    with use_context(current_context().recorded_by(recorder)):
        tp.run_kernel(case.kernel, given, case.attributes)
    return recorder.calls[-1]


def pushed(case: Case, along: dict[str, Any]) -> list[Any]:
    """Return the tangents of the outputs."""
    plan, inputs, outputs = call(case, case.inputs)
    assert plan.spec.name == case.kernel
    tangents = [
        None
        if name not in along
        else [tp.asarray(x) for x in along[name]]
        if isinstance(along[name], list)
        else tp.asarray(along[name])
        for name in plan.spec.input_names
    ]
    push = Pushforward(plan, [has_tangent(tangent) for tangent in tangents])
    result = push(inputs, outputs, tangents)
    for tangent, output in zip(result, outputs, strict=True):
        assert tangent is None or tangent.type == output.type
    return result


def differences(case: Case, along: dict[str, Any]) -> list[np.ndarray]:
    """Return central differences of the outputs, with an error of the fourth power of the step."""

    def at(step: float) -> list[np.ndarray]:
        moved = dict(case.inputs)
        for name, direction_ in along.items():
            x = moved[name]
            if isinstance(x, list):
                moved[name] = [a + step * b for a, b in zip(x, direction_, strict=True)]
            else:
                moved[name] = np.asarray(x + step * direction_)
        return [output.numpy() for output in call(case, moved)[2]]

    return [
        ((a - b) * (2 / 3) - (c - d) * (1 / 12)) / STEP if a.dtype.kind in "fc" else a
        for a, b, c, d in zip(*(at(k * STEP) for k in (1, -1, 2, -2)), strict=True)
    ]


def by_kernel(cases: list[Case]) -> dict[str, list[Case]]:
    result = defaultdict(list)
    for case in cases:
        result[case.kernel].append(case)
    return result


SMOOTH = by_kernel(POINTS)
# The phases of complex vectors are arbitrary: differences of vectors mean nothing.
PHASES = {"SelfAdjointEigV2", "Svd"}
COMPLEX = by_kernel([c for c in of_the_suite(dt.complex128)[0] if c.kernel not in PHASES])
KINKS = by_kernel(SUITE_KINKS)


@pytest.mark.parametrize("kernel", sorted(SMOOTH))
def test_tangents_are_derivatives(kernel: str) -> None:
    compare(SMOOTH[kernel])


@pytest.mark.parametrize("kernel", sorted(COMPLEX))
def test_tangents_of_complex_numbers_are_derivatives(kernel: str) -> None:
    compare(COMPLEX[kernel])


def compare(cases: list[Case]) -> None:
    """Compare tangents with differences, along all inputs together, and along each alone."""
    for case in cases:
        full = directions(case)
        for along in (full, *({name: full[name]} for name in full if len(full) > 1)):
            for tangent, slope in zip(pushed(case, along), differences(case, along), strict=True):
                if slope.dtype.kind not in "fc":
                    assert tangent is None
                    continue
                got = np.zeros_like(slope) if tangent is None else tangent.numpy()
                assert got.shape == slope.shape
                bound = 1e-8 * max(1.0, np.max(np.abs(slope), initial=0.0))
                np.testing.assert_allclose(got, slope, rtol=0, atol=bound, err_msg=str(case))


@pytest.mark.parametrize("kernel", sorted(KINKS))
def test_tangents_at_kinks_are_those_of_the_gradients(kernel: str) -> None:
    for case in KINKS[kernel]:
        along = directions(case)
        f, primals = as_function(case)
        made = f(*map(tp.asarray, primals))
        zeros = tp.tree_map(tp.zeros_like, made)
        back = tp.vjp(f, *primals, unconnected="zeros")[1]
        _, push = tp.vjp(back, zeros, unconnected="zeros")
        expected = push(tuple(along[name] for name in case.wrt))[0]
        result = [x for x in pushed(case, along) if x is not None]
        listed = expected if isinstance(expected, list) else [expected]
        for got, right in zip(result, listed, strict=True):
            np.testing.assert_allclose(got.numpy(), right.numpy(), rtol=1e-12, atol=1e-12)


# Their tangents cost a pass back through their gradients' rules: kernels that are rare, or whose
# gradient is a kernel of its own.
TRANSPOSED = {
    *("Bincount", "Bitcast", "CropAndResize", "Cumprod", "DenseBincount", "Dequantize"),
    *("Dilation2D", "Eig", "GRU", "GRUGrad", "LRN", "LRNGrad", "LSTM", "LSTMGrad"),
    *("NonMaxSuppressionV5", "PseudoInverse", "Qr", "QuantizedMatMul", "RaggedGather"),
    *("RaggedRange",),
    *("RaggedTensorToTensor", "ScaledDotProductAttentionGrad", "SelfAdjointEigV2"),
    *("SparseFillEmptyRows", "Svd", "TensorScatterReduce", "Transform", "Unique"),
}


def test_few_tangents_are_gradients_transposed(monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()
    transpose = pushforward._Transpose.__call__

    def noted(self: Any, *given: Any) -> Any:
        used.add(self._plan.spec.name)
        return transpose(self, *given)

    monkeypatch.setattr(pushforward._Transpose, "__call__", noted)
    for case in POINTS:
        pushed(case, directions(case))
    assert used == TRANSPOSED

"""Cases of other sizes and ranks, and gradients far from 0, that are derived from others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import flat
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.points.gradient_points import Point
from tensorplug_conformance.points.gradients import WrongGradientError, judge_gradient
from tensorplug_conformance.session import Session, engine_factory

_KNOWN = entries()


def shapes_of(kernel: str, mode: Any = "native") -> list[tuple[int, ...]]:
    cases = cases_of(_KNOWN[kernel], Row(kernel, "float32", mode), 0)
    return [array.shape for case in cases for array in flat(case.inputs)]


@pytest.mark.parametrize("kernel", ["Add", "Sum", "Softmax", "Concat", "Pack"])
def test_every_kernel_gets_tails_of_vectors_many_rows_and_high_ranks(kernel: str) -> None:
    shapes = shapes_of(kernel)
    counts = {int(np.prod(shape)) for shape in shapes}
    assert {15, 23, 31, 63} <= counts
    assert any(shape[:1] > (64,) and len(shape) > 1 for shape in shapes)
    assert {7, 8, 9} <= {len(shape) for shape in shapes}


@pytest.mark.parametrize("kernel", ["Sum", "ArgMax", "Softmax", "GatherV2", "Sort", "Concat"])
def test_long_axes_lie_first_and_last(kernel: str) -> None:
    long = [[n > 1 << 16 for n in shape] for shape in shapes_of(kernel) if len(shape) > 1]
    assert any(axes[0] for axes in long)
    assert any(axes[-1] for axes in long)


@pytest.mark.parametrize("kernel", ["Sum", "Transpose", "Multiply", "BatchMatMul", "Conv2D"])
def test_cubes_hide_no_axis_that_is_taken_for_another(kernel: str) -> None:
    cubes = [shape for shape in shapes_of(kernel) if len(shape) > 2 and len(set(shape)) == 1]
    assert any(len(shape) == 4 or len(shape) == 6 for shape in cubes)


@pytest.mark.parametrize("kernel", ["Multiply", "Select", "BatchMatMul", "Pow"])
def test_inputs_of_high_rank_are_stretched_by_turns(kernel: str) -> None:
    cases = cases_of(_KNOWN[kernel], Row(kernel, "float32", "native"), 0)
    fronts = [[array.shape[:5] for array in flat(case.inputs)] for case in cases]
    assert any({(2, 1, 3, 1, 2), (1, 3, 1, 2, 1)} <= set(front) for front in fronts)


def test_decompositions_are_spared_what_tries_the_division_of_work() -> None:
    native, decomposed = shapes_of("Softmax"), shapes_of("Softmax", "decomposed")
    assert max(max(shape, default=0) for shape in decomposed) < 1 << 16
    assert max(max(shape, default=0) for shape in native) > 1 << 16


def test_indices_stay_within_their_axis() -> None:
    entry = _KNOWN["GatherV2"]
    for case in cases_of(entry, Row("GatherV2", "float32", "native"), 0):
        if not case.refused:
            entry.answer(case)  # raises IndexError otherwise


def far_cases_of(kernel: str, dtype: str = "float64") -> dict[str, Any]:
    cases = cases_of(_KNOWN[kernel], Row(kernel, dtype, "gradient"), 0)
    return {case.id.rsplit(", ")[-1]: case for case in cases if case.relative}


@pytest.mark.parametrize(("kernel", "factor"), [("Exp", 1.001), ("Log", 1.001), ("Square", 1.001)])
@pytest.mark.parametrize("magnitude", ["far", "tiny"])
def test_a_gradient_that_is_off_far_from_0_is_seen(
    kernel: str, factor: float, magnitude: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(engine_factory(None), "cpu")
    case = far_cases_of(kernel)[magnitude]
    judge_gradient(session, _KNOWN[kernel], case)
    gradients = Point.gradients

    def wrong(point: Point, session: Session) -> list[list[Any]]:
        """Return gradients of which the least is wrong, however small it is beside the others."""
        ((slope,),) = gradients(point, session)
        slope[np.argmin(np.where(slope == 0, np.inf, abs(slope)))] *= factor
        return [[slope]]

    monkeypatch.setattr(Point, "gradients", wrong)
    with pytest.raises(WrongGradientError, match="where it is"):
        judge_gradient(session, _KNOWN[kernel], case)


def test_rows_without_points_far_from_0_say_why() -> None:
    lacking = {
        name
        for name, entry in _KNOWN.items()
        if entry.smooth is not None and dt.float64 in entry.dtypes and not entry.near_only
        if not far_cases_of(name)
    }
    # Their gradients are given by value, or they have none.
    assert lacking == {"FakeQuantize", "OnesLike", "ZerosLike"}


def test_a_corpus_knows_what_it_drew() -> None:
    corpus = Corpus(dt.float32)
    drawn, made = corpus.ordinary((3,)), np.zeros(3, np.float32)
    assert corpus.redrawn(drawn) is not None
    assert corpus.redrawn(made) is None
    indices = corpus.indices((4,), 5, signed=True)
    assert corpus.redrawn(indices) is None
    again = corpus.redrawn(indices, indices=True)
    assert again is not None
    assert again(corpus, (100,), {5: 9}).min() < -5

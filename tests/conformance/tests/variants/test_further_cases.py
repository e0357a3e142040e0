"""Cases that are drawn or derived: pairs of ranks, Einstein sums, millions of elements, reuse."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import flat
from tensorplug_conformance.cases.contraction import _drawn
from tensorplug_conformance.corpus import JUST_LARGER, VAST, Corpus
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.points.gradient_points import Point
from tensorplug_conformance.points.gradients import WrongGradientError, judge_gradient
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.reuse import mistaken, most_telling
from tensorplug_conformance.trying.rows import run_case, run_row
from tensorplug_conformance.variants.ranks import ranks_of

_KNOWN = entries()


def cases(kernel: str, dtype: str = "float32", mode: Any = "native") -> list[Any]:
    return list(cases_of(_KNOWN[kernel], Row(kernel, dtype, mode), 0))


@pytest.mark.parametrize("kernel", ["Add", "Less", "Select", "Atan2"])
def test_every_pair_of_ranks_occurs(kernel: str) -> None:
    assert set(product(range(6), repeat=2)) <= {ranks_of(case) for case in cases(kernel)}


def test_einstein_sums_have_letters_of_every_kind() -> None:
    sums = [(equation.partition("->"), shapes) for equation, shapes in _drawn()]
    terms = [[*left.split(","), result] for (left, _, result), _ in sums]
    used = [{letter for letter in "".join(some) if letter != "."} for some in terms]
    assert any(letters == {letter.upper() for letter in letters} for letters in used)
    assert any(len({letter.isupper() for letter in letters}) == 2 for letters in used)
    assert any(len(letters) > 8 for letters in used)
    assert {2, 3, 4, 5} == {len(some) for some in terms}
    assert max(len(shape) for _, shapes in sums for shape in shapes) <= 8


@pytest.mark.parametrize("kernel", ["Add", "Exp", "Sum", "Max", "Cumsum", "GatherV2", "Slice"])
def test_more_elements_than_float32_can_count(kernel: str) -> None:
    sizes = {max(x.size for x in flat(case.inputs)) for case in cases(kernel) if case.light}
    assert set(JUST_LARGER) <= sizes
    assert max(sizes) >= VAST


@pytest.mark.parametrize(
    "what", ["one element", pytest.param("one period", marks=pytest.mark.slow)]
)
def test_a_late_mistake_among_millions_is_seen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, entry = Session(engine_factory(None), "cpu"), _KNOWN["Neg"]
    (case,) = (one for one in cases("Neg") if one.id == "more than 2**24 elements")
    row = Row("Neg", "float32", "native")
    assert run_case(session, entry, row, case) is None
    read = session.read

    def wrong(tensor: Any) -> Any:
        result = read(tensor)
        result[-1, -1 if what == "one element" else slice(None)] += 1
        return result

    monkeypatch.setattr(session, "read", wrong)
    failure = run_case(session, entry, row, case)
    assert failure is not None
    assert "wrong; first at [4098, " in failure.message


@pytest.mark.parametrize("kernel", ["Exp", "Add", "Conv2D"])
def test_results_kept_under_an_address_and_first_elements_are_seen(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, spec = Session(engine_factory(None), "cpu"), _KNOWN[kernel].spec
    case = most_telling(cases(kernel))
    assert case is not None
    assert mistaken(session, spec, case) == ""
    call, kept = session.call, {}

    def remembers(spec: Any, operands: Any, attributes: Any) -> Any:
        arrays = [np.asarray(tensor._buffer) for tensor in flat(operands)]
        key = tuple((x.ctypes.data, x.reshape(-1)[:4].tobytes()) for x in arrays)
        if key not in kept:
            kept.clear()
            kept[key] = call(spec, operands, attributes)
        return kept[key]

    monkeypatch.setattr(session, "call", remembers)
    assert mistaken(session, spec, case).startswith("the result is that of ")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("magnitude", ["medium", "far", "large", "tiny"])
def test_gradients_of_the_cross_entropy_far_from_0(
    which: int, magnitude: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, entry = Session(engine_factory(None), "cpu"), _KNOWN["SoftmaxCrossEntropy"]
    (case,) = (
        case
        for case in cases("SoftmaxCrossEntropy", mode="gradient")
        if case.id.endswith(f", {magnitude}")
    )
    judge_gradient(session, entry, case)
    gradients = Point.gradients

    def wrong(point: Point, session: Session) -> list[list[Any]]:
        slopes = gradients(point, session)
        slopes[which][0] = slopes[which][0] * np.float32(1.001)
        return slopes

    monkeypatch.setattr(Point, "gradients", wrong)
    with pytest.raises(WrongGradientError):
        judge_gradient(session, entry, case)


def test_texts_differ_late() -> None:
    words = [word.encode() for word in Corpus(dt.string).edges().tolist()]
    for length in (40, 64, 256, 1024):
        assert any(
            a != b and len(a) >= length and a[:length] == b[:length]
            for a, b in product(words, repeat=2)
        )


def test_what_a_backend_has_no_dtype_for_is_not_tried_further() -> None:
    session, row = Session(engine_factory(None), "minimal"), Row("Cast", "uint8", "native")
    telling = most_telling(cases("Cast", "uint8"))
    assert telling is not None
    assert telling.attributes["dtype"] == "bfloat16"
    assert dt.bfloat16 not in session.device.backend.dtypes
    verdict = run_row(session, _KNOWN["Cast"], row, 0)
    assert (verdict.status, verdict.failed) == ("pass native", [])
    assert verdict.unsupported

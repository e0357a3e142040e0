"""Presentations: each case is called in several layouts, buffers and after several calls."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import specs
from tensorplug_conformance.case import MARK, Case, Presentation, flat
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.reporting.reproduction import reproduce
from tensorplug_conformance.selftest.kinds import circumstances
from tensorplug_conformance.selftest.sabotage import Saboteur, install
from tensorplug_conformance.session import Session, UnfaithfulLayoutError
from tensorplug_conformance.trying.rows import planned, run_row
from tensorplug_conformance.variants.covering import Offer, Pairs, cover, possible
from tensorplug_conformance.variants.histories import befores, previous
from tensorplug_conformance.variants.layouts import LAYOUTS, layouts_of

OFFERS = (
    Offer((0, 10), ((1, 2, 3), (4, 5))),
    Offer((0, 11), ((2, 3), (4, 5, 6))),
    Offer((7,), ((1,), (8,), (5, 6))),
)


def brute(offers: tuple[Offer, ...]) -> set[frozenset[int]]:
    """Return the possible pairs, found by writing all combinations down."""
    pairs = set()
    for offer in offers:
        for combination in np.ndindex(*(len(levels) for levels in offer.free)):
            chosen = [levels[at] for levels, at in zip(offer.free, combination, strict=True)]
            pairs |= {frozenset(pair) for pair in combinations((*offer.fixed, *chosen), 2)}
        pairs -= {frozenset(pair) for pair in combinations(offer.fixed, 2)}
    return pairs


def as_sets(pairs: Pairs) -> set[frozenset[int]]:
    return {
        frozenset((a, b))
        for a, others in enumerate(pairs.others)
        for b in range(others.bit_length())
        if others >> b & 1
    }


def test_a_plan_covers_all_pairs_that_are_possible() -> None:
    assert as_sets(possible(OFFERS)) == brute(OFFERS)
    plan = cover(OFFERS)
    pairs = Pairs(20)
    for at, chosen in plan:
        assert all(level in levels for level, levels in zip(chosen, OFFERS[at].free, strict=True))
        pairs.join(OFFERS[at].fixed, chosen)
    assert as_sets(pairs) == brute(OFFERS)
    assert len(plan) <= 14  # of 6 + 6 + 2 combinations


def test_once_every_level_occurs() -> None:
    plan = cover(OFFERS, once=True)
    free = {level for offer in OFFERS for levels in offer.free for level in levels}
    assert {level for _, chosen in plan for level in chosen} == free
    assert len(plan) < len(cover(OFFERS))


def test_what_is_covered_already_is_left_out() -> None:
    everything = tuple((a, b) for a in (1, 2, 3) for b in (4, 5))
    covered = Offer((0,), ((1, 2, 3), (4, 5)), covered=everything)
    assert cover((covered,)) == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_reads_back(cpu: Session, layout: Any) -> None:
    arrays = [
        np.arange(24.0, dtype="f4").reshape(2, 3, 4),
        np.repeat(np.arange(4.0, dtype="f4")[:, None], 6, 1),
        np.repeat(np.arange(4, dtype="i8")[None, :], 6, 0),
        np.repeat(np.arange(8.0, dtype="f4").reshape(2, 1, 4), 3, 1),
    ]
    fitting = [array for array in arrays if layout in layouts_of(array)]
    assert fitting
    for array in fitting:
        tensor = cpu.upload(array, layout)
        assert (tensor.dtype.name, tensor.shape) == (array.dtype.name, array.shape)
        np.testing.assert_array_equal(cpu.read(tensor), array)


LIES = [
    ("rows broadcast", (6, 4), lambda strides: strides[0] == 0 < strides[1]),
    ("columns broadcast", (4, 6), lambda strides: strides[1] == 0 < strides[0]),
    ("backwards", (3, 4), lambda strides: strides[0] < 0 and strides[1] == -4),
    ("by three", (3, 4), lambda strides: strides[1] == 12),
    ("columns sliced", (3, 4), lambda strides: strides[0] > 16 and strides[1] == 4),
    (
        "planes sliced",
        (2, 3, 4),
        lambda strides: strides[1:] == (16, 4) and strides[0] > 3 * strides[1],
    ),
    ("planes exchanged", (2, 3, 4), lambda strides: strides[1] > strides[0] > strides[2] == 4),
    ("turned", (2, 3, 4), lambda strides: strides[1] < strides[0] < strides[2]),
    ("column", (), lambda strides: strides == ()),
]


@pytest.mark.parametrize(("layout", "shape", "holds"), LIES, ids=[lie[0] for lie in LIES])
def test_a_layout_is_what_it_says_on_a_backend_with_views(
    cpu: Session, layout: Any, shape: tuple[int, ...], holds: Any
) -> None:
    array = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    if layout == "rows broadcast":
        array = np.repeat(array[:1], shape[0], 0)
    if layout == "columns broadcast":
        array = np.repeat(array[:, :1], shape[1], 1)
    assert holds(cpu.upload(array, layout)._buffer.strides)


def test_a_fault_of_a_layout_kernel_is_told_apart(cpu: Session) -> None:
    wrong = Saboteur("test", "Slice", lambda call: [array * 0 for array in call.clean()])
    with install(cpu, wrong), pytest.raises(UnfaithfulLayoutError, match="rows sliced input"):
        cpu.upload(np.arange(1.0, 5.0, dtype="f4"), "rows sliced")


CASE = Case("c", (np.arange(1, 31, dtype="f4").reshape(5, 6), np.arange(6, dtype="f4")))
CHANGED = {"last of a": 1, "one of b": 1, "digit of a": 1, "order of a": 2}


@pytest.mark.parametrize(("before", "count"), CHANGED.items())
def test_a_call_before_differs_in_few_elements_of_one_input(before: str, count: int) -> None:
    assert before in befores(specs.ADD, CASE)
    call = previous(specs.ADD, CASE, before)
    assert call is not None
    changes = [
        int(np.sum(new != old)) for new, old in zip(flat(call[0]), CASE.inputs, strict=True)
    ]
    assert changes == ([count, 0] if before.endswith("a") else [0, count])
    if before == "last of a":
        assert call[0][0].flat[-1] != CASE.inputs[0].flat[-1]  # type: ignore[union-attr]
    if before == "order of a":
        assert np.sum(call[0][0]) == np.sum(CASE.inputs[0])  # type: ignore[arg-type]


NARROWER = {"float16": 5, "float32": 10, "float64": 23, "complex64": 10}  # digits that are kept


@pytest.mark.parametrize("dtype", NARROWER)
@pytest.mark.parametrize("name", "abcdef")  # which decides whether digits are rounded or cut off
def test_a_call_before_has_all_numbers_in_fewer_digits(dtype: str, name: str) -> None:
    x = np.array([1.0, 1.3, -2.7, 1e-3, 1 / 3, -1e4]).astype(dtype)
    case = Case(name, (x, x))
    assert "rounding of a" in befores(specs.ADD, case)
    shorter: Any = previous(specs.ADD, case, "rounding of a")[0][0]  # type: ignore[index]
    assert (shorter.dtype, shorter.shape) == (x.dtype, x.shape)
    assert (shorter.real != x.real).all()

    def cut(values: Any) -> Any:
        fraction, exponent = np.frexp(np.real(values).astype("f8"))
        return np.trunc(fraction * 2.0 ** (NARROWER[dtype] + 1)), exponent

    def rounded(values: Any) -> Any:
        fraction, exponent = np.frexp(np.real(values).astype("f8"))
        return np.ldexp(np.rint(fraction * 2.0 ** (NARROWER[dtype] + 1)), exponent)

    same = [
        np.array_equal(cut(shorter), cut(x)),
        np.array_equal(rounded(shorter), rounded(x)),
    ]
    assert any(same)


def test_a_call_before_has_all_signs_changed() -> None:
    call = previous(specs.ADD, CASE, "sign of a")
    assert call is not None
    np.testing.assert_array_equal(call[0][0], -CASE.inputs[0])  # type: ignore[operator]
    unsigned = Case("c", (np.arange(3, dtype="u1"), np.arange(3, dtype="u1")))
    assert "sign of a" not in befores(specs.ADD, unsigned)
    assert "rounding of a" in befores(specs.ADD, unsigned)


def test_calls_before_are_only_those_that_the_spec_takes() -> None:
    index = Case("c", (np.zeros((3, 4), "f4"), np.array([1, 0, 2])), {"axis": 0})
    names = befores(specs.GATHER_V2, index)
    assert "swapped" not in names
    assert not {"digit of indices", "one of indices"} & set(names)
    assert "order of indices" in names
    assert {"swapped", "dtype"} <= set(befores(specs.ADD, CASE))


def rows_of(*rows: tuple[str, str, Any]) -> list[Row]:
    return [Row(*row) for row in rows]


@pytest.mark.parametrize(
    "row",
    rows_of(
        ("Sub", "float32", "native"),
        ("Concat", "int32", "native"),
        ("Sum", "float32", "native"),
    ),
    ids=str,
)
def test_a_row_covers_all_pairs_and_its_inputs_see_every_layout(cpu: Session, row: Row) -> None:
    entry = entries()[row.kernel]
    verdict = run_row(cpu, entry, row, 0)
    assert verdict.status == "pass native", verdict.failures
    assert verdict.pairs[0] == verdict.pairs[1] > 300
    assert verdict.coverage["before x layout"][1] >= 100
    plan = planned(entry, row, cases_of(entry, row, 0))
    seen = {layout for case in plan.cases for p in case.presentations for _, layout in p.layouts}
    assert seen | {"dense"} == set(LAYOUTS)


def test_the_plan_is_the_same_every_time() -> None:
    row = Row("Multiply", "float32", "native")
    entry = entries()["Multiply"]
    first, second = (planned(entry, row, cases_of(entry, row, 0)).cases for _ in range(2))
    assert [case.presentations for case in first] == [case.presentations for case in second]


def test_other_dtypes_and_decomposed_rows_see_each_layout_once() -> None:
    entry = entries()["Sub"]

    def count(dtype: str) -> int:
        row = Row("Sub", dtype, "native")
        cases = planned(entry, row, cases_of(entry, row, 0)).cases
        return sum(len(case.presentations) for case in cases)

    assert len(LAYOUTS) <= count("int64") < count("int32") / 5


KERNELS = ("Sub", "Concat", "BatchMatMul")
# Each kind with one of the kernels; the self test tries all with every kernel at night.
CHEATS = [(kind.name, KERNELS[at % 3]) for at, kind in enumerate(circumstances.KINDS)]


@pytest.mark.parametrize(("kind", "kernel"), CHEATS)
def test_circumstances_are_caught(cpu: Session, kind: str, kernel: str) -> None:
    (its_kind,) = (one for one in circumstances.KINDS if one.name == kind)
    entry = entries()[kernel]
    (saboteur,) = its_kind.saboteurs(entry)
    with install(cpu, saboteur):
        verdict = run_row(cpu, entry, Row(kernel, saboteur.dtype, "native"), 0)
    assert verdict.status == "fail"


def test_a_failure_names_its_presentation_and_can_be_repeated(
    cpu: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    (kind,) = (one for one in circumstances.KINDS if one.name == "wrong where backwards")
    entry, row = entries()["Tanh"], Row("Tanh", "float32", "native")
    (saboteur,) = kind.saboteurs(entry)
    with install(cpu, saboteur):
        verdict = run_row(cpu, entry, row, 0)
    named = [failure.case for failure in verdict.failures if MARK in failure.case]
    assert named
    base, _, presentation_id = named[0].partition(MARK)
    assert base in verdict.failed
    assert Presentation.of(presentation_id).id == presentation_id
    assert reproduce("cpu", "Tanh", "float32", "native", named[0]) == 0  # the honest kernel
    assert named[0] in capsys.readouterr().out


@pytest.mark.parametrize("text", ["x=nowhere, before=nothing", "buffers=many, before=nothing", ""])
def test_what_is_no_presentation_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        Presentation.of(text)


def test_equal_inputs_and_overlapping_ones_are_cases() -> None:
    entry = entries()["Sub"]
    cases = cases_of(entry, Row("Sub", "float32", "native"), 0)
    equal = [case for case in cases if case.alike and not case.overlapping]
    assert equal
    for case in equal:
        first, second = flat(case.inputs)
        np.testing.assert_array_equal(first, second)
    parts = {case.id.rpartition(", ")[2]: case.inputs for case in cases if case.overlapping}
    for what, holds in PARTS.items():
        (operands,) = (
            flat(inputs) for name, inputs in parts.items() if name.startswith(f"{what} a")
        )
        assert holds(*operands), what


_same = partial(np.array_equal, equal_nan=True)
PARTS: dict[str, Any] = {
    "overlapping": lambda x, y: _same(x.reshape(-1)[1:], y.reshape(-1)[:-1]),
    "overlapping backwards": lambda x, y: _same(x.reshape(-1)[:-1], y.reshape(-1)[1:]),
    "transposed": lambda x, y: _same(x.T, y) and x.ndim > 1,
    "reversed": lambda x, y: _same(x.reshape(-1)[::-1], y.reshape(-1)),
    "beginning": lambda x, y: _same(x[0], y),
    "column and row": lambda x, y: x.shape[1] == y.shape[0] == 1 and _same(x.T, y),
}


@pytest.mark.parametrize("what", PARTS)
def test_parts_of_one_lie_in_one_buffer(cpu: Session, what: str) -> None:
    x = np.arange(12.0, dtype="f4").reshape(3, 4)
    other = {
        "overlapping": np.roll(x.reshape(-1), -1).reshape(3, 4),
        "overlapping backwards": np.roll(x.reshape(-1), 1).reshape(3, 4),
        "transposed": x.T,
        "reversed": np.flip(x),
        "beginning": x[0],
        "column and row": x.reshape(1, -1),
    }[what]
    first = x.reshape(-1, 1) if what == "column and row" else x
    made = cpu.sharing([first, other], "overlapping", "dense")
    places = [tensor._buffer for tensor in made]
    assert np.may_share_memory(*places)
    for tensor, array in zip(made, (first, other), strict=True):
        np.testing.assert_array_equal(cpu.read(tensor), array)


def test_what_is_no_part_of_one_is_refused(cpu: Session) -> None:
    x = np.arange(6.0, dtype="f4")
    with pytest.raises(ValueError, match="no parts of one"):
        cpu.sharing([x, x * 2], "overlapping", "dense")

"""Case tables: what extension authors fill, and the completeness of the suite's own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tensorplug.plugin import RegistrationError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug.plugins.catalogue import catalogue
from tensorplug_conformance import Case, CaseTable, Corpus
from tensorplug_conformance.case_entry import row_dtypes
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.denominator import Selection, cases_of, entries, fingerprint, rows
from tensorplug_conformance.primitives import PRIMITIVES, REQUIRED_DTYPES
from tensorplug_conformance.variants.derivation import all_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE = np.array([1.0], dtype=np.float32)


def test_every_kernel_of_the_catalogue_has_cases_and_a_tolerance() -> None:
    names = {spec.name for spec in catalogue()}
    assert names <= set(entries())
    assert set(tolerances().ulp) == set(entries())


def test_rows_have_a_fixed_order_also_where_a_table_gives_a_set_of_dtypes() -> None:
    table = CaseTable()
    table.of(specs.NEG, oracle=np.negative, dtypes=dt.NUMERIC)(lambda _corpus: [])
    for entry in (*table, *entries().values()):
        names = [dtype.name for dtype in entry.dtypes]
        assert names == sorted(names)


def test_primitives_are_41_kernels_of_the_catalogue() -> None:
    assert len(PRIMITIVES) == 41
    assert {spec.name for spec in catalogue()} >= PRIMITIVES
    assert {"bool", "int32", "float32"} == REQUIRED_DTYPES


def test_level_2_has_every_primitive_in_every_dtype_it_can_see() -> None:
    listed = {(row.kernel, row.dtype) for row in rows(2, entries())}
    for spec in catalogue():
        if spec.name in PRIMITIVES and spec.name != "Range":
            assert {name for kernel, name in listed if kernel == spec.name} == {
                row_dtype.name for row_dtype in row_dtypes(spec)
            }


def test_denominator_does_not_change_between_calls_but_with_the_seed_it_stays() -> None:
    known = entries()
    chosen = [row for row in rows(2, known) if Selection(("A*",)).takes(row)]
    first = fingerprint(chosen, known, 0)
    assert first == fingerprint(chosen, known, 0)
    assert first == fingerprint(chosen, known, 7)  # a seed changes numbers, never cases
    assert first != fingerprint(chosen[1:], known, 0)


def test_cases_are_drawn_reproducibly() -> None:
    known = entries()
    row = rows(2, known)[0]
    one, two, other = (cases_of(known[row.kernel], row, seed) for seed in (0, 0, 1))
    odd = [case.id for case in one].index("odd")
    assert np.array_equal(one[odd].inputs[0], two[odd].inputs[0])  # type: ignore[arg-type]  # arrays
    assert not np.array_equal(one[odd].inputs[0], other[odd].inputs[0])  # type: ignore[arg-type]  # arrays


# Kernels of which some calls have another dtype than their row: what the call lacks.
OTHERWISE = {"Bincount": "weights", "DenseBincount": "weights", "Fill": "a number, but a text"}


@pytest.mark.parametrize("dtype", [dt.bool_, dt.int32, dt.float32], ids=lambda dtype: dtype.name)
def test_the_dtype_of_a_row_is_that_of_its_calls_as_of_a_registration(dtype: dt.DType) -> None:
    """So ``dtypes=`` of a kernel, of a case table and of a report mean the same."""
    for name, entry in entries().items():
        if dtype not in entry.dtypes or name in OTHERWISE:
            continue
        for case in itertools.islice(entry.generate(Corpus(dtype, 0, name)), 12):
            if not case.refused:
                _, outputs = entry.spec.resolve(case.types, case.attributes)
                assert entry.spec.dtype_of(case.types, outputs) is dtype, (name, case.id)


def test_leading_input_decides_the_rows() -> None:
    assert set(row_dtypes(specs.SCATTER_ND)) == dt.NUMERIC
    assert (
        set(row_dtypes(specs.EXP)) == dt.INEXACT
    )  # integers become floats before a kernel sees them
    assert set(row_dtypes(specs.ADD)) == dt.NUMERIC


def test_edges_hold_what_they_promise() -> None:
    edges = Corpus(dt.float32).edges()
    assert np.isnan(edges).any()
    assert np.isposinf(edges).any()
    assert np.isneginf(edges).any()
    assert (np.signbit(edges) & (edges == 0)).any()
    assert ((np.abs(edges) > 0) & (np.abs(edges) < np.finfo(np.float32).tiny)).any()
    for dtype in dt.INTEGER:
        limits = np.iinfo(dtype.numpy)
        assert {limits.min, limits.max} <= set(Corpus(dtype).edges().tolist())


def _one(_corpus: Corpus) -> Iterator[Case]:
    yield Case("one", (ONE,))


def _twins(_corpus: Corpus) -> Iterator[Case]:
    yield Case("one", (ONE,), expected=(-ONE,))
    yield Case("one", (ONE,), expected=(-ONE,))


def test_a_kernel_has_cases_once() -> None:
    table = CaseTable()
    table.of(specs.NEG, oracle=np.negative)(_one)
    with pytest.raises(RegistrationError, match="already"):
        table.of(specs.NEG, oracle=np.negative)(_one)


@pytest.mark.parametrize(
    ("generate", "message"),
    [(_one, "neither expected outputs nor an oracle"), (_twins, "two cases")],
)
def test_bad_cases_are_refused(generate: object, message: str) -> None:
    table = CaseTable()
    table.of(specs.NEG, dtypes=[dt.float32])(generate)  # type: ignore[type-var]  # functions of a corpus
    (entry,) = table
    with pytest.raises(RegistrationError, match=message):
        list(all_cases(entry, Corpus(dt.float32)))


def test_rows_of_data() -> None:
    table = CaseTable()
    table.rows(specs.NEG, dt.float32, [Case("one", (ONE,), expected=(-ONE,))], ulp={"*": 3.0})
    (entry,) = table
    assert [case.id for case in all_cases(entry, Corpus(dt.float32))] == ["one"]
    assert entry.dtypes == (dt.float32,)


def test_gradients_name_inputs_of_the_kernel() -> None:
    table = CaseTable()
    table.of(specs.NEG, oracle=np.negative)(_one)
    with pytest.raises(RegistrationError, match="are not inputs"):
        table.gradients(specs.NEG, "y")(_one)


def test_two_tables_for_one_kernel() -> None:
    table = CaseTable()
    table.of(specs.NEG, oracle=np.negative)(_one)
    with pytest.raises(ValueError, match="two case tables have cases for kernel 'Neg'"):
        entries([table])

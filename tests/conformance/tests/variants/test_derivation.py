"""Cases that are derived where a family lacks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.plugin import RegistrationError, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.oracle import reduction as oracle
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants.derivation import all_cases

if TYPE_CHECKING:
    from tensorplug_conformance.case_entry import CaseEntry


def entry_of(spec: Any, *inputs: Any, oracle: Any, ordinary: tuple[str, ...] = ()) -> CaseEntry:
    table = CaseTable()
    table.of(spec, oracle=oracle, ordinary=ordinary)(lambda _corpus: [Case("only", inputs)])
    (entry,) = table
    return entry


def derived_of(entry: CaseEntry, dtype: dt.DType) -> dict[str, Case]:
    return {case.id: case for case in all_cases(entry, Corpus(dtype)) if case.id != "only"}


def test_each_input_gets_special_values_one_at_a_time() -> None:
    row = np.arange(6, dtype=np.float32)
    derived = derived_of(entry_of(specs.ADD, row, row[::-1].copy(), oracle=np.add), dt.float32)
    assert [name for name in derived if "stepped" not in name and "sliced" not in name] == [
        f"only, {what} in {name}"
        for name in "ab"
        for what in ("NaN", "infinities", "close values")
    ]
    a, b = derived["only, NaN in b"].inputs
    assert np.array_equal(a, row)
    assert np.isnan(b).sum() == 1
    a, _ = derived["only, infinities in a"].inputs
    assert set(a[np.isinf(a)]) == {np.inf, -np.inf}
    a, _ = derived["only, close values in a"].inputs
    assert np.unique(a).size == a.size
    assert np.unique(a.astype(np.float16)).size < a.size


def _flush(x: Any) -> Any:
    return np.where(abs(x) < np.finfo(x.dtype).smallest_normal, x.dtype.type(0), x)


@pytest.mark.parametrize(
    ("what", "lost"),
    [
        ("close values", lambda x: x.astype(np.float32).astype(np.float64)),
        ("subnormals", _flush),
    ],
)
def test_kernels_that_pick_elements_get_some_of_which_it_matters(what: str, lost: Any) -> None:
    row = np.array([3.0, -1.0, 1 + 2.0**-50, 1.0, 5e-324])  # present, and never the least number
    derived = derived_of(entry_of(specs.ARG_MIN, row, oracle=oracle.arg_min), dt.float64)
    assert f"only, {what} in x" not in derived
    (x,) = derived[f"only, telling {what} in x"].inputs
    assert np.argmin(lost(x)) != np.argmin(x)
    moved = derived_of(entry_of(specs.NEG, row, oracle=np.negative), dt.float64)
    assert not any("telling" in name for name in moved)


def test_integers_get_what_no_float_holds() -> None:
    row = np.arange(9, dtype=np.int64)
    x = derived_of(entry_of(specs.NEG, row, oracle=np.negative), dt.int64)[
        "only, far integers in x"
    ]
    values = x.inputs[0]
    assert np.any(values.astype(np.float64).astype(object) != values.astype(object))
    assert values.max() == np.iinfo(np.int64).max


def test_an_ordinary_input_keeps_its_values() -> None:
    row = np.arange(6, dtype=np.float32)
    entry = entry_of(specs.ADD, row, row, oracle=np.add, ordinary=("a",))
    assert not any(" in a" in name for name in derived_of(entry, dt.float32))
    with pytest.raises(RegistrationError, match="'c'"):
        entry_of(specs.ADD, row, row, oracle=np.add, ordinary=("c",))


def test_some_case_tells_the_last_element_from_the_one_before() -> None:
    row = np.array([np.inf, 1, 2, 3], dtype=np.float32)
    derived = derived_of(entry_of(specs.IS_INF, row, oracle=np.isinf), dt.float32)
    (turned,) = (case for case in derived.values() if "turned" in case.id)
    last = np.isinf(turned.inputs[0])[-2:]
    assert last[0] != last[1]


@pytest.mark.parametrize("layout", ["sliced", "transposed", "stepped"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 0), ()])
def test_every_layout_keeps_the_elements(layout: Any, shape: tuple[int, ...]) -> None:
    session = Session(engine_factory(None), "cpu")
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    tensor = session.upload(array, layout)
    assert np.array_equal(session.read(tensor), array)
    if layout == "stepped" and array.size:
        assert all(step < 0 for step in tensor._buffer.strides)


# No case can tell these apart: unsorted or unstable orders are open, kernels without inputs have
# the dtype of the row, and the input's shape is known anyway.
_OPEN = {"stable", "sorted", "dtype", "input_shape"}


def test_cases_try_more_than_one_value_of_every_attribute() -> None:
    lacking = []
    for entry in entries().values():
        if not entry.spec.attributes:
            continue
        names = [dtype.name for dtype in entry.dtypes]
        dtype = "float32" if "float32" in names else names[0]
        values: dict[str, set[str]] = {name: set() for name in entry.spec.attributes}
        for case in cases_of(entry, Row(entry.spec.name, dtype, "native"), 0):
            if not case.refused:
                types = [type_of(operand) for operand in case.inputs]
                for name, value in entry.spec.resolve(types, case.attributes)[0].items():
                    values[name].add(repr(value))
        lacking += [
            f"{entry.spec.name}.{name}"
            for name, tried in values.items()
            if len(tried) < 2 and name not in _OPEN
        ]
    assert not lacking


def type_of(operand: Any) -> Any:
    if isinstance(operand, list):
        return [type_of(array) for array in operand]
    return None if operand is None else TensorType(dt.of(operand.dtype), operand.shape)

"""A backend of bool, int32 and float32 alone: rows pass, or say that a dtype is missing."""

from __future__ import annotations

import pytest

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.rows import run_row
from tensorplug_example_minimal.backend import MinimalBackend

LEAST = frozenset({dt.bool_, dt.int32, dt.float32})


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(MinimalBackend, "dtypes", LEAST)
    return Session(engine_factory(None), "minimal")


@pytest.mark.parametrize(
    ("kernel", "dtype", "mode", "status"),
    [
        ("FakeQuantize", "float32", "decomposed", "pass decomposed"),
        ("FakeQuantize", "float32", "gradient", "pass gradient"),
        ("SearchSorted", "bool", "decomposed", "pass decomposed"),
        ("LowerBound", "bool", "decomposed", "pass decomposed"),
        ("UpperBound", "bool", "decomposed", "pass decomposed"),
        ("Transform", "int32", "decomposed", "pass decomposed"),  # to the nearest pixel
        ("QuantizedMatMul", "float32", "decomposed", "unsupported dtype"),  # int8
        ("Multinomial", "float32", "decomposed", "pass decomposed"),  # keys are int32
    ],
)
def test_the_least_dtypes_suffice(
    narrow: Session, kernel: str, dtype: str, mode: str, status: str
) -> None:
    verdict = run_row(narrow, entries()[kernel], Row(kernel, dtype, mode), 0)
    assert (verdict.status, verdict.failed) == (status, [])

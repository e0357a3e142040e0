"""Every form against the conformance suite's oracles, computed by the interpreter of groups."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import tables_of
from tensorplug.testing import isolated_engine
from tensorplug_conformance.case import flat
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying.rows import run_case
from tensorplug_loops import forms
from tensorplug_loops.forms.table import FormTable
from tensorplug_loops.kernels import kernel_table

from .interpreted import Interpreted

ENTRIES = entries()
NAMES = [form.spec.name for table in tables_of(forms, FormTable, "forms") for form in table]
SMALL = 1 << 12  # elements
DTYPES = (dt.float32, dt.bool_, dt.int32, dt.uint64)  # of these, what a kernel takes first


@pytest.fixture(scope="module")
def session():
    with isolated_engine() as engine:
        device = Interpreted()
        tp.register_backend(
            "interpreted", lambda: device, kernels=[kernel_table(device.compile_group)]
        )
        yield Session(lambda: engine, "interpreted")


def is_small(case):
    return all(array.size <= SMALL for array in flat(case.inputs))


@pytest.mark.parametrize("name", NAMES)
def test_form(name, session):
    entry = ENTRIES[name]
    dtypes = [dtype for dtype in DTYPES if dtype in entry.dtypes] or entry.dtypes[:1]
    failures, count = [], 0
    for dtype in dtypes[:2]:
        row = Row(name, dtype.name, "native")
        for case in entry.checked(entry.generate(Corpus(dtype, 0, name))):
            if is_small(case):
                count += 1
                failure = run_case(session, entry, row, case, aftermath=False)
                failures += (
                    [] if failure is None else [f"{dtype} {failure.case}: {failure.message}"]
                )
    assert count
    assert not failures, "\n".join(failures)

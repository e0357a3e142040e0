"""Every form against the conformance suite's oracles, by the interpreter of groups and by C."""

from __future__ import annotations

from itertools import islice

import pytest

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import tables_of
from tensorplug.testing import isolated_engine
from tensorplug_conformance.case import flat
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.interpreter import interpreter
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying.rows import run_case
from tensorplug_loops import forms, native
from tensorplug_loops.forms.table import FormTable
from tensorplug_loops.kernels import kernel_table

from .interpreted import Interpreted

ENTRIES = entries()
NAMES = [form.spec.name for table in tables_of(forms, FormTable, "forms") for form in table]
SMALL = 1 << 12  # elements
DTYPES = (dt.float32, dt.bool_, dt.int32, dt.uint64)  # of these, what a kernel takes first


WORDS = dt.BOOL | {dt.int32, dt.uint32, dt.float32}  # of a device without 64 bits
IN_C = dt.BOOL | dt.INTEGER | {dt.float32, dt.float64}


def opened(engine, *arguments, **limits):
    device = Interpreted(*arguments)
    table = kernel_table(Interpreted.compile_group, **limits)
    tp.register_backend(device.name, lambda: device, kernels=[table])
    return Session(lambda: engine, device.name)


@pytest.fixture(scope="module")
def session():
    with isolated_engine() as engine:
        yield opened(engine)


@pytest.fixture(scope="module")
def session_in_c():
    with pytest.MonkeyPatch.context() as environment, isolated_engine() as engine:
        environment.setenv("CFLAGS", "-O1")
        native.command.cache_clear()
        yield opened(engine, native.compile_group, IN_C)
        native.command.cache_clear()


@pytest.fixture(scope="module")
def session_of_words():
    with isolated_engine() as engine:
        yield opened(engine, interpreter, WORDS)


def is_small(case):
    return all(array.size <= SMALL for array in flat(case.inputs))


def check(session, name, dtypes, most=None):
    """Try a kernel's small cases in some dtypes, at most so many in each."""
    entry, failures, count = ENTRIES[name], [], 0
    for dtype in dtypes:
        row = Row(name, dtype.name, "native")
        cases = entry.checked(entry.generate(Corpus(dtype, 0, name)))
        for case in islice(filter(is_small, cases), most):
            count += 1
            failure = run_case(session, entry, row, case, aftermath=False)
            if failure is not None:
                failures.append(f"{dtype} {failure.case}: {failure.message}")
    assert count
    assert not failures, "\n".join(failures)


def dtypes_of(name):
    own = ENTRIES[name].dtypes
    return [dtype for dtype in DTYPES if dtype in own] or own[:1]


@pytest.mark.parametrize("name", NAMES)
def test_form(name, session):
    check(session, name, dtypes_of(name)[:2])


@pytest.mark.parametrize("name", ["RandomBits", "RandomUniform", "RandomIntegers", "Range"])
def test_form_without_numbers_of_64_bits(name, session_of_words):
    check(session_of_words, name, [each for each in ENTRIES[name].dtypes if each in WORDS])


@pytest.mark.parametrize(("name", "most"), [("Concat", 3), ("Pack", 3), ("TopK", 8)])
def test_what_needs_more_arrays_than_a_group_takes_is_several(name, most):
    arrays = set()

    def compile_group(group):
        arrays.add(len(group.inputs) + len(group.outputs))
        return interpreter(group)

    with isolated_engine() as engine:
        check(opened(engine, compile_group, arrays=most), name, [dt.int32, dt.float32])
    assert max(arrays) == most


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_form_in_c(name, session_in_c):
    check(session_in_c, name, dtypes_of(name)[:1], most=3)

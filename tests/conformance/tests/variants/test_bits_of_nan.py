"""Kernels that only move elements keep the bits of every NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Exactly
from tensorplug_conformance.comparing.compare import judge
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.variants.derivation import all_cases

_BITS = np.array([0x7FC12345, 0xFFC54321, 0x7F812345, 0xFF800001, 0x3F800000], np.uint32)


def test_a_kernel_moves_elements_if_it_takes_texts() -> None:
    known = entries()
    assert {"Identity", "Select", "Concat", "Transpose"} <= {
        n for n, e in known.items() if e.moves
    }
    assert not any(known[name].moves for name in ("Add", "Equal", "Sort", "Unique", "StringSplit"))


@pytest.mark.parametrize("dtype", [dt.float16, dt.float32, dt.float64, dt.complex64])
def test_each_kernel_that_moves_elements_has_a_case(dtype: dt.DType) -> None:
    for name, entry in entries().items():
        if not entry.moves or dtype not in entry.dtypes:
            continue
        items = [case for case in all_cases(entry, Corpus(dtype)) if "bits of NaN" in case.id]
        assert len(items) == 1, name
        (output, *_) = items[0].expected  # type: ignore[misc]  # not an exception
        assert isinstance(output, Exactly)
        assert len(cases_of(entry, Row(name, dtype.name, "native"), 0)) > 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda x: x + np.float32(0), "0x7fc12345"),  # quiet ones stay, signalling ones do not
        (lambda x: np.where(np.isnan(x), np.float32(np.nan), x), "0x7fc00000"),
        (lambda x: np.copysign(x, np.float32(1)), "0x7fc54321"),
    ],
)
def test_other_bits_are_seen(wrong: Any, said: str) -> None:
    x = _BITS.view(np.float32)
    type_ = TensorType(dt.float32, (5,))
    asked: Any = {"ulp": 0.5, "signed_zero": False}
    assert not judge(x.copy(), type_, Exactly(x), **asked).fault
    with np.errstate(invalid="ignore"):
        changed = wrong(x)
    assert not judge(changed, type_, x, **asked).fault  # as a number, each is a NaN
    fault = judge(changed, type_, Exactly(x), **asked).fault
    assert "have other bits; first at [" in fault
    if said != "0x7fc12345":
        assert f"got {said}" in fault


@pytest.mark.parametrize(
    "move",
    [
        lambda x: tp.where(x > 0, x, x),
        lambda x: tp.concat([x, x[::-1]]),
        lambda x: tp.pad(tp.reshape(x, (1, 5)), ((0, 1), (2, 0))),
        lambda x: tp.tile(tp.flip(x), (3,)),
        lambda x: tp.stack([x, x], axis=1)[1:, 0],
    ],
)
def test_compiled_programs_keep_them_too(move: Any) -> None:
    x = _BITS.view(np.float32)
    eager = move(tp.asarray(x)).numpy()
    compiled = tp.compile(move)(tp.asarray(x)).numpy()
    assert set(eager.ravel().view(np.uint32).tolist()) >= set(_BITS[1:].tolist())
    assert np.array_equal(eager.view(np.uint32), compiled.view(np.uint32))

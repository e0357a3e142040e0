"""Floats narrower than what is computed in: their limits, and what their bounds tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.comparing.compare import judge
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.floats import computing, epsilon, finfo, kind_of
from tensorplug_conformance.oracle import matrix_products as linalg
from tensorplug_conformance.oracle import reduction

BFLOAT16 = dt.bfloat16.numpy
F16, F32, F64, LONG = (np.dtype(name) for name in ("float16", "float32", "float64", "longdouble"))


def test_limits_of_bfloat16() -> None:
    about = finfo(BFLOAT16)
    assert (about.eps, about.nmant, about.minexp, about.maxexp) == (2.0**-7, 7, -126, 128)
    assert (about.tiny, about.smallest_normal) == (2.0**-126, 2.0**-126)
    assert (about.max, about.smallest_subnormal) == ((2 - 2.0**-7) * 2.0**127, 2.0**-133)


@pytest.mark.parametrize("dtype", [F16, F32, F64, LONG, np.dtype("complex64")], ids=str)
def test_limits_of_others_are_numpys(dtype: Any) -> None:
    assert finfo(dtype) is np.finfo(dtype)
    assert kind_of(dtype) == dtype.kind


@pytest.mark.parametrize(
    ("dtype", "wide"), [(BFLOAT16, F32), (F16, F32), (F32, F32), (F64, F64), (LONG, LONG)], ids=str
)
def test_what_computes(dtype: Any, wide: Any) -> None:
    assert computing(dtype) == wide
    assert epsilon(np.zeros(1, dtype)) == np.finfo(wide).eps
    assert kind_of(dtype) == "f"


def added_up(terms: Any, dtype: Any) -> Any:
    """Add up along the first axis, one after the other, in ``dtype``."""
    total = np.zeros(terms.shape[1:], dtype)
    for term in terms:
        total = (total + term.astype(dtype)).astype(dtype)
    return total


def a_sum(dtype: Any) -> Any:
    x = Corpus(dt.bfloat16).ordinary((300,), 0.0, 1.0)
    return added_up(x, dtype), reduction.total(x)


def a_sum_of_ones(dtype: Any) -> Any:
    x = np.ones(1 << 12, BFLOAT16)
    return added_up(x, dtype), reduction.total(x)


def a_mean(dtype: Any) -> Any:
    x = Corpus(dt.bfloat16).ordinary((300,), 0.0, 1.0)
    return added_up(x, dtype) / dtype.type(300), reduction.mean(x)


def a_product(dtype: Any) -> Any:
    a, b = (Corpus(dt.bfloat16, 0, name).ordinary((5, 5)) for name in "ab")
    terms = a.T[:, :, None].astype(F32) * b[:, None, :].astype(F32)
    return added_up(terms, dtype), linalg.batch_mat_mul(a, b)


@pytest.mark.parametrize("made", [a_sum, a_sum_of_ones, a_mean, a_product])
def test_bounds_ask_for_an_accumulator_of_float32(made: Any) -> None:
    for dtype, right in ((F32, True), (BFLOAT16, False)):
        result, reference = made(dtype)
        type_ = TensorType(dt.bfloat16, result.shape)
        rounded = np.asarray(result).astype(BFLOAT16)
        fault = judge(rounded, type_, reference, ulp=0.5, signed_zero=False).fault
        assert (fault == "") == right, fault


def test_no_kernel_may_be_off_by_more_than_an_ulp_of_bfloat16() -> None:
    known = entries().values()
    limits = [tolerances().of(entry, dt.bfloat16) for entry in known]
    assert max(limits) == 1
    assert min(limits) == 0
    assert all(
        limit <= tolerances().of(entry, dt.float32)
        for limit, entry in zip(limits, known, strict=True)
    )

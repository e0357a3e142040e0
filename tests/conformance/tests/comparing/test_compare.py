"""The comparison of outputs: what it must refuse, and what it must accept."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded
from tensorplug_conformance.comparing.compare import judge, judge_periods, same_bits, ulp_of

INF, NAN = np.inf, np.nan
F32 = np.float32
NEXT = np.nextafter(F32(1), F32(2))


def wide(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.longdouble)


@pytest.mark.parametrize(
    ("actual", "reference", "fault"),
    [
        pytest.param(np.array([1.0], F32), wide(1.0), "", id="equal"),
        pytest.param(np.array([[1.0]], F32), wide(1.0), "shape is", id="shape before values"),
        pytest.param(np.array([1.0]), wide(1.0), "dtype is float64", id="dtype before values"),
        pytest.param(np.array([NAN], F32), wide(NAN), "", id="NaN where NaN"),
        pytest.param(np.array([INF], F32), wide(NAN), "wrong", id="infinity for NaN"),
        pytest.param(np.array([NAN], F32), wide(1.0), "wrong", id="NaN for a number"),
        pytest.param(np.array([1.0], F32), wide(NAN), "wrong", id="number for NaN"),
        pytest.param(np.array([-INF], F32), wide(INF), "wrong", id="wrong infinity"),
        pytest.param(np.array([INF], F32), wide(1e39), "", id="overflow is infinite"),
        pytest.param(np.array([3.4e38], F32), wide(1e39), "wrong", id="overflow clipped"),
        pytest.param(np.array([NEXT], F32), wide(1.0), "1 ulp off", id="one ulp is too much"),
        pytest.param(np.array([1.0], F32), wide(1 + 2.0**-24), "", id="half an ulp"),
        pytest.param(np.array([-0.0], F32), wide(0.0), "sign of zero", id="wrong zero"),
        pytest.param(np.array([0.0], F32), wide(2.0**-149), "ulp off", id="flushed subnormal"),
    ],
)
def test_judge_of_floats(actual: np.ndarray, reference: np.ndarray, fault: str) -> None:
    type_ = TensorType(dt.float32, (1,))
    verdict = judge(actual, type_, reference, ulp=0.5, signed_zero=True).fault
    assert (fault in verdict) if fault else verdict == ""


@pytest.mark.parametrize(
    ("actual", "reference", "fault"),
    [
        pytest.param(complex(INF, 2), complex(INF, 2), "", id="equal"),
        pytest.param(complex(INF, 3), complex(INF, 2), "ulp off", id="the other part"),
        pytest.param(complex(-INF, 2), complex(INF, 2), "wrong", id="wrong infinity"),
        pytest.param(complex(2, INF), complex(INF, 2), "wrong", id="infinity of the other part"),
        pytest.param(complex(INF, NAN), complex(INF, 2), "wrong", id="NaN for a number"),
        pytest.param(complex(NAN, 3), complex(NAN, 2), "ulp off", id="number beside NaN"),
        pytest.param(complex(NAN, INF), complex(NAN, INF), "", id="no number"),
    ],
)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_parts_of_complex_numbers_beside_infinities(
    actual: complex, reference: complex, fault: str, shape: tuple[int, ...]
) -> None:
    result = np.full(shape, actual, np.complex64)
    right = np.full(shape, reference, np.clongdouble)
    said = judge(result, TensorType(dt.complex64, shape), right, ulp=0.5, signed_zero=True).fault
    assert (fault in said) if fault else said == ""


def test_bound_widens_and_an_infinite_bound_does_not() -> None:
    type_ = TensorType(dt.float32, (1,))
    actual = np.array([1.5], F32)
    assert (
        judge(actual, type_, Bounded(wide(1.0), wide(0.5)), ulp=0.5, signed_zero=False).fault == ""
    )
    for bound in (0.4, INF, NAN):
        reference = Bounded(wide(1.0), wide(bound))
        assert judge(actual, type_, reference, ulp=0.5, signed_zero=False).fault


def test_zero_signs_only_where_asked() -> None:
    type_ = TensorType(dt.float32, (1,))
    judgement = judge(np.array([-0.0], F32), type_, wide(0.0), ulp=0.5, signed_zero=False)
    assert judgement.fault == ""


def test_exact_dtypes_are_compared_exactly() -> None:
    type_ = TensorType(dt.int32, (2,))
    good, bad = np.array([1, 2], np.int32), np.array([1, 3], np.int32)
    assert judge(good, type_, good, ulp=99, signed_zero=False).fault == ""
    assert (
        "first at [1]: got 3, must be 2"
        in judge(bad, type_, good, ulp=99, signed_zero=False).fault
    )


@pytest.mark.parametrize(
    ("actual", "fault"),
    [
        pytest.param([1, NAN, 3, 1, NAN, 3, 1], "", id="the same again and again"),
        pytest.param([1, NAN, 3, 1, NAN, NEXT * 3, 1], "1 of 7 wrong; first at [5]", id="later"),
        pytest.param([1, NAN, 4, 1, NAN, 4, 1], "1 of 3 wrong; first at [2]", id="in all"),
        pytest.param([1, NAN, 3, 1, 0, 3, 1], "1 of 7 wrong; first at [4]", id="a number for NaN"),
        pytest.param([1, NAN, 3, 1, NAN, 3], "shape is [6], must be [7]", id="too short"),
    ],
)
def test_periods_are_judged_to_the_end(actual: list[float], fault: str) -> None:
    type_ = TensorType(dt.float32, (7,))
    result = np.array(actual, F32)
    verdict = judge_periods(result, type_, wide(1.0, NAN, 3.0), ulp=0.5, signed_zero=False).fault
    assert verdict[: len(fault)] == fault
    assert bool(verdict) == bool(fault)


def test_periods_may_differ_within_the_bound() -> None:
    type_ = TensorType(dt.float32, (4,))
    actual = np.array([1, 3, NEXT, 3], F32)
    reference = Bounded(wide(1.0, 3.0), wide(2.0**-23, 0.0))
    assert judge_periods(actual, type_, reference, ulp=0.5, signed_zero=False).fault == ""
    close = Bounded(wide(1.0, 3.0), wide(2.0**-25, 0.0))
    fault = judge_periods(actual, type_, close, ulp=0.5, signed_zero=False).fault
    assert fault.startswith("1 of 4 wrong; first at [2]")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", [1.0, 1.5, 2.0, 1000.0, 0.001])
def test_ulp_is_numpys_spacing(dtype: type, value: float) -> None:
    at = np.array([value], dtype=dtype)
    assert float(ulp_of(at, np.dtype(dtype))[0]) == float(np.spacing(at)[0])


def test_ulp_of_zero_is_the_smallest_subnormal() -> None:
    assert float(ulp_of(np.array([0.0]), np.dtype(np.float32))[0]) == 2.0**-149


def test_same_bits_tells_zeros_and_dtypes_apart() -> None:
    assert same_bits(np.array([NAN]), np.array([NAN]))
    assert not same_bits(np.array([0.0]), np.array([-0.0]))
    assert not same_bits(np.array([0]), np.array([0.0]))

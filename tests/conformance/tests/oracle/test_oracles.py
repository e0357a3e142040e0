"""The oracles against numbers computed by hand, or by another formula."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tensorplug_conformance.case import Bounded, Relation
from tensorplug_conformance.oracle import (
    creation,
    elementwise,
    movement,
    reduction,
    sorting,
    strings,
)
from tensorplug_conformance.oracle import matrix_products as linalg
from tensorplug_conformance.oracle.image import warping
from tensorplug_conformance.oracle.indexing import indexing
from tensorplug_conformance.oracle.nn import activation, convolution, pooling
from tensorplug_conformance.oracle.nn.windows import axis

I8, I32 = np.int8, np.int32
NAN, INF = np.nan, np.inf


def ints(*values: int, dtype: Any = I8) -> np.ndarray:
    return np.array(values, dtype=dtype)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        pytest.param(elementwise.add(ints(127), ints(1)), [-128], id="sums wrap"),
        pytest.param(elementwise.neg(ints(-128)), [-128], id="-INT_MIN"),
        pytest.param(elementwise.absolute(ints(-128)), [-128], id="|INT_MIN|"),
        pytest.param(
            elementwise.floor_div(ints(-7, 7, 5), ints(2, -2, 0)), [-4, -4, 0], id="floor"
        ),
        pytest.param(elementwise.floor_div(ints(-128), ints(-1)), [-128], id="INT_MIN // -1"),
        pytest.param(elementwise.mod(ints(-7, 7, 5), ints(2, -2, 0)), [1, -1, 0], id="mod"),
        pytest.param(
            elementwise.power(ints(2, -1, 0, 3), ints(-1, -3, -2, 5)), [0, -1, 0, -13], id="pow"
        ),
        pytest.param(
            elementwise.floor_div(floats(1.0, -3.5), floats(0.1, 2.0)), [9, -2], id="9, not 10"
        ),
        pytest.param(
            elementwise.mod(floats(-3.5, 3.5), floats(2.0, -2.0)), [0.5, -0.5], id="float mod"
        ),
        pytest.param(
            elementwise.maximum(floats(NAN, 1, 2), floats(1, NAN, 3)), [NAN, NAN, 3], id="max"
        ),
        pytest.param(
            elementwise.cast(floats(-1.9, 300, NAN, INF), dtype="int8"), [-1, 44, 0, 0], id="cast"
        ),
        pytest.param(
            elementwise.cast(floats(NAN, 0, 0.5), dtype="bool"), [True, False, True], id="to bool"
        ),
        pytest.param(reduction.total(np.array([True, True])), 2, id="booleans count"),
        pytest.param(
            reduction.extreme(largest=True, name="a")(floats(1, NAN)), NAN, id="NaN wins"
        ),
        pytest.param(reduction.arg_max(floats(1, 3, 3)), 1, id="first of equals"),
        pytest.param(reduction.arg_max(floats(1, NAN, 3, NAN)), 1, id="first NaN"),
        pytest.param(movement.slice_(ints(1, 2, 3, 4), begin=[1], size=[2]), [2, 3], id="slice"),
        pytest.param(
            movement.pad(ints(1), paddings=[[1, 2]], constant_value=7), [7, 1, 7, 7], id="pad"
        ),
        pytest.param(indexing.gather(ints(5, 6, 7), ints(-1, 0)), [7, 5], id="from the end"),
        pytest.param(
            indexing.scatter_nd(np.array([[0], [2], [0]]), ints(1, 2, 127), shape=(3,)),
            [-128, 0, 2],
            id="updates add up and wrap",
        ),
        pytest.param(
            creation.range_(start=5, stop=-4, step=-2, dtype="int8"), [5, 3, 1, -1, -3], id="down"
        ),
        pytest.param(
            linalg.batch_mat_mul(ints(1, 2).reshape(1, 2), ints(3, 4).reshape(2, 1)),
            [[11]],
            id="dot",
        ),
    ],
)
def test_by_hand(computed: Any, expected: Any) -> None:
    value = computed.value if isinstance(computed, Bounded) else computed
    assert np.shape(value) == np.shape(expected)
    np.testing.assert_array_equal(
        np.asarray(value, dtype=float), np.asarray(expected, dtype=float)
    )


def test_top_k_puts_nan_first_and_keeps_the_order_of_equals() -> None:
    values, indices = sorting.top_k(floats(1, 3, NAN, 3), k=4)
    np.testing.assert_array_equal(values, floats(NAN, 3, 3, 1))
    assert indices.tolist() == [2, 1, 3, 0]


def test_sum_bound_is_eps_log2_n_sum_of_terms() -> None:
    total = reduction.total(floats(1, -2, 3, -4))
    assert isinstance(total, Bounded)
    assert float(total.value) == -2.0
    assert float(total.bound) == pytest.approx(2.0**-23 * 2 * 10)


def test_wide_functions_agree_with_math() -> None:
    for name, function in (
        ("exp", math.exp),
        ("sin", math.sin),
        ("erf", math.erf),
        ("tanh", math.tanh),
    ):
        member = getattr(elementwise, name)(floats(0.5))
        assert float(member[0]) == pytest.approx(function(0.5), rel=1e-15)


def test_softmax_is_shift_invariant_and_sums_to_1() -> None:
    x = floats(1, 2, 3)
    one, two = activation.softmax(x), activation.softmax(x + np.float32(1000))
    assert float(one.value.sum()) == pytest.approx(1.0, rel=1e-15)
    np.testing.assert_allclose(one.value.astype(float), two.value.astype(float), rtol=1e-15)


@pytest.mark.parametrize(
    ("size", "taps", "stride", "dilation", "pad", "rounding", "before", "out"),
    [
        (5, 3, 1, 1, "valid", None, 0, 3),
        (5, 3, 2, 1, "same", None, 1, 3),
        (4, 2, 1, 1, "same", None, 0, 4),  # the odd element is added after
        (6, 3, 1, 2, "valid", None, 0, 2),
        (6, 3, 2, 1, (0, 0), "floor", 0, 2),
        (6, 3, 2, 1, (0, 0), "ceil", 0, 3),
        (4, 3, 2, 1, (1, 1), None, 1, 2),
    ],
)
def test_windows(
    size: int,
    taps: int,
    stride: int,
    dilation: int,
    pad: Any,
    rounding: str | None,
    before: int,
    out: int,
) -> None:
    window = axis(size, taps, stride, dilation, pad, rounding)
    assert (window.before, window.out) == (before, out)


def test_convolution_by_hand() -> None:
    x = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
    taps = np.array([[1, 0], [0, 10]], dtype=np.float32).reshape(2, 2, 1, 1)
    convolved = convolution.conv2d(x, taps, strides=1, pad="valid")
    assert convolved.value.reshape(-1).tolist() == [40, 51, 73, 84]
    back = convolution.conv2d_backprop_filter(
        x, np.ones((1, 2, 2, 1), np.float32), filter_shape=(2, 2, 1, 1), strides=1, pad="valid"
    )
    assert back.value.reshape(-1).tolist() == [8, 12, 20, 24]


def test_pooling_by_hand() -> None:
    x = np.array([[1, 5, 5], [7, 2, 0], [7, 1, 3]], dtype=np.float32).reshape(1, 3, 3, 1)
    options = {"filter_size": 2, "strides": 1, "pad": "valid"}
    pooled = pooling.max_pool(x, **options)
    assert pooled.reshape(-1).tolist() == [7, 5, 7, 3]
    dy = np.array([1, 10, 100, 1000], dtype=np.float32).reshape(1, 2, 2, 1)
    pulled = pooling.max_pool_grad(dy, x, pooled, **options)
    assert pulled.value.reshape(-1).tolist() == [0, 10, 0, 101, 0, 0, 0, 0, 1000]


def test_where_a_turn_puts_a_place_on_a_border_either_pixel_is_right() -> None:
    row = np.array([3, 5, 7, 9], np.int32).reshape(1, 1, 4, 1)
    away = warping.rotate_with_offset(row, radians=math.pi)
    assert isinstance(away, np.ndarray)  # (0, x) comes from (1, 4 - x): no such row
    assert away.tolist() == np.zeros_like(row).tolist()
    turned = warping.rotate_with_offset(row, radians=math.pi / 2)
    assert isinstance(turned, Relation)
    # From column 2.5, a border, and row x - 1.5, another: only x = 2 can meet the row there is.
    for value, wrong in ((0, 0.0), (7, 0.0), (9, 0.0), (5, 1.0)):
        result = np.array([0, 0, value, 0], np.int32).reshape(row.shape)
        ((_, error, reference),) = turned.check(result)
        assert error.max() == wrong
        assert np.all(reference.value == 0)
        assert np.all(reference.bound == 0)


@pytest.mark.parametrize(
    ("length", "hash_"),
    [
        (17, 0x49BAD07BF7A76B85),
        (33, 0xFAFB1B2DA8F771F2),
        (64, 0x88450DD3B9522781),
        (65, 0x09247A84C0BB5785),
        (129, 0x4C78E1A89EDDAC03),
        (300, 0xA1FC110755E76FB9),
    ],
)
def test_hashes_of_long_texts_are_those_of_the_reference_implementation(
    length: int, hash_: int
) -> None:
    """The numbers are of FarmHash's ``Fingerprint64``."""
    text = "".join(chr((at * 37 + length * 11) % 95 + 32) for at in range(length))
    buckets = strings.hash_bucket(np.array([text], np.dtypes.StringDType()), num_buckets=2**31 - 1)
    assert buckets.tolist() == [hash_ % (2**31 - 1)]

"""The draws that are kernels, and what any draw depends on: shapes, dtypes, bad calls."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from tests.core.support import exact_random as exact
from tests.core.support.engines import expect
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.contract import dtypes
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import isolated_engine

pytestmark = pytest.mark.usefixtures("on_the_cpu")

random = tp.random
KEY = (0xA4093822, 0x299F31D0, 0x13198A2E, 0x03707344)


def key(words: Any = KEY) -> tp.Tensor:
    return tp.asarray(np.array(words, np.uint32))


# What depends on what ----------------------------------------------------------------------

DRAWS = {
    "bits": random.bits,
    "uint64": lambda key, shape: random.bits(key, shape, tp.uint64),
    "uniform": random.uniform,
    "normal": lambda key, shape: random.normal(key, shape, tp.float64),
    "exponential": random.exponential,
    "integers": lambda key, shape: random.integers(key, shape, high=100),
    "gumbel": random.gumbel,
    "truncated_normal": random.truncated_normal,
    "bernoulli": lambda key, shape: random.bernoulli(key, shape, p=0.3),
    "gamma": lambda key, shape: random.gamma(key, shape, concentration=0.7),
    "categorical": lambda key, shape: random.categorical(key, [0.0, 1.0, 2.0], shape),
    "choice": lambda key, shape: random.choice(key, 9, shape),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_depends_on_its_key_and_on_nothing_else(name: str) -> None:
    draw = DRAWS[name]
    keys = random.split(random.key(5), 3)
    before = [draw(key, (3, 5)).numpy() for key in keys]
    after = [draw(key, (3, 5)).numpy() for key in reversed(list(keys))][::-1]
    for one, two in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(before[0], before[1])


@pytest.mark.parametrize("name", DRAWS)
def test_fewer_are_the_first_of_more(name: str) -> None:
    draw = DRAWS[name]
    many = draw(key(), (50,)).numpy()
    for shape in [(), (0,), (1,), (7,), (5, 3), (2, 0, 3), (1, 13)]:
        some = draw(key(), shape)
        assert some.shape == shape
        np.testing.assert_array_equal(some.numpy().ravel(), many[: some.size])


@pytest.mark.parametrize("name", DRAWS)
def test_a_new_key_needs_no_new_plan(name: str) -> None:
    with isolated_engine("cpu") as engine:
        keys = list(random.split(random.key(1), 40))
        for number, item in enumerate(keys):
            DRAWS[name](random.fold_in(item, number), (3, 5))
            if number == 0:
                before = [len(cache) for cache in _caches(engine)]
        assert [len(cache) for cache in _caches(engine)] == before


def _caches(engine: Any) -> list[Any]:
    return [
        engine.devices.active.plans,
        engine.devices.active.slow_plans,
        engine.devices.active.constants,
    ]


def test_a_tidy_scope_frees_what_draws_leave() -> None:
    with tp.tidy():
        made = random.gamma(random.key(0), (4,), concentration=0.5)
    assert made.is_disposed


# Shapes, dtypes, parameters -----------------------------------------------------------------


@pytest.mark.parametrize("draw", [random.uniform, random.normal, random.exponential])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtype(draw: Any, dtype: str) -> None:
    found = draw(key(), (3,), dtype)
    assert found.dtype.name == dtype
    assert draw(key()).type == tp.TensorType(tp.float32, ())
    name = {random.uniform: "high", random.normal: "loc", random.exponential: "scale"}[draw]
    for given, expected in [(np.float64([1, 2]), "float64"), (np.int64([1, 2]), "float32")]:
        drawn = draw(key(), **{name: given})
        assert (drawn.dtype.name, drawn.shape) == (expected, (2,))
        assert draw(key(), (3, 2), dtype, **{name: given}).type == tp.TensorType(
            dtypes.of(dtype), (3, 2)
        )


def test_bits_of_other_widths() -> None:
    words = np.array(exact.words(KEY, 6), np.uint32)
    for dtype in ("uint8", "uint16", "uint32"):
        expect(random.bits(key(), (6,), dtype), dtype, (6,), words.astype(dtype))
    expect(random.bits(key(), (3,), "uint64"), "uint64", (3,), exact.longs(words.tolist()))


def test_uniform_is_scaled_in_two_roundings() -> None:
    u = random.uniform(key(), (1000,)).numpy()
    found = random.uniform(key(), (1000,), low=-3.0, high=0.1)
    expect(found, "float32", (1000,), u * np.float32(3.1) + np.float32(-3))
    low, high = np.float32([-1, 0, 1])[:, None], np.float32([2, 7])
    found = random.uniform(key(), low=low, high=high)
    drawn = u[:6].reshape(3, 2)
    expect(found, "float32", (3, 2), low + drawn * (high - low))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_uniform_is_never_high(dtype: str) -> None:
    """From 1 to 2 one number in 2**24 (2**11) rounds up to 2; 3 is the next float of half."""
    found = random.uniform(key(), (1 << 18,), dtype, low=1.0, high=2.0).numpy()
    assert found.min() >= 1
    assert found.max() < 2
    near = np.nextafter(np.float32(3), np.float32(4))
    found = random.uniform(key(), (1000,), low=3.0, high=float(near))
    expect(found, "float32", (1000,), np.full(1000, 3))


def test_uniform_where_high_is_not_above_low() -> None:
    expect(random.uniform(key(), (3,), low=2.0, high=2.0), "float32", (3,), [2, 2, 2])
    low, high = tp.asarray([2.0, 5.0]), tp.asarray([2.0, -1.0])
    expect(random.uniform(key(), (99, 2), low=low, high=high), "float32", (99, 2), [[2, 5]] * 99)


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 1, "int8"),
        (-128, 128, "int8"),
        (-5, 6, "int32"),
        (-(2**31), 2**31, "int32"),
        (0, 2**32, "uint32"),
        (-(2**63), 2**63, "int64"),
        (0, 2**64, "uint64"),
        (2**63, 2**63 + 3, "uint64"),
        (-(2**40), 2**41, "int64"),
        (-3, 2**32 - 3, "int64"),
        (-3, 2**32 - 2, "int64"),
    ],
)
def test_integers(low: int, high: int, dtype: str) -> None:
    count, span = 50, high - low
    words = exact.longs(exact.words(KEY, 4 * count))
    if span <= 2**32:
        expected = [low + (w * span >> 64) for w in words[:count]]
    else:
        wide = [one | two << 64 for one, two in zip(words[0::2], words[1::2], strict=True)]
        expected = [low + (w * span >> 128) for w in wide]
    found = random.integers(key(), (count,), dtype, low=low, high=high)
    assert found.tolist() == expected
    assert found.dtype.name == dtype


def test_integers_between_tensors() -> None:
    low, high = np.int16([-5, 0, 100]), np.int16([[-4], [1], [300]])
    found = random.integers(
        key(), low=tp.asarray(low), high=tp.asarray(high + low)
    )  # some are in disorder
    words = exact.longs(exact.words(KEY, 18))
    spans = np.broadcast_to(high, (3, 3)).ravel().tolist()
    offset = np.array([w * (span % 2**32) >> 64 for w, span in zip(words, spans, strict=True)])
    wrapped = (offset.reshape(3, 3) + low).astype(np.int16)
    expect(found, "int16", (3, 3), wrapped)
    expect(
        random.integers(key(), (4,), high=tp.asarray(10)),
        "int32",
        (4,),
        [w * 10 >> 64 for w in words[:4]],
    )
    assert random.integers(key(), (4,), "int64", high=tp.asarray(10)).dtype is tp.int64


REFUSED = {  # error: call, what the message says
    ShapeError: [
        (lambda: random.normal(key(), (-1,)), "normal: shape must not contain negative"),
        (
            lambda: random.normal(key(), (2, 3), loc=[1.0, 2.0]),
            r"normal: shapes \[2, 3\] and \[2\] cannot be broadcast together",
        ),
        (
            lambda: random.normal(key(), (2,), loc=[[1.0], [2.0]]),
            r"have shape \[2, 1\], which does not broadcast to \[2\]",
        ),
        (lambda: random.bits(key(), (2, -1)), "bits: shape must not contain negative"),
    ],
    ArgumentError: [
        (lambda: random.normal(key(), 2.5), "normal: shape must be an integer"),
        (lambda: random.normal(key(), "ab"), "normal: shape must be an integer"),
        (lambda: random.normal(key(), loc=2j), "normal: loc must be a real number"),
        (
            lambda: random.uniform(key(), 2, low=1.0, high=0.5),
            "uniform: low must not be above high, .* got 1.0 and 0.5",
        ),
        (lambda: random.uniform(key(), 2, low=-inf), "must be finite"),
        (lambda: random.uniform(key(), 2, low=nan), "got nan and 1.0"),
        (lambda: random.uniform(key(), 2, high=1e39), "finite in float32"),
        (lambda: random.uniform(key(), 2, "float16", low=-4e4, high=4e4), "in float16"),
        (lambda: random.integers(key(), low=5, high=5), "low must be below high, got 5 and 5"),
        (lambda: random.integers(key(), high=0), "low must be below high, got 0 and 0"),
        (lambda: random.integers(key(), high=129, dtype="int8"), "not fit into int8"),
        (lambda: random.integers(key(), low=-1, high=5, dtype="uint8"), "not fit into uint8"),
        (lambda: random.integers(key(), low=[1, 9], high=9), r"below high, got \[1, 9\] and 9"),
        (lambda: random.integers(key(), high=2**32), "does not fit into int32"),
        (lambda: random.integers(key(), low=0.5, high=3), "low must be an integer, got 0.5"),
        (
            lambda: random.bernoulli(key(), 0.3),
            r"^bernoulli: shape must be an integer, got 0\.3; parameters follow the shape by name",
        ),
    ],
    DTypeError: [
        (lambda: random.normal(key(), 2, "int32"), "normal: dtype must be a floating one"),
        (lambda: random.normal(key(), 2, "no"), "normal: unknown dtype 'no'"),
        (lambda: random.normal(key(), scale="a"), "normal: scale"),
        (lambda: random.normal(key(), scale=[2j]), "normal: scale must hold real"),
        (lambda: random.integers(key(), high=[1.5]), "high must hold integers, got flo"),
        (lambda: random.integers(key(), high=9, dtype="bool"), "dtype must be an integer dtype"),
        (lambda: random.bits(key(), (2,), "int32"), "must be an unsigned integer dtype"),
    ],
}

test_bad_calls = refused(REFUSED, regex=True)

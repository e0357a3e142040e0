"""Keys: made of seeds, split, folded; they share no bits with the draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support import exact_random as exact
from tests.core.support.engines import expect
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.contract import dtypes
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

random = tp.random
KEY = (0xA4093822, 0x299F31D0, 0x13198A2E, 0x03707344)
SPLIT, FOLD = 2**63, 2**63 + 2**62  # the blocks that no draw reaches


def key(words: Any = KEY) -> tp.Tensor:
    return tp.asarray(np.array(words, np.uint32))


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (0, [0, 0]),
        (1, [1, 0]),
        (2**32 + 5, [5, 1]),
        (2**64 - 1, [2**32 - 1, 2**32 - 1]),
        (np.int16(7), [7, 0]),
        (np.uint64(2**63), [0, 2**31]),
    ],
)
def test_a_seed_is_the_lower_half_of_its_key(seed: Any, words: list[int]) -> None:
    expect(random.key(seed), "uint32", (4,), [*words, 0, 0])


@pytest.mark.parametrize("dtype", sorted(item.name for item in dtypes.INTEGER))
def test_a_seed_may_be_a_tensor_of_any_integer_dtype(dtype: str) -> None:
    limits = np.iinfo(dtype)
    for number in {int(limits.min), int(limits.max), 0, 5}:
        two = number % 2**64  # its two's complement
        seed = tp.asarray(np.array(number, dtype))
        expect(random.key(seed), "uint32", (4,), [two % 2**32, two >> 32, 0, 0])
        expect(random.fold_in(key(), seed), "uint32", (4,), random.fold_in(key(), two).numpy())


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ArgumentError, r"key: seed must be in \[0, 2\*\*64\), got -1"),
        (2**64, ArgumentError, "got 18446744073709551616"),
        (1.5, ArgumentError, "key: seed must be an integer, got 1.5"),
        (True, ArgumentError, "key: seed must be an integer, got True"),
        ("a", ArgumentError, "key: seed must be an integer, got 'a'"),
        (None, ArgumentError, "key: seed must be an integer, got None"),
    ],
)
def test_no_seed(seed: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        random.key(seed)


def test_no_seed_as_a_tensor() -> None:
    with pytest.raises(DTypeError, match=r"key: seed must be an integer, got float32\[\]"):
        random.key(tp.asarray(1.0))
    with pytest.raises(ShapeError, match=r"key: seed must have rank 0, got int32\[2\]"):
        random.key(tp.asarray([1, 2]))


def test_split_takes_blocks_that_no_draw_reaches() -> None:
    words = exact.words(KEY, 12, SPLIT)
    expect(random.split(key(), 3), "uint32", (3, 4), np.reshape(words, (3, 4)))
    expect(random.split(key()), "uint32", (2, 4), np.reshape(words[:8], (2, 4)))
    expect(random.split(key(), 0), "uint32", (0, 4), np.zeros((0, 4)))
    first, second = random.split(key())
    expect(first, "uint32", (4,), words[:4])
    expect(second, "uint32", (4,), words[4:8])


@pytest.mark.parametrize("number", [0, 1, 2**32 - 1, 2**32, 2**64 - 1])
def test_fold_in(number: int) -> None:
    a, b, c, d = exact.words(KEY, 4, FOLD)
    moved = [a, b, (c + number) % 2**32, (d + (number >> 32)) % 2**32]
    expect(random.fold_in(key(), number), "uint32", (4,), exact.words(moved, 4, FOLD))


def test_made_keys_and_drawn_numbers_have_nothing_in_common() -> None:
    parent = key()
    drawn = set(map(bytes, random.bits(parent, (4096, 4)).numpy()))
    made = [*random.split(parent, 500), *(random.fold_in(parent, n) for n in range(200))]
    rows = {tensor.numpy().tobytes() for tensor in made}
    assert len(rows) == len(made)
    assert not rows & drawn
    words = set(random.bits(parent, (4096,)).numpy().tolist())
    for item in made[::50]:  # nor do their draws: chance gives less than 1 in 100 words
        assert len(words & set(random.bits(item, (1000,)).numpy().tolist())) < 10


REFUSED = {  # error: call, what the message says
    ArgumentError: [
        (lambda: random.normal(0), r"normal: key must come from .*key\(seed\), got th"),
        (lambda: random.bits(np.uint32(3)), "bits: .* got the number"),
        (lambda: random.split(key(), -1), "split: num must not be negative, got -1"),
        (lambda: random.split(key(), 2.0), "split: num must be an integer, got 2.0"),
        (lambda: random.fold_in(key(), -1), "fold_in: data must be in"),
        (lambda: random.fold_in(key(), 0.5), "fold_in: data must be an integer"),
        (lambda: random.fold_in(3, 4), "fold_in: key must come from"),
    ],
    DTypeError: [
        (lambda: random.uniform([1, 2, 3, 4]), r"uniform: .* got int32\[4\]"),
    ],
    ShapeError: [
        (lambda: random.split(key()[:3]), r"split: .* be uint32\[4\], got uint32\[3\]"),
        (lambda: random.normal(random.split(key())), "pass one row of several keys"),
    ],
}

test_no_key = refused(REFUSED, regex=True)

"""Sequences of different lengths: padding, buckets, shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplug as tp

KEY = tp.random.key(1)
RNG = np.random.default_rng(0)
LENGTHS = RNG.integers(1, 40, 100)
SEQUENCES = [RNG.normal(size=(length, 2)).astype(np.float32) for length in LENGTHS]


@pytest.mark.parametrize("key", [None, KEY], ids=["in order", "shuffled"])
@pytest.mark.parametrize("drop_last", [False, True])
def test_each_sequence_is_padded_to_the_bound_of_its_bucket(key, drop_last):
    data = tp.train.padded_batches(
        SEQUENCES, 8, np.arange(100), buckets=[10, 20, 40], value=-1, key=key, drop_last=drop_last
    )
    found = list(data)
    assert len(found) == len(data)
    seen = []
    for (padded, lengths), numbers in found:
        assert (padded.dtype, lengths.dtype) == (tp.float32, tp.int32)
        bound = padded.shape[1]
        assert bound in {10, 20, 40}
        assert padded.shape == (len(numbers.tolist()), bound, 2)
        for row, length, number in zip(
            padded.numpy(), lengths.tolist(), numbers.tolist(), strict=True
        ):
            assert {10: 0, 20: 10, 40: 20}[bound] < length <= bound
            np.testing.assert_array_equal(row[:length], SEQUENCES[number])
            assert (row[length:] == -1).all()
            seen.append(number)
    assert len(set(seen)) == len(seen)
    shapes = {padded.shape for (padded, _), _ in found}
    assert len(shapes) == 3 if drop_last else 3 <= len(shapes) <= 6
    if not drop_last:
        assert sorted(seen) == list(range(100))
        total = sum(padded.shape[0] * padded.shape[1] for (padded, _), _ in found)
        assert data.padding == pytest.approx(1 - LENGTHS.sum() / total)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=30),
    size=st.integers(1, 5),
    buckets=st.integers(1, 6),
)
def test_bounds_that_are_chosen_hold_all_sequences(lengths, size, buckets):
    data = tp.train.padded_batches([[7] * length for length in lengths], size, buckets=buckets)
    found = [(padded.shape, lengths.tolist(), padded.numpy().sum()) for padded, lengths in data]
    assert sorted(length for _, own, _ in found for length in own) == sorted(lengths)
    assert len({shape[1] for shape, _, _ in found}) <= buckets
    assert all(total == 7 * sum(own) for _, own, total in found)
    assert 0 <= data.padding < 1


def test_sequences_may_be_a_tree_and_orders_resume():
    data = tp.train.padded_batches(
        (SEQUENCES, [list(s[:, 0]) for s in SEQUENCES]), 8, key=KEY, epochs=2
    )
    whole = [lengths.tolist() for _, lengths in data]
    running = iter(data)
    (first, second), _ = next(running)
    np.testing.assert_array_equal(first.numpy()[..., 0], second.numpy())
    assert [lengths.tolist() for _, lengths in data.resume(running.state)] == whole[1:]
    half = len(data)
    assert whole[:half] != whole[half:]


def test_more_buckets_have_less_padding():
    shares = [tp.train.padded_batches(SEQUENCES, 8, buckets=n).padding for n in (1, 2, 4, 8)]
    assert sorted(shares, reverse=True) == shares
    assert shares[0] == pytest.approx(1 - LENGTHS.sum() / (100 * LENGTHS.max()))


REFUSED = {
    "too long": (
        {"sequences": [[1], [1, 2, 3]], "buckets": [1, 2]},
        "sequence 1 has length 3, but the last bucket ends at 2",
    ),
    "falling": ({"sequences": [[1]], "buckets": [3, 2]}, r"rising order, got \[3, 2\]"),
    "none": ({"sequences": [[1]], "buckets": 0}, "buckets must be at least 1, got 0"),
    "empty": ({"sequences": [[1]], "buckets": []}, r"in rising order, got \[\]"),
    "numbers": ({"sequences": [1, 2]}, r"sequence 0 must be an array \[length, ...\] or a list"),
    "labels": ({"sequences": [[1]], "labels": [1, 2]}, "there are 1 sequences, but 2 labels"),
    "tree": (
        {"sequences": ([[1], [1, 2]], [[1], [1]])},
        "sequences of example 1 have lengths 2 and 1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    options, message = REFUSED[name]
    with pytest.raises(tp.errors.ArgumentError, match=message):
        tp.train.padded_batches(options.pop("sequences"), 2, **options)


def test_elements_of_different_shapes_are_refused():
    data = tp.train.padded_batches([np.ones((2, 3)), np.ones((2, 4))], 2)
    with pytest.raises(tp.errors.ShapeError, match=r"must have one shape, got \(3,\) and \(4,\)"):
        next(iter(data))

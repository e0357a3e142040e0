"""Batches: what is in them, in which order, and where an iteration continues."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tensorplug as tp

KEY = tp.random.key(7)
X = np.arange(22, dtype=np.float32).reshape(11, 2)
LABELS = np.arange(11)


def numbers(batch):
    """Return the rows of ``X`` and ``LABELS`` that are in a batch of both."""
    x, labels = batch
    np.testing.assert_array_equal(x.numpy(), X[labels.numpy()])
    return labels.tolist()


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


@pytest.mark.parametrize("key", [None, KEY], ids=["in order", "shuffled"])
@pytest.mark.parametrize(("drop_last", "sizes"), [(False, [4, 4, 3]), (True, [4, 4])])
def test_an_epoch_has_each_example_once(key, drop_last, sizes):
    data = tp.train.batches((X, LABELS), 4, key=key, drop_last=drop_last)
    found = list(data)
    assert len(data) == len(sizes)
    assert [batch[0].shape for batch in found] == [(size, 2) for size in sizes]
    assert {(batch[0].dtype, batch[1].dtype) for batch in found} == {(tp.float32, tp.int64)}
    order = flat(map(numbers, found))
    assert len(set(order)) == len(order)
    assert (order == list(range(len(order)))) is (key is None)


def test_the_order_depends_on_the_key_and_the_epoch():
    data = tp.train.batches((X, LABELS), 4, key=KEY, epochs=3)
    orders = [flat(map(numbers, data.epoch(epoch))) for epoch in range(3)]
    assert flat(orders) == flat(map(numbers, data)) == flat(map(numbers, data))
    other = tp.train.batches((X, LABELS), 4, key=tp.random.key(8))
    assert len({tuple(order) for order in [*orders, flat(map(numbers, other))]}) == 4


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_an_iteration_resumes_at_any_batch(prefetch):
    data = tp.train.batches((X, LABELS), 4, key=KEY, epochs=2, prefetch=prefetch)
    whole = list(map(numbers, data))
    for taken in range(len(whole) + 1):
        running = iter(data)
        assert list(map(numbers, itertools.islice(running, taken))) == whole[:taken]
        assert running.state == {"epoch": taken // 3, "batch": taken % 3}
        assert list(map(numbers, data.resume(running.state))) == whole[taken:]
        assert list(map(numbers, running)) == whole[taken:]
    assert list(map(numbers, data.epoch(1, first=2))) == whole[5:]

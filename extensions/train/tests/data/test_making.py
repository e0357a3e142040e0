"""How batches are made: by functions, in threads and processes, ahead of their use."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tensorplug as tp

KEY = tp.random.key(5)
X = np.arange(24, dtype=np.float32).reshape(12, 2)

# How batches are made ahead. All must give the same.
WAYS = {
    "here": {"prefetch": 0},
    "prefetched": {"prefetch": 3},
    "thread": {"workers": 1, "prefetch": 0},
    "threads": {"workers": 3, "prefetch": 2},
    "processes": {"workers": 2, "processes": True},
}


@pytest.fixture(scope="module")
def functions():
    """Return the module of functions as one that other processes can import."""
    folder = str(Path(__file__).parent)
    sys.path.insert(0, folder)
    yield importlib.import_module("functions_of_examples")
    sys.path.remove(folder)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    gc.collect()
    assert set(threading.enumerate()) <= before


def lists(data):
    return [tp.tree_map(lambda leaf: leaf.tolist(), batch) for batch in data]


@pytest.mark.parametrize("way", WAYS)
def test_the_same_batches_however_they_are_made(way, functions):
    def epochs(**options):
        return lists(tp.train.batches(X, 5, key=KEY, epochs=2, map=functions.noisy, **options))

    found = epochs(**WAYS[way])
    assert found == epochs(prefetch=0)
    keys = [tuple(key) for batch in found for key in batch["key"]]
    assert len(set(keys)) == len(keys) == 24


@pytest.mark.parametrize("way", [way for way in WAYS if way != "processes"])
def test_batches_come_in_order_though_workers_end_in_another(way, functions):
    data = tp.train.batches(range(12), 2, map=functions.late, **WAYS[way])
    assert lists(data) == [[n, n + 1] for n in range(0, 12, 2)]


def test_a_key_belongs_to_the_number_of_the_example_and_the_epoch():
    data = tp.train.batches(range(12), 5, key=KEY, map=lambda n, key: (n, key), epochs=2)
    other = tp.train.batches(range(12), 4, key=KEY, map=lambda n, key: (n, key))

    def keys(batches):
        return {
            n: key
            for numbers, keys in lists(batches)
            for n, key in zip(numbers, keys, strict=True)
        }

    assert keys(data.epoch(0)) == keys(other.epoch(0))
    assert keys(data.epoch(0)) != keys(data.epoch(1))
    key = np.asarray(keys(data.epoch(0))[3], np.uint32)
    assert tp.random.uniform(key, (2,)).shape == (2,)


def test_a_function_of_batches_gets_arrays_after_that_of_examples():
    def normalize(batch):
        assert type(batch["x"]) is np.ndarray
        return {"x": batch["x"] / 2}

    data = tp.train.batches(X, 5, map=lambda row: {"x": row + 1}, map_batches=normalize)
    assert lists(data)[0]["x"] == ((X[:5] + 1) / 2).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_an_error_comes_out_where_its_batch_would_and_names_the_example(way, functions):
    running = iter(tp.train.batches(range(12), 3, map=functions.fail_at_7, **WAYS[way]))
    assert [next(running).shape for _ in range(2)] == [(3,), (3,)]
    with pytest.raises(ZeroDivisionError) as caught:
        next(running)
    assert "batches: map was called with example 7" in caught.value.__notes__
    assert running.state == {"epoch": 0, "batch": 2}
    with pytest.raises(StopIteration):
        next(running)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("end", ["close", "forget"])
def test_an_iteration_that_ends_early_ends_its_threads(way, end):
    running = iter(tp.train.batches(range(12), 3, map=abs, epochs=1000, **WAYS[way]))
    next(running)
    if end == "close":
        running.close()
        with pytest.raises(StopIteration):
            next(running)
    del running  # the fixture looks


def test_few_batches_are_made_ahead():
    read = []

    def numbers():
        for number in range(1000):
            read.append(number)
            yield number

    running = iter(tp.train.batches(numbers, 2, workers=2, prefetch=3))
    next(running)
    time.sleep(0.05)
    # One is in use, three wait on the device, one is being moved; of each worker, two.
    assert len(read) <= 2 * (1 + 3 + 1 + 4)
    running.close()


def test_a_file_that_is_read_is_closed_early(tmp_path):
    (tmp_path / "n.txt").write_text("".join(f"{n}\n" for n in range(99)), encoding="utf-8")
    opened = []

    def lines():
        with (tmp_path / "n.txt").open(encoding="utf-8") as file:
            opened.append(file)
            yield from file

    running = iter(tp.train.batches(lines, 4, map=int))
    assert next(running).tolist() == [0, 1, 2, 3]
    assert not opened[0].closed
    running.close()
    assert opened[0].closed


def test_batches_go_to_the_device_of_the_loop_or_to_the_one_that_is_named(active):
    data = tp.train.batches(X, 5)
    active("minimal")
    assert {batch.device for batch in data} == {"minimal"}
    assert not next(iter(data)).is_committed
    (named,) = tp.train.batches(X, 12, device="cpu")
    assert (named.device, named.is_committed) == ("cpu", True)


def test_batches_that_are_made_ahead_outlive_a_scope_that_was_open():
    running = iter(tp.train.batches(X, 3, map_batches=np.copy))
    with tp.tidy():
        next(running)
    assert [batch.tolist() for batch in running] == X.reshape(4, 3, 2)[1:].tolist()

"""What batches are read from."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest

import tensorplug as tp

KEY = tp.random.key(3)
X = np.arange(30, dtype=np.float32).reshape(10, 3)
Y = np.arange(10)


class Pair(NamedTuple):
    x: object
    y: object


class Squares:
    """A sequence that is no array."""

    def __len__(self):
        return 10

    def __getitem__(self, at):
        return {"n": at, "square": np.float32(at**2)}


def lists(batch):
    return tp.tree_map(lambda leaf: leaf.tolist(), batch)


# Sources, their first batch of four in the order of the data, and the dtypes of its leaves.
FIRST = X[:4].tolist()
SOURCES = {
    "array": (X, FIRST, ["float32"]),
    "tensor": (tp.asarray(X), FIRST, ["float32"]),
    "named tuple": (Pair(X, Y), Pair(FIRST, [0, 1, 2, 3]), ["float32", "int64"]),
    "dict of lists": (
        {"x": X, "y": list(range(10)), "z": [0.5] * 10},
        {"x": FIRST, "y": [0, 1, 2, 3], "z": [0.5] * 4},
        ["float32", "int32", "float32"],
    ),
    "list of trees": (
        list(zip(X, Y, strict=True)),
        (FIRST, [0, 1, 2, 3]),
        ["float32", "int64"],
    ),
    "list of lists": (
        [[n, 2 * n] for n in range(10)],
        [[0, 0], [1, 2], [2, 4], [3, 6]],
        ["int32"],
    ),
    "strings": ([f"{n}.png" for n in range(10)], ["0.png", "1.png", "2.png", "3.png"], ["string"]),
    "sequence": (Squares(), {"n": [0, 1, 2, 3], "square": [0, 1, 4, 9]}, ["int32", "float32"]),
    "range": (range(10), [0, 1, 2, 3], ["int32"]),
    "iterable": (dict.fromkeys(range(10)).keys(), [0, 1, 2, 3], ["int32"]),
    "function": (lambda: zip(X, Y, strict=True), (FIRST, [0, 1, 2, 3]), ["float32", "int64"]),
}


@pytest.mark.parametrize("name", SOURCES)
def test_batches_of_a_source(name):
    source, first, dtypes = SOURCES[name]
    found = list(tp.train.batches(source, 4))
    leaves = [found[0]] if isinstance(found[0], tp.Tensor) else list(tree_leaves(found[0]))
    assert [str(leaf.dtype) for leaf in leaves] == dtypes
    assert lists(found[0]) == first
    assert [tree_leaves(batch)[0].shape[0] for batch in found] == [4, 4, 2]


def tree_leaves(tree):
    leaves = []
    tp.tree_map(leaves.append, tree)
    return leaves


def test_a_memory_mapped_array_is_read_row_by_row_in_order(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    reads = []

    class Watched(np.memmap):
        def __getitem__(self, key):
            reads.append(np.asarray(key).tolist())
            return super().__getitem__(key)

    data = tp.train.batches((mapped.view(Watched), X), 4, key=KEY)
    for from_file, from_memory in data:
        assert from_file.tolist() == from_memory.tolist()
    rows = [read for read in reads if isinstance(read, list)]
    assert [len(read) for read in rows] == [4, 4, 2]
    assert all(read == sorted(read) for read in rows)
    assert sorted(itertools.chain.from_iterable(rows)) == list(range(10))


def test_later_writes_to_an_array_are_not_seen():
    x = X.copy()
    batch = next(iter(tp.train.batches(x, 4, prefetch=0)))
    x[:] = -1
    assert batch.tolist() == FIRST


@pytest.mark.parametrize("library", ["pandas", "pyarrow", "polars"])
def test_columns_of_a_table(library):
    module = pytest.importorskip(library)
    columns = {"x": X[:, 0], "name": [f"n{n}" for n in range(10)], "y": Y}
    frame = (module.table if library == "pyarrow" else module.DataFrame)(columns)
    reading = {"map": lambda row: row | {"name": len(row["name"])}}
    batch = lists(next(iter(tp.train.batches(frame, 3, **reading))))
    assert batch == {"x": [0, 3, 6], "name": [2, 2, 2], "y": [0, 1, 2]}
    nested = next(iter(tp.train.batches((frame, Y), 3, key=KEY, map=lambda pair: pair[0]["y"])))
    assert nested.shape == (3,)


class Table:
    """What is asked of a table, whichever library it comes from."""

    def __init__(self, **columns):
        self.names, self._columns = list(columns), columns

    @property
    def columns(self):
        return self.names

    def __dataframe__(self):
        raise AssertionError("columns are read one by one")

    def __getitem__(self, name):
        return self._columns[name]


def test_a_table_becomes_a_dict_of_its_columns():
    (batch,) = tp.train.batches(Table(a=[1, 2], b=X[:2]), 2)
    assert lists(batch) == {"a": [1, 2], "b": X[:2].tolist()}
    table = Table(a=[1, 2])
    table.names = ["a", "a"]
    with pytest.raises(tp.errors.ArgumentError, match=r"columns of the same name: \['a', 'a'\]"):
        tp.train.batches(table, 2)


@pytest.mark.parametrize("buffer", [1, 3, 10, 50])
def test_a_stream_is_shuffled_within_its_buffer(buffer):
    data = tp.train.batches(lambda: iter(range(40)), 4, key=KEY, buffer=buffer, epochs=2)
    with pytest.raises(TypeError, match="the data has no length"):
        len(data)
    first, second = ([n for batch in data.epoch(e) for n in batch.tolist()] for e in (0, 1))
    assert sorted(first) == sorted(second) == list(range(40))
    assert (first == list(range(40))) is (buffer == 1)
    assert (first == second) is (buffer == 1)
    # An example cannot come before those that it has to wait for.
    assert all(number < place + buffer for place, number in enumerate(first))


@pytest.mark.parametrize("taken", range(7))
def test_a_stream_resumes(taken):
    data = tp.train.batches(lambda: iter(range(9)), 4, key=KEY, buffer=4, epochs=2)
    whole = [batch.tolist() for batch in data]
    assert len(whole) == 6
    running = iter(data)
    assert [batch.tolist() for batch in itertools.islice(running, taken)] == whole[:taken]
    assert [batch.tolist() for batch in data.resume(running.state)] == whole[taken:]


REFUSED = {
    "number": (lambda: tp.train.batches(3, 2), "arrays must be an array, a list, a table or"),
    "text": (lambda: tp.train.batches("x", 2), "arrays must be an array, a list"),
    "scalar": (lambda: tp.train.batches((X, np.array(1)), 2), r"arrays\[1\] must have an axis"),
    "lengths": (
        lambda: tp.train.batches({"x": X, "y": Y[:9]}, 2),
        r"one length, but .*arrays\['x'\] has 10, .*arrays\['y'\] has 9",
    ),
    "empty": (lambda: tp.train.batches([], 2), "arrays holds no examples"),
    "too few": (lambda: tp.train.batches(Y, 11, drop_last=True), "fewer than 11 examples"),
    "size": (lambda: tp.train.batches(Y, 0), "batches: size must be at least 1, got 0"),
    "epochs": (lambda: tp.train.batches(Y, 1, epochs=0), "epochs must be at least 1, got 0"),
    "prefetch": (lambda: tp.train.batches(Y, 1, prefetch=-1), "prefetch must be at least 0"),
    "workers": (lambda: tp.train.batches(Y, 1, workers=1.5), "workers must be an integer"),
    "buffer": (lambda: tp.train.batches(Y, 1, buffer=4), "buffer is for data of unknown length"),
    "iterator": (lambda: tp.train.batches(iter(Y), 1), "can be iterated only once; give a func"),
    "no buffer": (
        lambda: tp.train.batches({1: 2}.keys(), 1, key=KEY),
        "shuffled within a buffer: give buffer=",
    ),
    "map without key": (
        lambda: tp.train.batches(Y, 1, map=lambda example, key: (example, key)),
        "map has a parameter key, so batches needs key=",
    ),
    "no workers": (
        lambda: tp.train.batches(Y, 1, map=abs, processes=True),
        "processes=True needs workers",
    ),
    "state": (
        lambda: tp.train.batches(Y, 1).resume({"epoch": 1}),
        r'state must be \{"epoch": int',
    ),
    "batch": (
        lambda: tp.train.batches(Y, 4).resume({"epoch": 0, "batch": 4}),
        "an epoch has 3 batches, but batch is 4",
    ),
    "shapes": (
        lambda: list(tp.train.batches([X[0], X[0, :2]], 2)),
        r"one has \(3,\) and example 1 of the batch \(2,\); padded_batches",
    ),
    "trees": (
        lambda: list(tp.train.batches([{"a": 1}, {"b": 1}], 2)),
        "must have one structure",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_batched_is_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(tp.errors.ArgumentError, match=message):
        call()

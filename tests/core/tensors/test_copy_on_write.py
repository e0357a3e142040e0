"""Tensors are values: an assignment changes one handle, in place where nothing else sees it."""

from __future__ import annotations

import functools
import operator
import threading

import numpy as np
import pytest

import tensorplug as tp

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    with tp.use_backend(request.param):
        yield request.param


X = np.arange(24.0).reshape(4, 6)


def tensor():
    return tp.asarray(X)


VIEWS = {  # what NumPy would make a view of x; half of them would not share memory on a device
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "reshape": lambda x: tp.reshape(x, (-1,)),
    "transpose": lambda x: x.transpose(1, 0),
    "permute_dims": lambda x: tp.permute_dims(x, (1, 0)),
    "expand_dims": lambda x: tp.expand_dims(x, axis=1),
    "squeeze": lambda x: tp.squeeze(x[None], axis=0),
    "broadcast_to": lambda x: tp.broadcast_to(x, (2, 4, 6)),
    "flip": tp.flip,
    "moveaxis": lambda x: tp.moveaxis(x, 0, 1),
    "unstack": lambda x: tp.unstack(x, axis=1)[2],
    "split": lambda x: tp.split(x, 2)[1],
    "slice": lambda x: tp.slice(x, (1, 1), (2, 2)),
    "strided_slice": lambda x: tp.strided_slice(x, (0, 5), (4, 0), (2, -3)),
    "real": tp.real,
    "x.real": lambda x: x.real,
    "diagonal": lambda x: tp.linalg.diagonal(x.T, offset=-1),
    "x[0]": lambda x: x[0],
    "x[:]": lambda x: x[:],
    "x[...]": lambda x: x[...],
    "x[::2, ::-1]": lambda x: x[::2, ::-1],
    "x[None]": lambda x: x[None],
    "view of views": lambda x: tp.reshape(x.T[1:].T, (4, 5, 1))[:, 2:],
}
COPIES = {
    "+": lambda x: +x,
    "+ 0": lambda x: x + 0,
    "copy": lambda x: tp.asarray(x, copy=True),
    "list": lambda x: x[[0, 1]],
    "mask": lambda x: x[x > 3],
    "reshape of a transpose": lambda x: tp.reshape(x.T, (-1,)),
    "take": lambda x: tp.take(x, [0], axis=0),
    "imag": tp.imag,
    "element": lambda x: x[0, 0],
    "concat": lambda x: tp.concat([x]),
    "astype": lambda x: tp.astype(x, x.dtype),
    "roll": lambda x: tp.roll(x, 1),
    "meshgrid": lambda x: tp.meshgrid(x[:, 0], x[0])[0],
    "repeat": lambda x: tp.repeat(x, 1, axis=0),
}


def write(x):
    x[...] = 1.0


def write_some(x):
    x[:1] = 1.0


def add(x):
    x += 1.0


@pytest.mark.parametrize("change", [write, write_some, add])
@pytest.mark.parametrize("make", [*VIEWS.values(), *COPIES.values()], ids=[*VIEWS, *COPIES])
@pytest.mark.parametrize("before", [False, True], ids=["new", "assigned to before"])
def test_neither_changes_the_other(make, change, before):
    x, expected = tensor(), X.copy()
    if before:
        x[1, 1] = expected[1, 1] = 50.0
    y = make(x)
    shown = y.numpy().copy()
    change(x)
    change(expected)
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(y.numpy(), shown)
    if y.ndim:
        change(y)
        change(shown)
        np.testing.assert_array_equal(y.numpy(), shown)
        np.testing.assert_array_equal(x.numpy(), expected)


def test_parts_are_exchanged_and_shifted():
    x = tensor()
    x[0], x[1] = x[1], x[0]
    x[:, 1:] = x[:, :-1]
    expected = X[[1, 0, 2, 3]]
    expected[:, 1:] = expected[:, :-1].copy()
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize(
    "key", [0, (slice(None), slice(1, None)), ..., (0, 1), (0, ..., None), -1]
)
def test_the_function_of_an_augmented_assignment(key):
    x, expected = tensor(), X.copy()
    x[key] = operator.iadd(x[key], 10.0)  # as array-api-extra writes it
    expected[key] += 10.0
    np.testing.assert_array_equal(x.numpy(), expected)


def test_gradients_flow_through_it():
    def doubled(x):
        x[0] = operator.imul(x[0], 2.0)
        x *= x
        return x.sum()

    expected = 2 * X
    expected[0] *= 4
    np.testing.assert_array_equal(tp.grad(doubled)(tensor()).numpy(), expected)


def test_disposing_of_it_frees_its_memory(backend):
    x = tensor()
    x[0] = 1.0
    before = tp.memory()[backend].buffers
    x.dispose()
    assert tp.memory()[backend].buffers == before - 1


def test_many_steps_at_random():
    """Handles, views and arrays of one another, each beside a copy that NumPy keeps apart."""
    random = np.random.default_rng(5)
    pool = [(tensor(), X.copy())]
    for _ in range(400):
        at = int(random.integers(len(pool)))
        x, meant = pool[at]
        rows = slice(*sorted(random.integers(0, 5, 2)))
        columns = slice(None, None, int(random.choice([1, 2, -1])))
        step = random.integers(6)
        if step == 0:
            pool.append((x[rows, columns], meant[rows, columns].copy()))
        elif step == 1:
            pool.append((x.__copy__(), meant.copy()))
        elif step == 2:
            x[rows, columns] = meant[rows, columns] = float(random.integers(100))
        elif step == 3 and len(meant) > 1:
            x[1:] = x[:-1]
            meant[1:] = meant[:-1].copy()
        elif step == 4:
            x += 1.0
            meant += 1.0
        elif len(pool) > 6:
            del pool[int(random.integers(len(pool)))]
        for seen, kept in pool:
            np.testing.assert_array_equal(seen.numpy(), kept)


def test_threads_read_while_one_writes():
    x = tp.asarray(np.zeros((64, 8)))
    x[0] = 0.0
    failures = []
    over = threading.Event()

    def read():
        while not over.is_set():
            try:
                part = x[3:9]
                first = part.numpy().copy()
                if not np.array_equal(part.numpy(), first):
                    failures.append("a view changed")
            except Exception as error:  # noqa: BLE001  # shown below
                failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for at in range(300):
        x[at % 64] = float(at)
    over.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_argument_of_a_compiled_function_is_assigned_to():
    def step(x, y):
        y += 1.0
        x[0] = y[0] * 2.0
        return (x * y).sum()

    for run in (step, tp.compile(step)):
        x, y = tensor(), tp.asarray(X)
        row = x[0]
        total = run(x, y)
        expected = X.copy()
        expected[0] = (X[0] + 1) * 2
        np.testing.assert_array_equal(x.numpy(), expected)
        np.testing.assert_array_equal(y.numpy(), X + 1)
        np.testing.assert_array_equal(row.numpy(), X[0])
        assert float(total) == (expected * (X + 1)).sum()


def test_gradients_of_an_argument_that_a_compiled_function_assigns_to():
    @tp.compile
    def step(x):
        x *= x
        return x[0].sum()

    def f(x):
        y = x * 1.0
        first = step(y)
        return first + (functools.reduce(operator.add, [y, y])).sum()

    expected = 4 * X
    expected[0] = 6 * X[0]
    np.testing.assert_array_equal(tp.grad(f)(tensor()).numpy(), expected)

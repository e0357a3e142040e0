"""Where NumPy would write through a view: an error, and never another number."""

from __future__ import annotations

import gc
import itertools
import threading

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import AliasError

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


def add(x):
    x += 1.0


@pytest.mark.parametrize("change", [write, add])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_neither_a_view_nor_its_base_can_be_changed_while_both_live(view, change):
    x = tensor()
    y = view(x)
    shown = y.numpy().copy()
    for item in (x, y):
        with pytest.raises(AliasError, match="NumPy would change both"):
            change(item)
    np.testing.assert_array_equal(y.numpy(), shown)
    np.testing.assert_array_equal(x.numpy(), X)
    del item, y
    write(x)
    assert x.tolist() == np.ones((4, 6)).tolist()
    y = view(x)
    del x
    write(y)
    assert set(y.numpy().flat) == {1.0}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_copies_are_apart(copy):
    x = tensor()
    y = copy(x)
    write(x)
    y[...] = 2.0
    assert set(x.numpy().flat) == {1.0}
    assert set(y.numpy().flat) == {2.0}


PARTS = [
    np.s_[0],
    np.s_[1:],
    np.s_[:, ::2],
    np.s_[:, 1::2],
    np.s_[2, 3],
    np.s_[::-1, 4],
    np.s_[1:3, 2:4],
    np.s_[4:],
]


@pytest.mark.parametrize(("read", "written"), list(itertools.product(PARTS, PARTS)), ids=str)
def test_only_what_overlaps_is_refused(read, written):
    x, array = tensor(), X.copy()
    y, view = x[(*part(read), ...)], array[(*part(read), ...)]
    array[written] = -1.0
    if (view == X[(*part(read), ...)]).all():
        x[written] = -1.0
        np.testing.assert_array_equal(x.numpy(), array)
        np.testing.assert_array_equal(y.numpy(), view)
    else:
        with pytest.raises(AliasError):
            x[written] = -1.0


def part(key):
    return key if isinstance(key, tuple) else (key,)


def test_a_view_stays_one_after_a_write_elsewhere():
    x = tensor()
    first = x[0]
    x[1] = 0.0
    with pytest.raises(AliasError):
        x[0] = 0.0
    assert first.tolist() == X[0].tolist()


def test_siblings_meet_where_they_overlap():
    x = tensor()
    a, b, c = x[:2], x[1:], x[3]
    del x
    with pytest.raises(AliasError):
        a[1] = 0.0
    a[0] = 0.0
    del b
    a[1] = 0.0
    assert c.tolist() == X[3].tolist()


def test_a_named_view_that_is_assigned_over_itself_is_outdated():
    x = tensor()
    y = x[::-1]
    x[:] = y
    np.testing.assert_array_equal(x.numpy(), X[::-1])
    with pytest.raises(AliasError, match="is a view of a tensor to which it was then assigned"):
        tp.add(y, 1.0)
    with pytest.raises(AliasError):
        y.numpy()
    row = x[0]
    x[0] = row  # changes nothing, in NumPy either
    assert row.tolist() == x[0].tolist()


def test_numpys_false_swap_is_refused():
    x = tensor()
    with pytest.raises(AliasError):
        x[0], x[1] = x[1], x[0]
    x[[0, 1]] = x[[1, 0]]
    assert x[0].tolist() == X[1].tolist()


def test_augmented_assignment_to_an_index_is_no_write_through_a_view():
    x = tensor()
    x[0] += 1.0
    x[1:, ::2] *= 2.0
    for row in (1, 2):
        x[row] -= x[0]
    y = x[0]
    with pytest.raises(AliasError):
        y += 1.0
    with pytest.raises(AliasError):
        x[0] += 1.0  # y would see it


def test_the_variable_of_a_loop_counts():
    x = tensor()
    for row in x:
        assert row.shape == (6,)
    x[0] = 0.0
    with pytest.raises(AliasError):
        x[-1] = 0.0
    del row
    x[-1] = 0.0


def test_variables_keep_their_own_meaning():
    v = tp.Variable(X)
    part = v[0]
    v[0] = 1.0
    v += 1.0
    assert part.tolist() == X[0].tolist()
    with pytest.raises(AliasError):
        part[0] = 1.0  # in NumPy, v would change


def test_complex_parts_do_not_overlap(backend):
    if backend == "minimal":
        pytest.skip("it has no complex numbers")
    c = tp.asarray(np.array([1 + 2j, 3 + 4j]))
    real, imag = tp.real(c), tp.imag(c)
    with pytest.raises(AliasError):
        real[0] = 0.0
    del c
    real[0] = 0.0
    imag[0] = 0.0


def test_views_of_views_without_end():
    x = tensor()
    y = x
    for _ in range(1001):
        y = y.T
    with pytest.raises(AliasError):
        y[0] = 1.0
    del x
    y[0] = 1.0
    assert y[0].tolist() == [1] * 4


def test_dead_views_are_forgotten():
    x = tensor()
    for turn in range(3000):
        x[turn % 4]  # made and dropped
    assert len(x._alias.family) < 100
    x[0] = 1.0


def test_nothing_is_kept_alive(backend):
    gc.collect()
    before = tp.memory()[backend].buffers
    x = tensor()
    view = x.T
    assert tp.memory()[backend].buffers <= before + 2
    del x
    del view
    gc.collect()
    assert tp.memory()[backend].buffers == before


def test_tapes_and_scopes_are_no_views():
    x = tensor()

    def f(t):
        y = tp.reshape(t * 2.0, (-1,))
        return (y * y).sum()  # the tape holds what was saved

    value, pull = tp.vjp(f, x)
    x[0] = 0.0
    assert pull(tp.ones_like(value))[0].tolist() == (8 * X).tolist()
    with tp.tidy():
        y = tensor()
        y.T.sum()
        y[0] = 0.0
        y.T.dispose()
        y[1] = 0.0


def test_disposed_views_do_not_count():
    x = tensor()
    y = x.T
    y.dispose()
    x[0] = 1.0


def test_threads_make_and_drop_views_of_one_tensor():
    x = tensor()
    errors = []

    def work():
        try:
            with tp.use_backend("cpu"):
                for _ in range(300):
                    x.T[1:].sum()
        except BaseException as error:  # noqa: BLE001  # shown below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    x[0] = 1.0
    y = x.T
    with pytest.raises(AliasError):
        x[0] = 2.0
    assert y.shape == (6, 4)

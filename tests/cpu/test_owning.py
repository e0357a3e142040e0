"""Assignment in place: only where nobody else sees the memory, and then really."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from tests.core.catalogue_calls import KERNELS, cases

import tensorplug as tp
from tensorplug.dispatch.calls import dispatch, dispatch_several
from tensorplug_cpu.recycling import LARGE

S = np.s_
X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(autouse=True)
def _cpu():
    with tp.use_backend("cpu"):
        yield


def address(x):
    return x.numpy().__array_interface__["data"][0]


FRESH = {
    "array": lambda: tp.asarray(X),
    "zeros": lambda: tp.zeros((4, 3)),
    "computed": lambda: tp.asarray(X) + 1.0,
    "reshaped": lambda: tp.reshape(tp.arange(12.0), (4, 3)),
    "transposed": lambda: tp.asarray(X.T).T,
    "copied": lambda: tp.asarray(tp.asarray(X), copy=True),
    "from a list": lambda: tp.asarray(X.tolist()),
    "part of what is gone": lambda: tp.asarray(np.ones((8, 3), np.float32))[:4],
    "large": lambda: tp.ones((4, LARGE // 8)) + 1.0,  # over leased memory
}


@pytest.mark.parametrize("make", FRESH.values(), ids=FRESH)
@pytest.mark.parametrize("key", [S[1], S[-1, 2], S[1:3], S[::2, None], S[...], S[2, ..., :1]])
def test_a_tensor_alone_is_changed_in_place(make, key):
    x = make()
    expected = x.numpy().copy()
    before = address(x)
    for value in (7.0, np.ones(expected[key].shape, np.float32)):
        x[key] = value
        expected[key] = value
        assert address(x) == before
        np.testing.assert_array_equal(x.numpy(), expected)


def test_so_is_one_that_has_been_copied_once():
    x = tp.asarray(X)
    shown = x.numpy()
    x[0] = -1.0
    assert (shown == X).all()
    before = address(x)
    x[1] = -1.0
    assert address(x) == before


def shared(array):
    return tp.asarray(array, copy=False)


# What keeps the old values: each entry returns a tensor to write to, and who shall not see it.
OTHERS = {
    "a handle": lambda x: (x, copy.copy(x)),
    "identity": lambda x: (x, +x),
    "numpy()": lambda x: (x, x.numpy()),
    "a part of numpy()": lambda x: (x, x.numpy()[1:]),
    "asarray": lambda x: (x, np.asarray(x)),
    "DLPack": lambda x: (x, np.from_dlpack(x)),
    "a memoryview": lambda x: (x, memoryview(x.numpy())),
    "a variable": lambda x: (x, tp.Variable(x)),
    "what a variable holds": lambda x: (tp.Variable(x).read(), x),
    "a part elsewhere": lambda x: (x, x[3:]),
    "what it is a part of": lambda x: (x[:1], x[1:]),
    "an array that was shared": lambda x: (shared(a := np.array(x)), a),
    "a part of one": lambda x: (shared((a := np.array(x))[:2]), a),
}


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_whoever_sees_the_memory_keeps_the_values(others):
    x, other = others(tp.asarray(X) + 0.0)
    before = np.array(other)
    x[0] = -1.0
    np.testing.assert_array_equal(np.asarray(other), before)
    assert (x.numpy()[0] == -1).all()


def test_elements_that_share_a_place_are_told_apart():
    x = tp.broadcast_to(tp.asarray([1.0, 2.0]), (3, 2))
    x[0] = 5.0
    assert x.tolist() == [[5, 5], [1, 2], [1, 2]]
    row = tp.asarray(np.ndarray((3,), buffer=np.ones(1), strides=(0,)), copy=False)
    row[0] = 5.0
    assert row.tolist() == [5, 1, 1]


def test_where_nobody_may_write_a_copy_is_made():
    given = np.ones(3)
    given.flags.writeable = False
    x = tp.asarray(given, copy=False)
    del given
    x[0] = 5.0
    assert x.tolist() == [5, 1, 1]


def test_the_tape_keeps_what_it_saved():
    x = tp.asarray(X) + 0.0
    _, pull = tp.vjp(lambda t: (t * t).sum(), x)
    x[...] = 0.0
    np.testing.assert_array_equal(pull(tp.ones(()))[0].numpy(), 2 * X)


def test_on_the_tape_an_assignment_is_recorded():
    def f(x):
        y = x * 1.0
        y[0] = x[1] * x[1]
        return y.sum()

    expected = np.ones((4, 3), np.float32)
    expected[0] = 0
    expected[1] += 2 * X[1]
    np.testing.assert_array_equal(tp.grad(f)(tp.asarray(X)).numpy(), expected)


def test_what_is_assigned_to_leaves_the_tape_that_is_over():
    kept = []
    tp.grad(lambda x: kept.append(x * 2.0) or x.sum())(tp.asarray(X))
    y = kept.pop()
    y[...] = 1.0
    assert y._node is None
    assert tp.grad(lambda x: (x * y).sum())(tp.asarray(X)).tolist() == np.ones((4, 3)).tolist()


def test_who_observes_sees_an_assignment():
    x = tp.asarray(X)
    x[0] = 1.0
    with tp.profile() as p:
        x[0] = 2.0
    assert [kernel.name for kernel in p.kernels] == ["BroadcastTo", "TensorScatterUpdate"]


def test_a_value_that_does_not_fit_changes_nothing():
    x = tp.asarray(X)
    for value in (np.ones((4, 3)), 1j, tp.asarray([1.0, 2.0])):
        with pytest.raises(tp.errors.TensorplugError):
            x[1:3] = value
    np.testing.assert_array_equal(x.numpy(), X)
    x[1] = x[1:2]  # leading sizes of 1 do
    x[...] = x
    np.testing.assert_array_equal(x.numpy(), X)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_kernel_keeps_what_it_returned_or_shares_it_unseen(kernel):
    """What is assigned to a result reaches neither its inputs nor the next result."""
    for spec, case in itertools.islice(cases(kernel), 2):
        operands = [_operand(operand) for operand in case.inputs]
        before = [_text(operand) for operand in operands]
        try:
            first, second = (_run(spec, operands, case.attributes) for _ in range(2))
        except (tp.errors.DTypeError, tp.errors.KernelNotFoundError):
            continue  # not declared, or left to a decomposition
        expected = _text(second)
        for item in first:
            item[...] = tp.asarray(np.zeros((), item.dtype.numpy))
        assert _text(second) == expected
        assert _text(_run(spec, operands, case.attributes)) == expected
        assert [_text(operand) for operand in operands] == before


def _operand(given):
    if isinstance(given, list):
        return [_operand(item) for item in given]
    return None if given is None else tp.asarray(given)


def _run(spec, operands, attributes):
    if spec.several:
        return dispatch_several(spec, *operands, **attributes)
    return [dispatch(spec, *operands, **attributes)]


def _text(given):
    if isinstance(given, list):
        return [_text(item) for item in given]
    return None if given is None else repr(given.tolist())

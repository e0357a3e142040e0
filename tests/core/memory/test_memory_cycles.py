"""No call on tensors, failed or not, leaves objects behind or in reference cycles."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from contextlib import suppress

import numpy as np
import pytest
from tests.core.support.training import census, loss, own_garbage, parameters

import tensorplug as tp
from tensorplug.errors import TensorplugError
from tensorplug.testing import isolated_engine


def vector():
    return tp.asarray([1.0, 2.0, 3.0])


def profiled():
    with tp.profile() as profile:
        tp.grad(loss)(parameters())
    assert str(profile)
    assert tp.profile(tp.exp, vector()).result.shape == (3,)


def traced():
    with tp.trace_dispatch(file=io.StringIO()):
        tp.exp(vector())


def with_a_variable():
    v = tp.Variable(vector())
    v += 1.0
    tp.variable_grads(lambda: tp.sum(v * v))
    copy.deepcopy(v).dispose()


def exported():
    x = vector()
    np.from_dlpack(x)
    tp.from_dlpack(np.asarray(x))
    copy.deepcopy([copy.copy(x)])
    pickle.loads(pickle.dumps(x))


def indexed():
    x = tp.asarray(np.ones((3, 4), np.float32))
    tp.grad(lambda x: tp.sum(x[1:, None, ..., 0]) + tp.sum(x[tp.asarray([0, 1])]))(x)


def network():
    x = tp.ones((1, 4, 4, 1))
    filters = tp.ones((2, 2, 1, 3))

    def f(x):
        h = tp.nn.max_pool(tp.nn.relu(tp.nn.conv2d(x, filters, 1, "same")), 2, 2)
        return tp.sum(tp.nn.softmax(tp.reshape(h, (1, -1))) * 2.0)

    tp.grad(f)(x)


def with_a_kernel():
    with tp.register_kernel("Exp", "cpu", lambda x: x, override=True):
        tp.exp(vector())


DONE = {
    "jacobian": lambda: tp.jacobian(lambda x: x * tp.sum(x))(vector()),
    "hessian": lambda: tp.hessian(lambda x: tp.sum(x * x * x))(vector()),
    "jvp": lambda: tp.jvp(tp.exp, (vector(),), (vector(),)),
    "profile": profiled,
    "time": lambda: tp.time(tp.exp, vector()),
    "debug": lambda: tp.debug(tp.grad(loss), parameters(), leaks=True),
    "trace_dispatch": traced,
    "promotion": lambda: tp.asarray([1, 2]) + tp.asarray([1.5, 2.0]),
    "a variable": with_a_variable,
    "export": exported,
    "indexing": indexed,
    "a network": network,
    "explain": lambda: str(tp.explain("Softmax", [vector()])),
    "a kernel replaced": with_a_kernel,
    "multiple outputs": lambda: tp.grad(lambda x: tp.sum(tp.topk(x, 2)[0]))(vector()),
    "another device": lambda: vector().to("cpu"),
    "memory": tp.memory,
}


def fails_in_a_kernel(error):
    def kernel(x):
        raise error("stuck")

    with tp.register_kernel("Exp", "cpu", kernel, override=True):
        tp.tidy(tp.grad(lambda x: tp.sum(tp.exp(x * x))), vector())


def fails_in_a_checkpoint():
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) == 2:
            raise ZeroDivisionError
        return tp.sum(tp.exp(x))

    tp.grad(tp.checkpoint(f))(vector())


def fails_in_a_backward_function():
    f = tp.custom_grad(lambda x: (tp.exp(x), lambda dy: [dy, dy]))
    tp.grad(lambda x: tp.sum(f(x * x)))(vector())


def fails_as_disposed():
    x = vector()
    y = x * 2.0
    x.dispose()
    y + x


async def coroutine():
    pass


FAILED = {
    "shapes": lambda: vector() + tp.asarray([1.0, 2.0]),
    "dtypes": lambda: tp.grad(tp.exp)(tp.asarray([1])),
    "not connected": lambda: tp.grad(lambda _: tp.asarray(1.0))(vector()),
    "no kernel": lambda: tp.run_kernel("NoSuch", [vector()]),
    "no backend": lambda: tp.set_backend("nosuch"),
    "a kernel": lambda: fails_in_a_kernel(ZeroDivisionError),
    "an interruption": lambda: fails_in_a_kernel(KeyboardInterrupt),
    "a checkpoint": fails_in_a_checkpoint,
    "a backward function": fails_in_a_backward_function,
    "a NaN under debug": lambda: tp.debug(lambda: tp.log(vector() - 5.0)),
    "a NaN in a gradient under debug": lambda: tp.debug(tp.grad(lambda x: tp.sum(tp.sqrt(x - x)))),
    "a profile": lambda: tp.profile(fails_as_disposed),
    "tidy of a coroutine": lambda: tp.tidy(lambda: [vector(), coroutine()]),
    "a variable assigned": lambda: tp.Variable(vector()).assign([1.0]),
    "disposed": fails_as_disposed,
    "trees": lambda: tp.tree_map(tp.add, {"a": vector()}, {"b": vector()}),
}


def failing(act):
    def acting():
        with suppress(TensorplugError, ZeroDivisionError, KeyboardInterrupt):
            act()
            raise AssertionError("nothing was raised")

    return acting


ACTS = {**DONE, **{f"{what} fails": failing(act) for what, act in FAILED.items()}}


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_nothing_is_left(act):
    with isolated_engine("cpu"):
        for _ in range(3):  # fills the caches
            act()
        gc.collect()
        gc.disable()
        try:
            before = census()
            for _ in range(5):
                act()
            after = census()
            assert after == before, f"grown: {after - before}, shrunk: {before - after}"
            assert own_garbage() == []
        finally:
            gc.enable()

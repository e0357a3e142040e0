"""Variables on devices, in threads, and copied."""

from __future__ import annotations

import contextvars
import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from tests.core.support.engines import expect, spec_of, together

import tensorplug as tp
from tensorplug.dispatch.calls import dispatch
from tensorplug.errors import BackendClosedError, DisposedError
from tensorplug.testing import isolated_engine

# Devices --------------------------------------------------------------------------------


def test_a_variable_of_a_tensor_stays_on_its_device(engine):
    x = tp.asarray([1.0])
    with tp.use_backend("other"):
        shared, sent = tp.Variable(x), tp.Variable([1.0])
        assert (shared.device, sent.device) == ("memory", "other")
    assert tp.memory()["other"].transfers == 0
    assert engine.devices.source.opened == ["memory", "other"]


@pytest.mark.usefixtures("engine")
def test_another_backend_in_the_middle():
    v = tp.Variable([1.0, 2.0], name="v")
    tp.set_backend("other")
    y = v + 1.0
    assert (y.device, v.device) == ("other", "memory")
    expect(y, "float32", (2,), [2, 3])
    assert tp.memory()["other"].transfers == 1
    v += 1.0  # follows what is assigned
    assert v.device == "other"
    before = tp.memory()["other"].transfers
    expect(v * 2.0, "float32", (2,), [4, 6])
    assert tp.memory()["other"].transfers == before
    tp.set_backend("memory")
    v.assign([7.0, 8.0])
    assert v.device == "memory"
    moved = v.to("other")
    assert (moved.device, v.device, type(moved)) == ("other", "memory", tp.Tensor)
    expect(moved, "float32", (2,), [7, 8])


def test_new_contents_after_the_device_was_closed(engine):
    v = tp.Variable([1.0, 2.0], name="v")
    tp.set_backend("other")
    engine.devices.close("memory")
    with pytest.raises(BackendClosedError, match="'memory', which was closed"):
        v + 1.0
    with pytest.raises(BackendClosedError):
        v += 1.0
    v.assign([3.0, 4.0])
    expect(v + 1.0, "float32", (2,), [4, 5])


@pytest.mark.usefixtures("engine")
def test_gradients_across_devices():
    v = tp.Variable([1.0, 2.0], name="v")
    tp.set_backend("other")

    def loss():
        y = v * v
        tp.set_backend("memory")
        return tp.sum(y * v)

    found = tp.variable_grads(loss)
    expect(found.grads["v"], "float32", (2,), [3, 12])


def test_variables_outlive_their_backend(engine):
    v, w = tp.Variable([1.0, 2.0], name="v"), tp.Variable([3.0, 4.0], name="w")
    shared = v.read()
    tp.set_backend("other")

    def loss():
        y = tp.sum(v * w * w)
        tp.remove_backend("memory")
        return y

    found = tp.variable_grads(loss)
    expect(found.grads["v"], "float32", (2,), [9, 16])
    expect(found.grads["w"], "float32", (2,), [6, 16])
    assert (v.device, w.device) == ("host", "host")
    expect(v, "float32", (2,), [1, 2])
    expect(shared, "float32", (2,), [1, 2])
    v *= found.grads["v"]
    assert v.device == "other"
    expect(v, "float32", (2,), [9, 32])
    v.dispose()
    assert v.is_disposed


def test_observers_see_no_transfer_when_a_variable_is_read(engine):
    class Watch:
        def __init__(self):
            self.kinds = []

        def around(self, _plan, inputs, run):
            self.kinds += [type(operand) for operand in inputs]
            return run()

        def transferred(self, _tensor):
            self.kinds.append("transferred")

        def uploaded(self, _tensor):
            self.kinds.append("uploaded")

        def __getattr__(self, name):
            return lambda *_: None

    v, watch = tp.Variable([1.0]), Watch()
    engine.observers = (watch,)
    tp.add(v, tp.stop_gradient(v))
    tp.run_kernel("Add", [v, v])
    assert watch.kinds == [tp.Tensor] * 4
    tp.concat([v, v])
    assert watch.kinds[4:] == [list]
    with tp.use_backend("other"):
        tp.add(v, 1.0)
    assert watch.kinds[5:] == ["transferred", tp.Tensor, tp.Tensor]


# Threads --------------------------------------------------------------------------------


@pytest.fixture
def cpu():
    """Run on an engine of its own; give a function that runs others in it."""
    with isolated_engine("cpu"):
        context = contextvars.copy_context()

        def threads(count, work):
            contexts = [context.copy() for _ in range(count)]
            together(count, lambda number: contexts[number].run(work, number))

        yield threads


def test_threads_differentiate_the_same_variables(cpu):
    v, w = tp.Variable([1.0, 2.0], name="v"), tp.Variable([3.0, 5.0], name="w")

    def work(number):
        scale, chosen = float(number + 1), [None, [v], [w], [v, w]][number % 4]
        for _ in range(50):
            grads = tp.variable_grads(lambda: tp.sum(v * w * scale), chosen).grads
            assert sorted(grads) == sorted(variable.name for variable in chosen or (v, w))
            if "v" in grads:
                expect(grads["v"], "float32", (2,), [3 * scale, 5 * scale])
            if "w" in grads:
                expect(grads["w"], "float32", (2,), [scale, 2 * scale])

    cpu(8, work)


@pytest.mark.usefixtures("engine")
def test_assignments_during_a_call_take_effect_after_it():
    v = tp.Variable([2.0, 3.0])

    def scale(a, b):
        with tp.use_backend("other"):
            v.assign(v * 10.0)
        return a * b

    spec = spec_of("Scale", ("a", "b"))
    tp.register_kernel(spec, "memory", scale)
    tp.register_gradient(spec, "a", lambda dy, b: dy * b)
    tp.register_gradient(spec, "b", None)
    x = tp.asarray([1.0, 1.0])
    for call in (lambda a: tp.run_kernel(spec, [a, v]), *[lambda a: dispatch(spec, a, v)] * 2):
        v.assign([2.0, 3.0])
        y, vjp = tp.vjp(call, x)
        expect(y, "float32", (2,), [2, 3])
        expect(vjp(x)[0], "float32", (2,), [2, 3])
        expect(v, "float32", (2,), [20, 30])
        assert v.device == "other"


TWICE = [
    ("dispatch", lambda v: tp.multiply(v, v), 2, 1),
    ("by name", lambda v: tp.run_kernel("Multiply", [v, v]), 2, 1),
    ("in a list", lambda v: tp.concat([v, v]), 1, 2),
]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("what", "call", "power", "times"), TWICE)
def test_an_argument_given_twice_is_read_once(what, call, power, times, monkeypatch):
    v, values = tp.Variable([1.0]), iter(range(2, 100))
    read = tp.Variable._reading

    def read_and_assign(variable):
        tensor = read(variable)
        variable._hold(tp.asarray([float(next(values))]))
        return tensor

    for _ in range(2):
        before = v.item()
        monkeypatch.setattr(tp.Variable, "_reading", read_and_assign)
        result = call(v)
        monkeypatch.undo()
        assert v.item() > before
        expect(result, "float32", (times,), [before**power] * times)


@pytest.fixture
def restless():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_each_call_reads_a_variable_once(cpu):
    """Another thread assigns all the time: squares stay squares, gradients fit their point."""
    v = tp.Variable(np.full(64, 1.0, np.float32), name="v")
    done = threading.Event()

    def work(number):
        if number == 0:
            try:
                for turn in range(400):
                    v.assign(np.full(64, 1.0 + turn % 7, np.float32))
            finally:
                done.set()
            return
        while not done.is_set():
            root = np.sqrt((v * v).numpy())
            assert set(root) <= set(map(float, range(1, 8)))
            assert len(set(root)) == 1
            x = tp.ones((64,))
            y, vjp = tp.vjp(lambda x: x * v, x)
            np.testing.assert_array_equal(vjp(x)[0].numpy(), y.numpy())
            found = tp.variable_grads(lambda: tp.sum(v * v * v) + tp.sum(v.read()))
            (point,) = set(np.sqrt((found.grads["v"].numpy() - 1) / 3))
            assert found.value.item() == 64 * (point**3 + point)

    cpu(4, work)


@pytest.mark.usefixtures("engine", "restless")
def test_a_variable_that_moves_while_others_read():
    context = contextvars.copy_context()
    v = tp.Variable(np.zeros(16, np.float32))
    done = threading.Event()

    def work(number):
        if number == 0:
            try:
                for turn in range(300):
                    with tp.use_backend("other" if turn % 2 else "memory"):
                        v.assign(np.full(16, turn, np.float32))
            finally:
                done.set()
            return
        while not done.is_set():
            assert len(set((v + v).numpy())) == 1
            assert len(set(v.numpy())) == 1
            assert v.to("other").device == "other"

    contexts = [context.copy() for _ in range(4)]
    together(4, lambda number: contexts[number].run(work, number))


def test_names_are_given_once_to_many_threads(cpu):
    kept = []

    def work(_number):
        kept.extend([tp.Variable(0.0) for _ in range(50)])

    cpu(8, work)
    assert len({variable.name for variable in kept}) == 400


def test_a_context_copied_inside_reads_what_is_watched(cpu):
    v = tp.Variable(3.0, name="v")

    def loss():
        results = []
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: results.append(context.run(lambda: v * v)))
        thread.start()
        thread.join()
        bare = threading.Thread(target=lambda: results.append(v * v))
        bare.start()
        bare.join()
        return results[0] + results[1]  # a thread without the context computes constants

    found = tp.variable_grads(loss)
    assert (found.value.item(), found.grads["v"].item()) == (18, 6)
    cpu(1, lambda _: v.assign(4.0))
    assert v.item() == 4


def test_another_thread_may_assign_what_is_differentiated_here(cpu):
    v = tp.Variable(3.0, name="v")

    def loss():
        y = v * v
        thread = threading.Thread(target=lambda: v.assign(100.0))
        thread.start()
        thread.join()
        return y * v

    found = tp.variable_grads(loss)
    assert (found.value.item(), found.grads["v"].item(), v.item()) == (27, 27, 100)


# Copies ---------------------------------------------------------------------------------

PICKLES = [
    lambda v, p=protocol: pickle.loads(pickle.dumps(v, p))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
]
COPIES = [copy.copy, copy.deepcopy, *PICKLES]
IDS = ["copy", "deepcopy", *[f"pickle{p}" for p in range(pickle.HIGHEST_PROTOCOL + 1)]]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("duplicate", COPIES, ids=IDS)
def test_a_copy_is_another_variable(duplicate):
    v = tp.Variable([[1.0, 2.0]], name="w", trainable=False)
    made = duplicate(v)
    assert type(made) is tp.Variable
    assert (made.name, made.trainable, v.name) == ("w_1", False, "w")
    second = duplicate(v)
    assert (second.name, duplicate(second).name) == ("w_2", "w_2_1")
    v.assign([[3.0, 4.0]])
    expect(made, "float32", (1, 2), [[1, 2]])
    made.assign([[5.0, 6.0]])
    expect(second, "float32", (1, 2), [[1, 2]])
    made.dispose()
    expect(v, "float32", (1, 2), [[3, 4]])
    assert tp.Variable(0.0, name="w_1").name == "w_1"  # the copies' names are registered ones


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("duplicate", COPIES, ids=IDS)
def test_copies_of_what_was_disposed_and_in_scopes(duplicate):
    v = tp.Variable([1.0], name="w")
    with tp.tidy():
        made = duplicate(v)
    expect(made, "float32", (1,), [1])
    v.dispose()
    with pytest.raises(DisposedError, match=r"variable 'w' \(float32\[1\]\) was disposed"):
        duplicate(v)


@pytest.mark.usefixtures("engine")
def test_a_pickle_comes_back_under_its_name_on_its_device():
    v = tp.Variable([1.0, 2.0], name="w", trainable=False, dtype="float64")
    data = pickle.dumps({"model": [v]})
    v.dispose()
    with tp.use_backend("other"):
        made = pickle.loads(data)["model"][0]
    assert (made.name, made.trainable, made.device) == ("w", False, "memory")
    expect(made, "float64", (2,), [1, 2])


@pytest.mark.usefixtures("engine")
def test_a_deepcopy_of_a_model_keeps_shared_variables_shared():
    v = tp.Variable([1.0], name="w")
    model = copy.deepcopy({"encoder": v, "decoder": [v, tp.Variable([2.0], name="b")]})
    assert model["encoder"] is model["decoder"][0]
    assert [variable.name for variable in model["decoder"]] == ["w_1", "b_1"]
    again = pickle.loads(pickle.dumps(model))
    assert again["encoder"] is again["decoder"][0]


def test_a_copy_inside_a_differentiated_function_is_a_constant():
    with isolated_engine("cpu"):
        v = tp.Variable(3.0, name="v")
        found = tp.variable_grads(lambda: v * copy.copy(v))
        assert found.grads["v"].item() == 3
        assert copy.copy(found.value)._node is None

"""compile: variables, generators, and functions that cannot be compiled."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.compile.test_compile import Counted, agree
from tests.core.support import engines
from tests.core.support.tensors import tensor

import tensorplug as tp
from tensorplug.errors import CompileError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

A = np.array([[0.5, -1.25, 2.0], [3.5, 0.0, -0.75]], np.float32)


# Variables ------------------------------------------------------------------------------


def test_variables_are_read_at_each_call():
    v = tp.Variable(tensor(A))
    f = Counted(lambda x: x * v + v)
    compiled = tp.compile(f)
    x = tensor(A + 1)
    for turn in range(3):
        agree(compiled(x), x * v + v)
        v.assign(v * 2 + turn)
    assert f.calls == 1


def test_variables_are_assigned_at_each_call():
    count, total = tp.Variable(tp.asarray(0)), tp.Variable(tensor(A))

    @tp.compile
    def f(x):
        before = count.read()
        count.assign(count + 1)
        total.assign(total * 0.5 + x)
        total[0] = -total[1]
        return before, count * 10, total + 0

    expected = A
    for turn in range(3):
        before, after, seen = f(tensor(A))
        expected = expected * np.float32(0.5) + A
        expected[0] = -expected[1]
        assert (int(before), int(after), int(count)) == (turn, 10 * (turn + 1), turn + 1)
        np.testing.assert_array_equal(total.numpy(), expected)
        np.testing.assert_array_equal(seen.numpy(), expected)


def test_a_variable_as_an_argument_is_read_and_assigned():
    @tp.compile
    def f(v, x):
        v += x
        return v * 2

    one, other = tp.Variable(tensor(A)), tp.Variable(tensor(A * 3))
    for variable, factor in ((one, 1), (other, 3), (one, 2)):
        agree(f(variable, tensor(A)), tensor(A * (factor + 1) * 2))
        agree(variable.read(), tensor(A * (factor + 1)))


def test_an_error_while_tracing_assigns_nothing():
    v = tp.Variable(tensor(A))

    @tp.compile
    def f(x):
        v.assign(v + x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(tensor(A))
    agree(v.read(), tensor(A))


def test_a_variable_that_is_disposed_later():
    v = tp.Variable(tensor(A))
    compiled = tp.compile(lambda x: x * v)
    compiled(tensor(A))
    v.dispose()
    with pytest.raises(tp.errors.DisposedError):
        compiled(tensor(A))


# Random numbers -------------------------------------------------------------------------


def test_keys_are_inputs():
    f = Counted(lambda key, x: x + tp.random.normal(key, x.shape))
    compiled = tp.compile(f)
    x = tensor(A)
    for seed in range(3):
        agree(compiled(tp.random.key(seed), x), f.f(tp.random.key(seed), x))
    assert f.calls == 1


def test_generators_draw_at_each_call():
    ours, theirs = tp.random.Generator(7), tp.random.Generator(7)

    def dropout(rng):
        return lambda x: (rng.normal(x.shape) * x, rng.uniform((3,)))

    compiled, eager = tp.compile(dropout(ours)), dropout(theirs)
    for _ in range(3):
        agree(compiled(tensor(A)), eager(tensor(A)))
    assert ours.state == theirs.state


# What cannot be compiled ----------------------------------------------------------------


def _condition(x):
    if tp.sum(x) > 0:  # HERE
        return x
    return -x


def _number(x):
    return x * float(tp.max(x))  # HERE


def _array(x):
    return x + tp.sin(x).numpy()  # HERE


def _list(x):
    return tp.asarray(x.tolist())  # HERE


def _shape(x):
    return tp.nonzero(x > 0)  # HERE


def _count(x):
    return tp.zeros((tp.argmax(x[0]),))  # HERE


def _making(x):
    return tp.Variable(x * 2)  # HERE


@pytest.mark.parametrize(
    "f", [_condition, _number, _array, _list, _shape, _count, _making], ids=lambda f: f.__name__
)
def test_the_line_is_named(f):
    compiled = tp.compile(f)
    with pytest.raises(CompileError, match=r"test_compile_state\.py") as caught:
        compiled(tensor(A))
    assert "# HERE" in str(caught.value)
    assert f.__name__ in str(caught.value)


def test_data_that_depends_on_no_argument_can_be_asked_for():
    held = tensor(A)

    @tp.compile
    def f(x):
        scale = float(tp.max(held)) if tp.sum(held) > 0 else 1.0
        return x * scale, held.numpy()[0, 0], tp.nonzero(held > 0)[0]

    agree(f(tensor(A)), (tensor(A * 3.5), np.float32(0.5), tp.nonzero(held > 0)[0]))


def test_an_argument_is_assigned_to_at_every_call():
    @tp.compile
    def f(x):
        x[0] = x[0] + 1.0
        return x

    x = tensor(A)
    for count in range(1, 4):
        expected = np.array(A)
        expected[0] += count
        agree(f(x), tensor(expected))
        agree(x, tensor(expected))


def test_an_argument_must_not_be_disposed_of():
    @tp.compile
    def f(x):
        y = x + 1
        x.dispose()
        return y

    x = tensor(A)
    with pytest.raises(CompileError, match="disposes of an argument"):
        f(x)
    agree(x, tensor(A))


def test_a_tensor_that_outlives_the_tracing_is_useless():
    kept = []

    @tp.compile
    def f(x):
        kept.append(x * 2)
        return x

    f(tensor(A))
    with pytest.raises(CompileError, match="has no data"):
        kept[0].numpy()
    with pytest.raises(CompileError, match="has no data"):
        tp.add(kept[0], 1)
    assert "unreadable" in repr(kept[0])


def test_arguments_must_be_tensors_arrays_or_hashable():
    compiled = tp.compile(lambda x, y: x + y)
    with pytest.raises(CompileError, match="bytearray, which is neither a tensor nor hashable"):
        compiled(tensor(A), bytearray(b"12"))


def test_numpy_arrays_are_inputs():
    traced = []

    @tp.compile
    def f(x, tree, *, factor=1.0):
        traced.append((type(x), type(tree["y"][0])))
        return (x + tree["y"][0]) * factor

    for by in (1.0, 2.0):
        result = f(A, {"y": [A * by, "static"]}, factor=by)
        np.testing.assert_array_equal(result.numpy(), (A + A * by) * by)
    assert traced == [(tp.Tensor, tp.Tensor)]
    assert "Add" in str(f.program(A, {"y": [A, "static"]}, factor=3.0))
    # Tensors of the same types have the same signature.
    f(tp.asarray(A), {"y": [tp.asarray(A), "static"]}, factor=3.0)
    assert len(traced) == 1
    donating = tp.compile(lambda x: x * 2, donate=0)
    np.testing.assert_array_equal(donating(A).numpy(), A * 2)


def test_an_error_in_a_program_names_kernel_and_line():
    def failing(x):
        if x[0, 0] > 2:
            raise MemoryError("no room")
        return np.negative(x)

    with tp.register_kernel("Neg", "cpu", failing, override=True):
        compiled = tp.compile(lambda x: tp.sin(-x))  # HERE
        compiled(tensor(A))
        with pytest.raises(MemoryError, match="no room") as caught:
            compiled(tensor(A + 5))
    notes = "\n".join(caught.value.__notes__)
    assert "in kernel Neg(x=float32[2,3])" in notes
    assert "# HERE" in notes


def test_a_kernel_of_the_wrong_type_is_an_error():
    with tp.register_kernel("Neg", "cpu", lambda x: x.astype(np.float64), override=True):
        compiled = tp.compile(lambda x: tp.sin(-x))
        with pytest.raises(tp.errors.KernelOutputError, match="out is float64"):
            compiled(tensor(A))


def test_observers_of_an_engine_see_its_calls():
    compiled = tp.compile(lambda x: tp.log(x) + 1)
    compiled(tensor(np.abs(A) + 1))
    with tp.debug(nan=True), pytest.raises(tp.errors.NonFiniteError, match="Log"):
        compiled(tensor(-np.abs(A) - 1))


class _Watcher:
    """Notes the kernels that it sees, and reads their results."""

    def __init__(self):
        self.seen = []

    def around(self, plan, _inputs, run):
        outputs = run()
        self.seen.append((plan.spec.name, [output.numpy().shape for output in outputs]))
        return outputs

    def uploaded(self, _tensor):
        """See nothing."""


def test_an_observer_of_the_engine_sees_what_runs():
    made = engines.make()
    made.observers = (_Watcher(),)
    with engines.using(made):
        compiled = tp.compile(lambda x: -x * x)
        compiled(tensor(A))
        assert made.observers[0].seen == [("Neg", [(2, 3)]), ("Multiply", [(2, 3)])]


def test_the_device_of_an_argument_can_be_named():
    @tp.compile
    def f(x):
        return x.to(x.device) + tp.ones((3,), device=x.device), x.device

    agree(f(tensor(A)), (tensor(A + 1), "cpu"))


def test_a_captured_tensor_must_not_get_values_of_arguments():
    held = tensor(A)

    @tp.compile
    def f(x):
        held[0] = x[1]
        return x

    with pytest.raises(CompileError):
        f(tensor(A))
    agree(held, tensor(A))


def test_a_backward_pass_on_a_closed_device():
    made = engines.make(("memory", "other"))
    with engines.using(made):
        with tp.use_backend("memory"):
            x = tensor(A)
            compiled = tp.compile(lambda x: x * x)
            _, vjp = tp.vjp(compiled, x)
        made.devices.close("memory")
        with tp.use_backend("other"), pytest.raises(tp.errors.BackendClosedError):
            vjp(tensor(A))


def test_an_optimizer_steps_outside():
    def train(wrap):
        w = tp.Variable(tensor(A), name=f"w{wrap.__name__}")
        optimizer = tp.train.adam(0.1)
        step = wrap(lambda x: tp.variable_grads(lambda: tp.mean((w - x) ** 2), [w]))
        values = []
        for _ in range(4):
            value, grads = step(tensor(A * 2))
            optimizer.apply_gradients(grads)
            values.append(float(value))
        assert int(optimizer.state["step"]) == 4
        return values

    def plain(f):
        return f

    assert train(tp.compile) == pytest.approx(train(plain), rel=1e-6)


def test_generators_are_spawned_outside():
    rng = tp.random.Generator(3)
    before = rng.state
    with pytest.raises(CompileError, match="spawn them outside"):
        tp.compile(lambda x: rng.spawn(1)[0].normal(x.shape) * x)(tensor(A))
    assert rng.state == before

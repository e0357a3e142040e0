"""compile: functions run as programs, with the results that they have without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.core.support.tensors import tensor

import tensorplug as tp
from tensorplug.compile.functions import LIMIT
from tensorplug.errors import RecompileWarning
from tensorplug.tensors import tree

BACKENDS = ["cpu", "minimal"]

A = np.array([[0.5, -1.25, 2.0], [3.5, 0.0, -0.75]], np.float32)
B = np.array([[1.5, 0.25, -1.0], [0.5, 2.0, 4.0]], np.float32)


@pytest.fixture(params=BACKENDS)
def _backend(request: Any) -> Any:
    with tp.use_backend(request.param):
        yield


on_backends = pytest.mark.usefixtures("_backend")
on_cpu = pytest.mark.usefixtures("on_the_cpu")


def numbers(given: Any) -> list[Any]:
    """Return the leaves of a tree with arrays for tensors."""
    return [leaf.numpy() if isinstance(leaf, tp.Tensor) else leaf for leaf in tree.leaves(given)]


def agree(actual: Any, expected: Any, rtol: float = 2e-6) -> None:
    """Compare trees: structure, dtypes, shapes, values."""
    assert tree.paths(actual) == tree.paths(expected)
    for ours, theirs in zip(numbers(actual), numbers(expected), strict=True):
        if not isinstance(theirs, np.ndarray):
            assert type(ours) is type(theirs)
            assert ours == theirs
            continue
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-6)


class Counted:
    """A function that counts how often it runs."""

    def __init__(self, f: Any) -> None:
        self.f = f
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.f(*args, **kwargs)


def kernels(program: Any) -> list[str]:
    """Return the names of the kernels that a program calls."""
    return [call.plan.spec.name for call in program.calls]


# Programs -------------------------------------------------------------------------------


def _loss(p: dict[str, Any], x: Any, y: Any) -> Any:
    hidden = tp.nn.relu(x @ p["w1"] + p["b1"])
    return tp.losses.softmax_cross_entropy(y, hidden @ p["w2"] + p["b2"])


def _step(p: dict[str, Any], x: Any, y: Any) -> Any:
    loss, gradients = tp.value_and_grad(_loss)(p, x, y)
    return loss, {name: item - 0.1 * gradients[name] for name, item in p.items()}


def _unrolled(a: Any, b: Any) -> Any:
    for turn in range(6):
        a = tp.tanh(a * b + turn) if turn % 2 else a - 0.25 * b
    return a


def _indexing(a: Any, b: Any) -> Any:
    chosen = tp.where(a > b, a, -b)
    return chosen[:, ::-1], chosen[0, 1], tp.take(chosen, tp.asarray([2, 0]), axis=1), a[1][None]


def _assigning(a: Any, b: Any) -> Any:
    c = a * 2
    c[0] = b[1]
    c[:, 1] += 3.0
    return c, a


def _several(a: Any, b: Any) -> Any:
    values, places = tp.linalg.qr(a @ b.T)
    return tp.concat([values, places, a], axis=1), tp.unstack(b), tp.argmax(a, axis=1)


def _mixed(a: Any, b: Any) -> Any:
    whole = tp.astype(b, tp.int32)
    return a * whole, whole // 2, a > 1, tp.astype(a, tp.float64) + 0.1, tp.sum(whole)


def _reduced(a: Any, b: Any) -> Any:
    normal = (a - tp.mean(a, axis=0)) / tp.sqrt(tp.var(a, axis=0) + 1e-3)
    return tp.nn.softmax(normal * b), tp.max(a), tp.cumulative_sum(b, axis=1), tp.linalg.norm(a)


PROGRAMS = {
    item.__name__: item for item in (_unrolled, _indexing, _assigning, _several, _mixed, _reduced)
}


@on_backends
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_function(name):
    f = PROGRAMS[name]
    compiled = tp.compile(f)
    for shift in (0.0, 1.5, -0.5):  # the first call runs it twice, and later ones are fused
        a, b = tensor(A + shift), tensor(B)
        agree(compiled(a, b), f(a, b))


@on_backends
def test_a_training_step():
    rng = np.random.default_rng(0)
    shapes = {"w1": (5, 7), "b1": (7,), "w2": (7, 3), "b2": (3,)}
    eager = {name: tensor(rng.standard_normal(shape)) for name, shape in shapes.items()}
    compiled = dict(eager)
    x, y = tensor(rng.standard_normal((4, 5))), tensor(np.eye(3)[[0, 2, 1, 1]])
    step = Counted(_step)
    fast = tp.compile(step)
    for _ in range(4):
        loss, eager = _step(eager, x, y)
        again, compiled = fast(compiled, x, y)
        agree((again, compiled), (loss, eager), rtol=1e-5)
    assert step.calls == 1


@on_cpu
def test_without_fusion_results_are_the_same_bits(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "0")  # else few calls are a group of the CPU backend
    a, b = tensor(A), tensor(B)
    for f in PROGRAMS.values():
        program = tp.compile(f)
        for ours, theirs in zip(
            numbers(program(a, b)), numbers(_kernel_by_kernel(program, a, b)), strict=True
        ):
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def _kernel_by_kernel(compiled: Any, *args: Any) -> Any:
    with tp.profile():
        return compiled(*args)


# What is taken out ----------------------------------------------------------------------


@on_cpu
def test_no_value_is_computed_twice():
    def f(x):
        return tp.sin(x) * 2 + tp.sin(x) * 2

    program = tp.compile(f).program(tensor(A))
    assert kernels(program) == ["Sin", "Multiply", "Add"]


@on_cpu
def test_calls_that_differ_in_an_attribute_are_two():
    def f(x):
        return tp.sum(x, axis=0), tp.sum(x, axis=1), tp.sum(x, axis=0)

    compiled = tp.compile(f)
    assert kernels(compiled.program(tensor(A))) == ["Sum", "Sum"]
    agree(compiled(tensor(A)), f(tensor(A)))


@on_cpu
def test_unused_values_are_not_computed():
    def f(x):
        tp.exp(tp.cos(x))
        return tp.sin(x)

    assert kernels(tp.compile(f).program(tensor(A))) == ["Sin"]


@on_cpu
def test_values_that_depend_on_no_argument_are_computed_once():
    def f(x):
        table = tp.exp(tp.arange(3, dtype=tp.float32)) / 2
        assert float(table[0]) == 0.5  # its data is there
        return x * table + tp.zeros_like(x)

    compiled = tp.compile(f)
    assert kernels(compiled.program(tensor(A))) == ["Multiply", "Add"]
    agree(compiled(tensor(A)), f(tensor(A)))


@on_cpu
def test_values_are_dropped_after_their_last_use():
    def f(x):
        for _ in range(20):
            x = tp.cumulative_sum(x, axis=0)
        return x

    compiled = tp.compile(f)
    compiled(tensor(A))
    (special,) = compiled._known.values()
    dropped = [slot for step in special.executable._steps for slot in step.done]
    # All but the result, each once; the argument's slot is emptied as well.
    assert sorted(dropped) == [at for at in range(21) if at != special.executable._outputs[0]]


# Signatures -----------------------------------------------------------------------------


@on_cpu
def test_one_trace_for_each_signature():
    f = Counted(lambda x, scale, bias=None: x * scale if bias is None else x * scale + bias)
    compiled = tp.compile(f)
    x = tensor(A)
    agree(compiled(x, 2), x * 2)
    agree(compiled(tensor(B), 2), tensor(B) * 2)
    assert f.calls == 1
    agree(compiled(x, 3), x * 3)
    agree(compiled(x, 3.0), x * 3.0)  # 3 and 3.0 may mean different things to a function
    assert f.calls == 3
    agree(compiled(x[:1], 2), x[:1] * 2)
    agree(compiled(tp.astype(x, tp.float64), 2), tp.astype(x, tp.float64) * 2)
    agree(compiled(x, 2, bias=x), x * 3)
    agree(compiled(x, 2, x), x * 3)
    assert f.calls == 7


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Layer:
    w: Any
    name: str = field(default="", metadata={"static": True})


@on_backends
def test_trees_go_in_and_out():
    def f(pair, layers, *, options):
        total = pair.left + pair.right[0]
        for layer in layers:
            total = total * layer.w
        if layers[0].name == "minus":
            total = -total
        return Pair(total, {"kept": None, "power": options["power"], "layer": layers[0]})

    compiled = tp.compile(f)
    for name in ("plus", "minus"):
        given = (Pair(tensor(A), [tensor(B)]), [Layer(tensor(A), name), Layer(tensor(B))])
        for power in (2, "two"):
            options = {"power": power}
            result = compiled(*given, options=options)
            agree(result, f(*given, options=options))
            assert isinstance(result, Pair)
            assert result.right["layer"].name == name


@dataclass
class Alike(Layer):
    pass


CHANGES: dict[str, tuple[Any, bool]] = {
    "nothing": (lambda _: None, False),
    "a tensor": (lambda model: setattr(model["layer"], "w", tensor(B)), False),
    "a float": (lambda model: model.update(factor=5.0), False),
    "a shape": (lambda model: setattr(model["layer"], "w", tensor(A[:1])), True),
    "static data": (lambda model: setattr(model["layer"], "name", "minus"), True),
    "a leaf for None": (lambda model: model["rest"].__setitem__(0, tensor(A)), True),
    "None for a leaf": (lambda model: model["rest"].__setitem__(1, None), True),
    "one leaf more": (lambda model: model["rest"].append(tensor(B)), True),
    "a class": (lambda model: model.update(layer=Alike(model["layer"].w)), True),
    "a leaf for a node": (lambda model: model.update(layer=tensor(A)), True),
}


@pytest.mark.parametrize("name", CHANGES)
@on_cpu
def test_what_has_changed_in_a_tree_is_seen(name):
    def f(model):
        layer = model["layer"]
        total = tp.sum(layer.w) * model["factor"] if isinstance(layer, Layer) else tp.max(layer)
        for leaf in model["rest"]:
            total = total if leaf is None else total + tp.sum(leaf)
        minus = getattr(layer, "name", "") == "minus"
        return -total if minus else total + 7 * isinstance(layer, Alike)

    change, traces = CHANGES[name]
    counted = Counted(f)
    compiled = tp.compile(counted)
    model = {"factor": 3.0, "layer": Layer(tensor(A)), "rest": [None, tensor(B)]}
    agree(compiled(model), f(model))
    change(model)
    agree(compiled(model), f(model))
    assert counted.calls == 1 + traces


@on_cpu
def test_programs_are_forgotten_when_there_are_many():
    f = Counted(lambda x, n: x + n)
    compiled = tp.compile(f)
    x = tensor(A)
    for n in range(8):
        compiled(x, n)
    with pytest.warns(RecompileWarning, match=r"was 7, now 8"):
        compiled(x, 8)
    for n in range(9, LIMIT + 3):
        compiled(x, n)
    assert len(compiled._known) == LIMIT
    compiled(x, LIMIT + 2)
    assert f.calls == LIMIT + 3
    agree(compiled(x, 0), x)
    assert f.calls == LIMIT + 4

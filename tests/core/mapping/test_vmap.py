"""vmap: axes, trees, constants, state, and errors."""

from __future__ import annotations

import gc
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.tensors import same, tensor

import tensorplug as tp
from tensorplug.contract.entries import decomposition_entry
from tensorplug.contract.owner import Owner
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
    KernelOutputError,
    OutOfRangeError,
    RegistrationError,
    ShapeError,
)
from tensorplug.plugin import BatchingTable, KernelSpec, TensorType, dispatch
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("on_the_cpu")

OWNER = Owner("tests")
RANDOM = np.random.default_rng(37)
A, B, C, W = (  # whose products and sums are exact
    RANDOM.integers(-16, 16, shape) / 4 for shape in ((4, 3), (3, 4), (2, 4, 3), (3, 2))
)


@dataclass
class Layer:
    weight: Any
    bias: Any


# what, function, arguments, keywords of vmap, the result by NumPy
AXES: list[tuple[str, Any, tuple[Any, ...], dict[str, Any], Any]] = [
    ("one axis", lambda x: tp.sum(x), (A,), {}, A.sum(1)),  # noqa: PLW0108  # as the others
    ("the last axis", lambda x: tp.sum(x), (A,), {"in_axes": -1}, A.sum(0)),  # noqa: PLW0108
    ("a middle axis", lambda x: x[0], (C,), {"in_axes": 1}, C[0]),
    ("two arguments", lambda x, y: x * y, (A, B), {"in_axes": (0, 1)}, A * B.T),
    ("a list of axes", lambda x, y: x * y, (A, B), {"in_axes": [0, 1]}, A * B.T),
    ("a constant", lambda x, w: x @ w, (A, W), {"in_axes": (0, None)}, A @ W),
    (
        "axes of NumPy",
        lambda x: x * 2.0,
        (C,),
        {"in_axes": np.int64(1), "out_axes": np.int8(2)},
        2 * np.moveaxis(C, 1, 2),
    ),
    ("axis 1 out", lambda x: x * 2.0, (A,), {"out_axes": 1}, 2 * A.T),
    ("the last axis out", lambda x: x * 2.0, (C,), {"out_axes": -1}, np.moveaxis(2 * C, 0, -1)),
    ("ranks that differ", lambda x, y: x + y, (A, A[:, 0]), {}, A + A[:, :1]),
    ("one example", lambda x: tp.cumulative_sum(x), (A[:1],), {}, A[:1].cumsum(1)),  # noqa: PLW0108
    ("no example", lambda x: tp.sum(x), (A[:0],), {}, np.zeros(0)),  # noqa: PLW0108
    ("no example, one by one", lambda x: tp.linalg.det(x), (C[:0, :3],), {}, np.zeros(0)),  # noqa: PLW0108
    ("axis_size", lambda: tp.asarray([1.0, 2.0]), (), {"axis_size": 3}, [[1, 2]] * 3),
    ("a number", lambda _: 2.0, (A,), {}, [2.0] * 4),
    ("the same for all", lambda _: tp.ones(2), (A,), {"out_axes": None}, [1, 1]),
    ("an argument as it is", lambda x: x, (A,), {}, A),
    ("a constant as it is", lambda _, w: w, (A, W), {"in_axes": (0, None)}, [W] * 4),
    (
        "slices of one shape",
        lambda x: x[:1] - x[1:2] + x[2:],
        (A,),
        {},
        A[:, :1] - A[:, 1:2] + A[:, 2:],
    ),
    ("rank 0", lambda x, y: x - y, (A[:, 0], B[0]), {}, A[:, 0] - B[0]),
]


@pytest.mark.parametrize(
    ("f", "args", "options", "expected"), [row[1:] for row in AXES], ids=[row[0] for row in AXES]
)
def test_vmap_maps_over_axes(f: Any, args: Any, options: dict[str, Any], expected: Any) -> None:
    same(tp.vmap(f, **options)(*map(tensor, args)), np.asarray(expected))


def test_vmap_maps_trees() -> None:
    def apply(layer: Layer, x: dict[str, Any], *, scale: Any) -> dict[str, Any]:
        y = x["a"] @ layer.weight + layer.bias
        return {"y": y * scale, "shape": (tp.sum(y), None)}

    layer = Layer(tensor(W), tensor(np.stack([W[0], W[1]])))
    mapped = tp.vmap(
        apply,
        in_axes=(Layer(None, 0), {"a": 1}),
        out_axes={"y": 1, "shape": 0},
    )
    result = mapped(layer, {"a": tensor(A.T[:, :2])}, scale=tensor([1.0, 10.0]))
    y = A[:2] @ W + W[:2]
    same(result["y"], (y * [[1], [10]]).T)
    same(result["shape"][0], y.sum(1))
    assert result["shape"][1] is None


def test_constants_stay_tensors_without_the_examples() -> None:
    shapes = []

    def f(x: Any) -> Any:
        c = tp.asarray([1.0, 2.0, 3.0]) * 2.0 + tensor(A[0])
        shapes.append((repr(c)[:7], c.tolist()))  # its data can be read
        return x * c

    same(tp.vmap(f)(tensor(A)), A * (2 * np.array([1, 2, 3]) + A[0]))
    assert shapes[0][0] == "Tensor("


@pytest.mark.parametrize("spec", ["f", "vf", "ff"])
def test_vmap_nests(spec: str) -> None:
    """Tables of products: the outer vmap over either argument, and the inner one."""
    outer = (0, None) if spec[0] == "f" else (None, 0)
    inner = (None, 0) if spec[0] == "f" else (0, None)
    result = tp.vmap(tp.vmap(lambda x, y: tp.sum(x * y), inner), outer)(tensor(A), tensor(B.T))
    expected = A @ B
    same(result, expected if spec[0] == "f" else expected.T)


def test_the_same_size_twice() -> None:
    """The interpreters of both have the same number of examples, but different devices."""
    x = RANDOM.standard_normal((3, 3))
    result = tp.vmap(lambda row: tp.vmap(lambda a: a * tp.sum(row))(row))(tensor(x))
    same(result, x * x.sum(1, keepdims=True))


def test_assignments_in_the_function_stay_there() -> None:
    def f(x: Any, w: Any) -> Any:
        x[0] = 0.0
        w[0] = x[1]
        return tp.sum(x) + w[0]

    x, w = tensor(A), tensor(W[:, 0])
    same(tp.vmap(f, (0, None))(x, w), A[:, 1:].sum(1) + A[:, 1])
    same(x, A)
    same(w, W[:, 0])


def test_assignments_to_constants() -> None:
    def f(x: Any) -> Any:
        y = tp.zeros(3)
        y[1] = x[0]
        y += x
        x[:] = 1.0
        return y + x

    same(tp.vmap(f)(tensor(A)), A + A[:, :1] * [0, 1, 0] + 1)

    def g(w: Any) -> Any:
        def row(x: Any) -> Any:
            v = w[:]
            v[0] = 2.0  # the tape outside must see that
            return tp.sum(v * x)

        return tp.sum(tp.vmap(row)(tensor(A)))

    same(tp.grad(g)(tensor(W[:, 0])), A.sum(0) * [0, 1, 1])


def test_vmap_reads_and_assigns_variables() -> None:
    v = tp.Variable(tensor(W))
    same(tp.vmap(lambda x: x @ v)(tensor(A)), A @ W)
    result = tp.variable_grads(lambda: tp.sum(tp.vmap(lambda x: x @ v)(tensor(A))), [v])
    same(result.grads[v.name], np.repeat(A.sum(0)[:, None], 2, 1))
    tp.vmap(lambda x: v.assign(tp.ones((3, 2))) or x)(tensor(A))
    same(v.read(), np.ones((3, 2)))
    with pytest.raises(ArgumentError, match=r"assigns a tensor .*\(float32\[3\]\) to"):
        tp.vmap(lambda x: tp.Variable(tp.zeros(3, dtype=tp.float32)).assign(x))(tensor(A))


def test_a_generator_draws_other_numbers_for_each_example() -> None:
    generator = tp.random.Generator(5)
    result = tp.vmap(lambda x: x * 0.0 + generator.uniform((3,), tp.float32))(tensor(A)).numpy()
    assert len(np.unique(result)) == result.size
    key = tp.random.Generator(5).key()
    rows = [tp.random.uniform(k, (3,), tp.float32).numpy() for k in tp.random.split(key, 4)]
    np.testing.assert_array_equal(result, np.stack(rows))


def test_keys_of_the_examples() -> None:
    keys = tp.random.split(tp.random.key(3), 4)
    result = tp.vmap(lambda k: tp.random.normal(k, (2,)))(keys)
    same(result, np.stack([tp.random.normal(k, (2,)).numpy() for k in keys]))


def test_vmap_inside_tidy() -> None:
    def f(x: Any) -> Any:
        with tp.tidy():
            return tp.keep(x * 2.0 + 1.0)

    with tp.tidy():
        result = tp.vmap(f)(tensor(A))
        kept = tp.keep(tp.vmap(f)(tensor(A)))
    assert result.is_disposed
    same(kept, 2 * A + 1)


def test_nothing_is_left() -> None:
    mapped = tp.vmap(lambda x: tp.sum(tp.sin(x) * 2.0))
    x = tensor(A)
    mapped(x)
    gc.collect()
    before = tp.memory()
    mapped(x)
    after = tp.memory()  # without the garbage collector
    assert (after.tensors, after.buffers) == (before.tensors, before.buffers)


# what, function of the arguments, keywords of vmap, arguments, class, message
ERRORS: list[tuple[Any, dict[str, Any], tuple[Any, ...], type[Exception], str]] = [
    (
        lambda x: float(x[0]),
        {},
        (A,),
        ArgumentError,
        r"reads the data of a tensor \(float32\[\]\)",
    ),
    (lambda x: 1 if x[0] > 0 else 2, {}, (A,), ArgumentError, r"where\("),
    (tp.nonzero, {}, (A,), ShapeError, r"output shape of Where\(.*\) depends on the data"),
    (tp.add, {}, (A, C), ShapeError, r"argument 0 \(4 in axis 0\), argument 1 \(2 in axis 0\)"),
    (tp.sin, {"axis_size": 5}, (A,), ShapeError, r"argument 0 \(4 in axis 0\), axis_size=5"),
    (tp.sin, {"in_axes": 2}, (A,), OutOfRangeError, r"argument 0 is float32\[4,3\].* no axis 2"),
    (tp.sin, {}, (2.0,), OutOfRangeError, r"argument 0 is float32\[\].*in_axes=None"),
    (tp.sin, {"in_axes": None}, (A,), ArgumentError, "no argument has examples"),
    (
        tp.sin,
        {"in_axes": (0, 0)},
        (A,),
        ArgumentError,
        r"in_axes has 2 entries.* got 1 positional",
    ),
    (tp.sin, {"in_axes": ([0, 1],)}, (A,), ArgumentError, r"in_axes\[0\]"),
    (tp.sin, {"in_axes": True}, (A,), ArgumentError, r"in_axes\[0\]: bool for Tensor"),
    (tp.sin, {"in_axes": ("x",)}, (A,), ArgumentError, r"in_axes\[0\]: str for Tensor"),
    (tp.sin, {"out_axes": 2}, (A,), OutOfRangeError, r"the result is float32\[4,3\].* no axis 2"),
    (tp.sin, {"out_axes": None}, (A,), ArgumentError, r"the result \(float32\[3\]\) depends on"),
    (tp.sin, {"out_axes": (0, 0)}, (A,), ArgumentError, "out_axes"),
    (lambda x: {"a": x, "b": object()}, {}, (A,), DTypeError, r"the result\['b'\]"),
]


@pytest.mark.parametrize(("f", "options", "args", "kind", "message"), ERRORS)
def test_vmap_refuses_calls(
    f: Any, options: Any, args: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        tp.vmap(f, **options)(*map(tensor, args))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "f must be a function, got int"),
        ((tp.sin, {"x": 0}), "in_axes must be an axis, None, or a list or tuple"),
        ((tp.sin, 0, 0, -1), "axis_size must not be negative, got -1"),
    ],
)
def test_refused_at_once(arguments: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        tp.vmap(*arguments)


def test_escaped_tensors_are_refused() -> None:
    escaped = []
    tp.vmap(lambda x: escaped.append(x) or x)(tensor(A))
    assert repr(escaped[0]) == "<Tensor float32[3] of each of 4 examples in vmap>"
    uses = [escaped[0].numpy, lambda: tp.sin(escaped[0]), tp.compile(lambda: escaped[0])]
    for use in uses:
        with pytest.raises(ArgumentError, match=r"vmap: a tensor of a call .* after that call"):
            use()


def test_tensors_that_escape_while_a_function_is_traced() -> None:
    def f(x: Any) -> Any:
        last = tp.zeros(3)

        def keep(row: Any) -> Any:
            last[0] = row[0]
            return row

        tp.vmap(keep)(x)
        return last

    with pytest.raises(ArgumentError, match=r"vmap: a tensor of a call .* after that call"):
        tp.compile(f)(tensor(A))


def test_a_call_leaves_no_cycles() -> None:
    x = tensor(A)
    mapped = tp.vmap(lambda row: tp.sum(row * row[0]))
    mapped(x)
    gc.collect()
    gc.disable()
    try:
        mapped(x)
        assert gc.collect() == 0
    finally:
        gc.enable()


# Rules of plugins ------------------------------------------------------------------------------

TWICE = KernelSpec("TestTwice", ("x",), lambda x: x)


@contextmanager
def rules(rule: Any, decomposition: Any = None, *, on_host: bool = False) -> Iterator[None]:
    """Register a batching rule of ``TWICE``, or none, and a decomposition."""
    table = BatchingTable()
    if rule is not None:
        table.of(TWICE)(rule)
    with isolated_engine("cpu") as engine:
        entry = decomposition_entry(TWICE, decomposition or (lambda x: x * 2.0), on_host=on_host)
        engine.registry.add(OWNER, rules=table, decompositions=[entry])
        yield


def test_a_rule_gets_what_it_asks_for() -> None:
    seen: list[Any] = []

    def rule(x: Any, *, batched: Any, size: int, out: TensorType) -> Any:
        seen.append((x.shape, batched, size, str(out)))
        return x * 3.0

    with rules(rule):
        same(tp.vmap(lambda x: dispatch(TWICE, x))(tensor(A)), 3 * A)
        same(dispatch(TWICE, tensor(A)), 2 * A)
    assert seen == [((4, 3), {"x"}, 4, "float32[3]")]


def test_a_rule_that_declines_leaves_the_call_to_the_decomposition() -> None:
    with rules(lambda x: NotImplemented):  # noqa: ARG005  # of the spec
        same(tp.vmap(lambda x: dispatch(TWICE, x))(tensor(A)), 2 * A)


def test_without_a_rule_a_function_on_the_host_runs_once_per_example() -> None:
    shapes = []
    with rules(None, lambda x: shapes.append(x.shape) or x * 2.0, on_host=True):
        same(tp.vmap(lambda x: dispatch(TWICE, x), 1)(tensor(A)), 2 * A.T)
    assert shapes == [(4,)] * 3


@pytest.mark.parametrize(
    ("kernel", "how"),
    [
        ("Transpose", r"by a rule of tensorplug .*"),
        ("Add", "elementwise"),
        ("Relu", "elementwise"),
        ("Bincount", "by its decomposition"),
        ("BroadcastArgs", "once per example"),
    ],
)
def test_explanations(kernel: str, how: str) -> None:
    explained = tp.explain(kernel)
    assert re.fullmatch(how, explained.vmap)
    assert ("vmap: once per example" in str(explained)) == (how == "once per example")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda x: x[0], r"returned float32\[3\] for out of 4 examples.* must be float32\[4,3\]"),
        (lambda x: tp.astype(x, tp.int32), r"returned int32\[4,3\]"),
        (lambda x: x.shape, "returned tuple"),
    ],
)
def test_wrong_results_of_a_rule(rule: Any, message: str) -> None:
    with rules(rule), pytest.raises(KernelOutputError, match=message):
        tp.vmap(lambda x: dispatch(TWICE, x))(tensor(A))


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda table: table.of(TWICE)(lambda y: y), r"parameters \(y\)"),
        (lambda table: table.of(TWICE)(lambda x, *, axis: (x, axis)), "axis"),
        (lambda table: table.leading(TWICE, "axis"), "no 'axis'"),
        (lambda table: table.folded(TWICE, "y"), "no 'y'; possible are x"),
        (lambda table: table.elementwise(TWICE, TWICE), "in this table twice"),
    ],
)
def test_tables_refuse(register: Any, message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        register(BatchingTable())

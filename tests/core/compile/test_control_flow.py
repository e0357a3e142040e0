"""Loops and branches: the same results eager and compiled, as plain loops over NumPy arrays."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.core.compile.test_compile import agree, kernels

import tensorplug as tp
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.errors import ArgumentError, CompileError, DTypeError, GradientError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([[0.5, -1.25], [2.0, 0.25], [-0.75, 1.5]])
W = np.array([[0.5, -1.0], [0.25, 0.75]])
H = np.array([0.25, -0.5])


def tensor(values: Any) -> tp.Tensor:
    """Return a float64 tensor."""
    return tp.asarray(values, dtype=tp.float64)


def same(actual: tp.Tensor, expected: Any) -> None:
    """Compare dtype and shape, then values."""
    wanted = np.asarray(expected)
    found = actual.numpy()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def compiled(f: Any) -> Any:
    return tp.compile(f)


ways = pytest.mark.parametrize("way", [lambda f: f, compiled], ids=["eager", "compiled"])


# Scan -----------------------------------------------------------------------------------------


def _step(h: Any, x: Any) -> Any:
    h = tp.tanh(h @ tensor(W) + x)
    return h, {"sum": tp.sum(h), "both": (h, x * h)}


def _numpy_scan(h: Any, xs: Any, *, reverse: bool) -> Any:
    rows = []
    for x in xs[::-1] if reverse else xs:
        h = np.tanh(h @ W + x)
        rows.append((h.sum(), h, x * h))
    rows = rows[::-1] if reverse else rows
    return h, [np.stack(column) for column in zip(*rows, strict=True)]


@ways
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(way: Any, reverse: bool) -> None:
    f = way(lambda h, xs: tp.scan(_step, h, xs, reverse=reverse))
    last, ys = f(tensor(H), tensor(X))
    wanted, (sums, states, products) = _numpy_scan(H, X, reverse=reverse)
    same(last, wanted)
    same(ys["sum"], sums)
    same(ys["both"][0], states)
    same(ys["both"][1], products)


@ways
def test_scan_without_sequences(way: Any) -> None:
    f = way(lambda x: tp.scan(lambda c, none: ((c[0] * 2, c[1]), (c[0], none)), (x, 1), length=3))
    (last, one), (ys, none) = f(tensor(1.5))
    same(last, np.float64(12))
    assert (int(one), none) == (1, None)
    same(ys, np.array([1.5, 3.0, 6.0]))


def test_no_steps_leave_no_cycles() -> None:
    x = tensor(X)
    tp.scan(lambda h, row: (h, row * 2), tensor(H), x[:0])
    gc.collect()
    gc.disable()
    try:
        tp.scan(lambda h, row: (h, row * 2), tensor(H), x[:0])
        assert gc.collect() == 0
    finally:
        gc.enable()


@ways
def test_scan_of_nothing(way: Any) -> None:
    last, ys = way(lambda h, xs: tp.scan(_step, h, xs))(tensor(H), tensor(X[:0]))
    same(last, H)
    same(ys["sum"], np.zeros(0))
    same(ys["both"][1], np.zeros((0, 2)))


@ways
def test_integers_pass_through(way: Any) -> None:
    def step(count: Any, x: Any) -> Any:
        return count + 1, x[count]

    last, ys = way(lambda x: tp.scan(step, 0, x))(tp.asarray([[1, 2], [3, 4]], dtype=tp.int8))
    same(last, np.array(2, last.dtype.numpy))
    same(ys, np.array([1, 4], np.int8))


@ways
def test_map(way: Any) -> None:
    found = way(lambda x: tp.map(lambda row: {"max": tp.max(row), "row": row[::-1]}, x))(tensor(X))
    same(found["max"], X.max(axis=1))
    same(found["row"], X[:, ::-1])


def _nested(h: Any, xs: Any) -> Any:
    def outer(c: Any, x: Any) -> Any:
        inner, ys = tp.scan(lambda c, y: (c * y, tp.sin(c) + x), c, tp.stack([x, x + 1, c]))
        return tp.cond(tp.sum(inner) > 0, tp.cos, lambda v: v * h, inner), tp.sum(ys)

    return tp.scan(outer, h, xs)


@ways
def test_loops_inside_loops(way: Any) -> None:
    last, ys = way(_nested)(tensor(H), tensor(X))
    h, sums = H, []
    for x in X:
        inner, total = h, 0.0
        for y in (x, x + 1, h):
            total = total + (np.sin(inner) + x).sum()
            inner = inner * y
        h = np.cos(inner) if inner.sum() > 0 else inner * H
        sums.append(total)
    same(last, h)
    same(ys, np.array(sums))


# While and for --------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize(("most", "wanted"), [(None, 243.0), (2, 9.0), (0, 1.0), (9, 243.0)])
def test_while_loop(way: Any, most: int | None, wanted: float) -> None:
    def triple(x: Any, limit: Any) -> Any:
        return tp.while_loop(
            lambda v: v["x"] < limit,
            lambda v: {"x": v["x"] * 3, "steps": v["steps"] + 1},
            {"x": x, "steps": 0},
            max_steps=most,
        )

    found = way(triple)(tensor(1.0), tensor(100.0))
    same(found["x"], np.float64(wanted))
    assert int(found["steps"]) == round(np.log(wanted) / np.log(3))


@ways
@pytest.mark.parametrize("bounds", [(0, 4), (2, 5), (3, 3), (4, 1)])
@pytest.mark.parametrize("given", [int, tp.asarray], ids=["numbers", "tensors"])
def test_fori_loop(way: Any, bounds: tuple[int, int], given: Any) -> None:
    def loop(lower: Any, upper: Any, x: Any) -> Any:
        return tp.fori_loop(lower, upper, lambda i, v: v * x + i, x)

    expected = np.float64(0.5)
    for i in range(*bounds):
        expected = expected * 0.5 + i
    same(way(loop)(*map(given, bounds), tensor(0.5)), np.float64(expected))


@ways
def test_index_of_fori_loop_is_a_tensor(way: Any) -> None:
    def body(i: Any, total: Any) -> Any:
        assert (i.dtype, i.shape) == (tp.int32, ())
        return total + tensor(X)[i]

    same(way(lambda x: tp.fori_loop(0, 3, body, x))(tensor(H)), H + X.sum(axis=0))


# Branches -------------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("value", [2.0, -2.0])
@pytest.mark.parametrize("dtype", [tp.bool, tp.int32, tp.float64])
def test_cond(way: Any, value: float, dtype: Any) -> None:
    f = way(
        lambda p, x, w: tp.cond(
            p, lambda t: [t["x"] * w], lambda t: [tp.exp(t["x"])], {"x": x, "unused": w}
        )
    )
    predicate = tp.astype(tp.asarray(value > 0), dtype)
    (found,) = f(predicate, tensor(value), tensor(3.0))
    same(found, np.float64(value * 3 if value > 0 else np.exp(value)))


@ways
@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_switch(way: Any, index: int) -> None:
    f = way(lambda i, x: tp.switch(i, [tp.sin, tp.cos, lambda x: x * 2], x))
    expected = [np.sin, np.cos, lambda x: x * 2][min(max(index, 0), 2)]
    same(f(tp.asarray(index), tensor(X)), expected(X))


def test_a_known_predicate_chooses_while_tracing() -> None:
    f = tp.compile(lambda x, flag: tp.cond(flag, tp.sin, lambda _: 1 / 0, x))
    same(f(tensor(X), True), np.sin(X))
    assert kernels(f.program(tensor(X), True)) == ["Sin"]


def test_only_the_chosen_branch_runs() -> None:
    f = tp.compile(lambda x: tp.cond(tp.sum(x) > 0, tp.sin, tp.cos, x))
    f(tensor(X))
    with tp.profile() as profile:
        f(tensor(X))
        f(tensor(-X))
    branches = [record.name for record in profile.kernels if record.depth == 1]
    assert branches == ["Sin", "Cos"]


# Programs -------------------------------------------------------------------------------------


def nested(program: Any, name: str) -> Any:
    """Return the only call of ``name`` in a program."""
    (found,) = [call for call in program.calls if call.plan.spec.name == name]
    assert isinstance(found.plan, NestedPlan)
    return found


def test_one_call_for_all_steps() -> None:
    f = tp.compile(lambda h, xs: tp.scan(_step, h, xs))
    sizes = {len(f.program(tensor(H), tensor(np.tile(X, (n, 1)))).calls) for n in (1, 7, 50)}
    assert sizes == {1}


def test_what_nothing_needs_is_dropped() -> None:
    def step(carry: Any, x: Any) -> Any:
        a, b = carry
        return (a + x[0], tp.sin(b) * x[1]), (a, tp.exp(b))

    def first(x: Any, y: Any) -> Any:
        (a, _), (history, _) = tp.scan(step, (tensor(0.0), tensor(1.0)), (x, y))
        return a, history

    f = tp.compile(first)
    x = tensor(H)
    (a, history), call = f(x, x), nested(f.program(x, x), "Scan")
    same(a, H.sum())
    same(history, np.array([0.0, H[0]]))
    assert kernels(call.plan.parts["body"]) == ["Add"]
    assert len(call.operands()) == 2  # the first carry, and x


def test_a_carry_that_another_one_needs_stays() -> None:
    def step(carry: Any, _: Any) -> Any:
        a, b, c = carry
        return (b, c, a + b), None

    f = tp.compile(lambda x: tp.scan(step, (x, x * 3, x * 5), length=4)[0][0])
    a, b, c = 1.0, 3.0, 5.0
    for _ in range(4):
        a, b, c = b, c, a + b
    same(f(tensor(1.0)), np.float64(a))


def test_work_that_does_not_change_is_done_once() -> None:
    f = tp.compile(lambda w, xs: tp.scan(lambda c, x: (c + x * tp.exp(w), None), w * 0, xs)[0])
    program = f.program(tensor(1.0), tensor(H))
    assert "Exp" in kernels(program)
    assert "Exp" not in kernels(nested(program, "Scan").plan.parts["body"])
    same(f(tensor(1.0), tensor(H)), np.float64(H.sum() * np.e))


def test_common_calls_of_a_step_are_merged() -> None:
    f = tp.compile(lambda x: tp.scan(lambda c, x: (tp.sin(c) + tp.sin(c) * x, None), x[0], x)[0])
    body = nested(f.program(tensor(H)), "Scan").plan.parts["body"]
    assert kernels(body).count("Sin") == 1


def test_groups_inside() -> None:
    x = tp.asarray(np.linspace(0, 1, 1 << 15, dtype=np.float32))
    f = tp.compile(lambda x: tp.fori_loop(0, 3, lambda i, v: tp.sin(v) * v + i, x))
    body = nested(f.program(x), "Scan").plan.parts["body"]
    assert body.fusion is not None
    (group,) = body.fusion.groups
    assert [kernels(body)[at] for at in group.members] == ["Sin", "Multiply", "Add"]


def test_text_shows_the_programs_inside() -> None:
    def f(x: Any) -> Any:
        x = tp.while_loop(lambda x: tp.sum(x) < 9, lambda x: x * 2, x)
        return tp.cond(x[0] > 0, tp.sin, tp.cos, tp.scan(_step, x, x[None])[0])

    text = repr(tp.compile(f).program(tensor([1.0, 2.0])))
    for part in ("condition: <Program", "body: <Program", "branch 0: <Program", "= Tanh("):
        assert f"    {part}" in text or part in text
    assert "Scan(" in text
    assert "While(" in text
    assert "Switch(" in text


def test_memory_counts_a_step() -> None:
    x = tp.asarray(np.ones(1000, np.float32))
    f = tp.compile(lambda x: tp.fori_loop(0, 3, lambda _, v: tp.sort(tp.sort(v)), x))
    memory = f.program(x).memory()
    # The argument, the result, and two more in a step: what Sort reads and writes.
    assert (memory.arguments, memory.results, memory.peak) == (4000, 4000, 16000)


def test_profile_shows_the_kernels_of_each_step() -> None:
    f = tp.compile(lambda h, xs: tp.scan(_step, h, xs)[0])
    f(tensor(H), tensor(X))
    with tp.profile() as profile:
        f(tensor(H), tensor(X))
    names = [record.name for record in profile.kernels]
    assert (names.count("Scan"), names.count("Tanh")) == (1, 3)
    depths = {record.name: record.depth for record in profile.kernels}
    assert (depths["Scan"], depths["Tanh"]) == (0, 1)


def test_floats_of_the_call_reach_the_steps() -> None:
    f = tp.compile(lambda x, rate: tp.fori_loop(0, 2, lambda _, v: v - rate * v, x))
    for rate in (0.5, 0.25):
        same(f(tensor(8.0), rate), np.float64(8 * (1 - rate) ** 2))
    assert len(set(map(id, f._known.values()))) == 1


def test_variables_are_read_in_each_run() -> None:
    v = tp.Variable(tensor(2.0))
    f = tp.compile(lambda x: tp.fori_loop(0, 3, lambda _, x: x * v, x))
    same(f(tensor(1.0)), np.float64(8.0))
    v.assign(tensor(3.0))
    same(f(tensor(1.0)), np.float64(27.0))


# Refusals -------------------------------------------------------------------------------------


def _grows(carry: Any, _: Any) -> Any:
    return {"h": tp.concat([carry["h"], carry["h"]])}, None


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no function": (lambda x: tp.scan(3, x, x), ArgumentError, "scan: f must be a function"),
    "no pair": (
        lambda x: tp.scan(lambda c, _: c, x, x),
        ArgumentError,
        "scan: f must return a pair, of a carry and a result, got Tensor",
    ),
    "another shape": (
        lambda x: tp.scan(_grows, {"h": x}, length=2),
        ArgumentError,
        r"scan: the carry\['h'\] is float64\[4\], but scan: init\['h'\] is float64\[2\]",
    ),
    "another dtype": (
        lambda x: tp.while_loop(lambda _: True, lambda c: c > 1, x),
        ArgumentError,
        r"while_loop: the result of body is bool\[2\], but while_loop: init is float64\[2\]",
    ),
    "another structure": (
        lambda x: tp.fori_loop(0, 1, lambda _, c: (c,), x),
        ArgumentError,
        "fori_loop: the result of body is tuple of .*, but fori_loop: init is Tensor",
    ),
    "no length": (
        lambda x: tp.scan(lambda c, _: (c, None), x),
        ArgumentError,
        "length must say the number of steps",
    ),
    "a negative length": (
        lambda x: tp.scan(lambda c, _: (c, None), x, length=-1),
        ArgumentError,
        "length must not be negative",
    ),
    "several lengths": (
        lambda x: tp.scan(lambda c, _: (c, None), x, {"a": x, "b": x[:1]}),
        ShapeError,
        r"xs\['b'\] is float64\[1\], of 1 slices, but xs\['a'\] says 2",
    ),
    "no axis": (lambda x: tp.map(tp.sin, x[0]), ShapeError, "map: xs is float64.., which has no"),
    "a condition of several": (
        lambda x: tp.while_loop(lambda x: x > 0, tp.sin, x),
        ArgumentError,
        r"cond must return a boolean scalar, got bool\[2\]",
    ),
    "a predicate of several": (
        lambda x: tp.cond(x > 0, tp.sin, tp.cos, x),
        ShapeError,
        r"cond: predicate must be a scalar, got bool\[2\]",
    ),
    "a float as an index": (
        lambda x: tp.switch(x[0], [tp.sin], x),
        DTypeError,
        "switch: index must be an integer",
    ),
    "no branches": (lambda x: tp.switch(0, [], x), ArgumentError, "switch: branches must have"),
    "a bound that is a float": (
        lambda x: tp.fori_loop(0, x[0], lambda _, c: c, x),
        DTypeError,
        "fori_loop: upper must be an integer",
    ),
}


@ways
@pytest.mark.parametrize("name", REFUSED)
def test_refused(way: Any, name: str) -> None:
    f, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        way(f)(tensor(H))


def test_results_of_steps_that_differ() -> None:
    sizes = iter([1, 2])
    with pytest.raises(ArgumentError, match=r"f is float32\[2\], but float32\[1\] before"):
        tp.scan(lambda c, _: (c, tp.ones(next(sizes))), 0, length=2)


def _assign(v: tp.Variable, x: Any) -> Any:
    v.assign(v + x)
    return x


def _count(x: Any) -> Any:
    OPTIMIZER.learning_rate = 0.5
    return x


OPTIMIZER = tp.train.SGD(0.25)
IN_PROGRAMS: dict[str, tuple[Any, type[Exception], str]] = {
    "branches that differ": (
        lambda x: tp.cond(x[0] > 0, lambda x: {"y": x}, lambda x: {"y": x[0]}, x),
        ArgumentError,
        r"cond: the result\['y'\] is float64\[2\] in true_fn, but float64\[\] in false_fn",
    ),
    "a variable": (
        lambda x: tp.fori_loop(0, 2, lambda _, c: _assign(VARIABLE, c), x),
        CompileError,
        "fori_loop assigns to variable 'counted'; return new values from it",
    ),
    "a generator": (
        lambda x: tp.map(lambda x: x + tp.random.normal((), GENERATOR.key()), x),
        CompileError,
        "map draws from a generator; pass keys instead",
    ),
    "an object": (
        lambda x: tp.map(_count, x),
        CompileError,
        "map changes an object, such as an optimizer; return new values from it",
    ),
    "an object, in vmap": (
        lambda x: tp.vmap(lambda y: tp.map(lambda z: _count(z * y), x))(x),
        CompileError,
        "map changes an object, such as an optimizer; return new values from it",
    ),
    "reading data": (
        lambda x: tp.map(lambda x: x if x > 0 else -x, x),
        CompileError,
        "reads the data of a tensor",
    ),
}

VARIABLE: Any = None
GENERATOR = tp.random.Generator(0)


@pytest.mark.parametrize("name", IN_PROGRAMS)
def test_refused_in_programs(name: str, monkeypatch: Any) -> None:
    monkeypatch.setitem(globals(), "VARIABLE", tp.Variable(tensor(H), name="counted"))
    f, error, message = IN_PROGRAMS[name]
    with pytest.raises(error, match=message):
        tp.compile(f)(tensor(H))
    VARIABLE.dispose()


def _set(x: Any, value: Any) -> Any:
    x[0] = value
    return x * 1.0


ASSIGNMENTS = {  # what runs with a tensor from outside: in a program that would change it once
    "while": lambda b: tp.while_loop(lambda v: v[0] > 9.0, lambda v: _set(b, 7.0) + v, b * 2),
    "scan": lambda b: tp.scan(lambda v, _: (v + _set(b, b[0] + 1.0), ()), b * 2, tensor(X)),
    "scan, by a slice": lambda b: tp.scan(lambda _, x: (_set(b, x[0]), ()), b * 2, tensor(X)),
    "cond": lambda b: tp.cond(b[0] > 9.0, lambda: _set(b, 1.0) + b, lambda: b * 1.0),
    "map of vmap": lambda b: tp.map(tp.vmap(lambda y: y * _set(b, 2.0)), tensor(X)),
    "vmap of scan": lambda b: tp.vmap(
        lambda x: tp.scan(lambda v, y: (v + _set(x, 5.0), y), x * 2, tensor(X))[0]
    )(tp.stack([b, b])),
    "nested": lambda b: tp.map(lambda _: tp.map(lambda y: y * _set(b, 2.0), tensor(X)), tensor(X)),
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_loops_do_not_change_tensors_from_outside(name: str) -> None:
    f = tp.compile(lambda x: ASSIGNMENTS[name](x * 2.0))
    with pytest.raises(CompileError, match=r"assigns to a tensor \(float64\[2\]\) from outside"):
        f(tensor(H))


@ways
def test_loops_change_their_own_tensors(way: Any) -> None:
    def f(b: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            mine, row = b * 2.0, tp.zeros(2, dtype=tp.float64)
            mine[0] = 5.0
            constant = mine * 1.0
            mine[0] = mine[0] + h[0]
            row[1] = x[1]
            return h + row, (constant, mine, row)

        return tp.scan(step, b, tensor(X))

    last, (constant, mine, row) = way(f)(tensor(H))
    totals = H[1] + np.cumsum(X[:, 1])
    same(last, [H[0], totals[-1]])
    same(constant, np.array([[5.0, 2 * H[1]]] * 3))
    same(mine, np.array([[5.0 + H[0], 2 * H[1]]] * 3))
    same(row, X * [0.0, 1.0])


def test_a_loop_of_unknown_length_has_no_gradient() -> None:
    f = tp.compile(tp.grad(lambda x: tp.while_loop(lambda x: x < 9, lambda x: x * x, x)))
    with pytest.raises(GradientError, match="pass max_steps"):
        f(tensor(2.0))


def test_results_keep_their_structure() -> None:
    f = lambda x: tp.scan(lambda c, x: ([c[0] + x], {"a": (x,)}), [0.0], x)  # noqa: E731
    x = tp.asarray(np.float32([1, 2]))
    agree(tp.compile(f)(x), f(x))

"""Loops and branches in programs: what a step holds, what it shows, what it may not do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.compile.test_compile import kernels
from tests.core.compile.test_control_flow import H, X, _step, nested, same, tensor, ways

import tensorplug as tp
from tensorplug.errors import ArgumentError, CompileError, DTypeError, GradientError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


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


def _grows(carry: Any, _: Any) -> Any:
    return {"h": tp.concat([carry["h"], carry["h"]])}, None


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda x: tp.scan(3, x, x), ArgumentError, "scan: f must be a function"),
    (
        lambda x: tp.scan(lambda c, _: c, x, x),
        ArgumentError,
        "scan: f must return a pair, of a carry and a result, got Tensor",
    ),
    (
        lambda x: tp.scan(_grows, {"h": x}, length=2),
        ArgumentError,
        r"scan: the carry\['h'\] is float64\[4\], but scan: init\['h'\] is float64\[2\]",
    ),
    (
        lambda x: tp.while_loop(lambda _: True, lambda c: c > 1, x),
        ArgumentError,
        r"while_loop: the result of body is bool\[2\], but while_loop: init is float64\[2\]",
    ),
    (
        lambda x: tp.fori_loop(0, 1, lambda _, c: (c,), x),
        ArgumentError,
        "fori_loop: the result of body is tuple of .*, but fori_loop: init is Tensor",
    ),
    (
        lambda x: tp.scan(lambda c, _: (c, None), x),
        ArgumentError,
        "length must say the number of steps",
    ),
    (
        lambda x: tp.scan(lambda c, _: (c, None), x, length=-1),
        ArgumentError,
        "length must not be negative",
    ),
    (
        lambda x: tp.scan(lambda c, _: (c, None), x, {"a": x, "b": x[:1]}),
        ShapeError,
        r"xs\['b'\] is float64\[1\], of 1 slices, but xs\['a'\] says 2",
    ),
    (lambda x: tp.map(tp.sin, x[0]), ShapeError, "map: xs is float64.., which has no"),
    (
        lambda x: tp.while_loop(lambda x: x > 0, tp.sin, x),
        ArgumentError,
        r"cond must return a boolean scalar, got bool\[2\]",
    ),
    (
        lambda x: tp.cond(x > 0, tp.sin, tp.cos, x),
        ShapeError,
        r"cond: predicate must be a scalar, got bool\[2\]",
    ),
    (
        lambda x: tp.switch(x[0], [tp.sin], x),
        DTypeError,
        "switch: index must be an integer",
    ),
    (lambda x: tp.switch(0, [], x), ArgumentError, "switch: branches must have"),
    (
        lambda x: tp.fori_loop(0, x[0], lambda _, c: c, x),
        DTypeError,
        "fori_loop: upper must be an integer",
    ),
]


@ways
@pytest.mark.parametrize(("f", "error", "message"), REFUSED)
def test_loops_and_branches_that_are_refused(way: Any, f: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        way(f)(tensor(H))


def test_results_of_steps_that_differ() -> None:
    sizes = iter([1, 2])
    with pytest.raises(ArgumentError, match=r"f is float32\[2\], but float32\[1\] before"):
        tp.scan(lambda c, _: (c, tp.ones(next(sizes))), 0, length=2)


def _assign(v: tp.Variable, x: Any) -> Any:
    v.assign(v + x)
    return x


IN_PROGRAMS: list[tuple[Any, type[Exception], str]] = [
    (
        lambda x: tp.cond(x[0] > 0, lambda x: {"y": x}, lambda x: {"y": x[0]}, x),
        ArgumentError,
        r"cond: the result\['y'\] is float64\[2\] in true_fn, but float64\[\] in false_fn",
    ),
    (
        lambda x: tp.fori_loop(0, 2, lambda _, c: _assign(VARIABLE, c), x),
        CompileError,
        "fori_loop assigns to variable 'counted'; return new values from it",
    ),
    (
        lambda x: tp.map(lambda x: x + tp.random.normal((), GENERATOR.key()), x),
        CompileError,
        "map draws from a generator; pass keys instead",
    ),
    (
        lambda x: tp.map(lambda x: x if x > 0 else -x, x),
        CompileError,
        "reads the data of a tensor",
    ),
]


VARIABLE: Any = None


GENERATOR = tp.random.Generator(0)


@pytest.mark.parametrize(("f", "error", "message"), IN_PROGRAMS)
def test_loops_and_branches_that_programs_refuse(
    f: Any, error: Any, message: str, monkeypatch: Any
) -> None:
    monkeypatch.setitem(globals(), "VARIABLE", tp.Variable(tensor(H), name="counted"))
    with pytest.raises(error, match=message):
        tp.compile(f)(tensor(H))
    VARIABLE.dispose()


def _set(x: Any, value: Any) -> Any:
    x[0] = value
    return x * 1.0


ASSIGNMENTS = [  # what runs with a tensor from outside: in a program that would change it once
    lambda b: tp.while_loop(lambda v: v[0] > 9.0, lambda v: _set(b, 7.0) + v, b * 2),
    lambda b: tp.scan(lambda v, _: (v + _set(b, b[0] + 1.0), ()), b * 2, tensor(X)),
    lambda b: tp.scan(lambda _, x: (_set(b, x[0]), ()), b * 2, tensor(X)),
    lambda b: tp.cond(b[0] > 9.0, lambda: _set(b, 1.0) + b, lambda: b * 1.0),
    lambda b: tp.map(tp.vmap(lambda y: y * _set(b, 2.0)), tensor(X)),
    lambda b: tp.vmap(lambda x: tp.scan(lambda v, y: (v + _set(x, 5.0), y), x * 2, tensor(X))[0])(
        tp.stack([b, b])
    ),
    lambda b: tp.map(lambda _: tp.map(lambda y: y * _set(b, 2.0), tensor(X)), tensor(X)),
]


@pytest.mark.parametrize("assigning", ASSIGNMENTS)
def test_loops_do_not_change_tensors_from_outside(assigning: Any) -> None:
    f = tp.compile(lambda x: assigning(x * 2.0))
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

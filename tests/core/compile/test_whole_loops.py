"""Loops that a backend runs as a whole: their bodies as the core forms them, by an interpreter."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract.owner import Owner
from tensorplug.dispatch.context import Context, use_context
from tensorplug.plugin import Group, tree
from tensorplug_conformance.loop_interpreter import loop_interpreter
from tensorplug_conformance.selftest.delegates import Delegate
from tensorplug_conformance.selftest.programs.engines import delegating

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.algorithms.loop_bodies import LoopBody

RNG = np.random.default_rng(3)
ROW = RNG.standard_normal(4).astype(np.float32)
ROWS = RNG.standard_normal((5, 4)).astype(np.float32)
SQUARE = (RNG.standard_normal((4, 4)) / 4).astype(np.float32)


class _Backend(Delegate):
    """Runs the loops that ``takes`` accepts by an interpreter, and notes those it is asked for."""

    def __init__(self, clean: Any, loops: Loops) -> None:
        super().__init__(clean)
        self.loops = loops

    def compile_loop(self, body: LoopBody) -> Any:
        self.loops.asked.append(body)
        run = loop_interpreter(body)

        def counted(*buffers: Any) -> Any:
            self.loops.runs += 1
            return run(*buffers)

        return counted if self.loops.takes else None


class Loops:
    """An engine whose backend runs loops; ``asked``: their bodies; ``runs``: how often it did."""

    def __init__(self) -> None:
        self.asked: list[LoopBody] = []
        self.runs = 0
        self.takes = True
        self.engine = delegating(partial(_Backend, loops=self))

    def context(self) -> Any:
        return use_context(Context(self.engine, self.engine.open("cpu"), None))

    def compare(self, f: Callable[..., Any], *arrays: Any) -> None:
        """Compare a compiled function with the function itself."""
        with self.context():
            tensors = [tp.asarray(array) for array in arrays]
            expected = [x.numpy() for x in tree.leaves(f(*tensors))]
            compiled = tp.compile(f)
            for _ in range(2):
                results = [x.numpy() for x in tree.leaves(compiled(*tensors))]
                for ours, theirs in zip(results, expected, strict=True):
                    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
                    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.fixture
def loops() -> Loops:
    return Loops()


def swaps(a: Any, b: Any, xs: Any) -> Any:
    """Exchange two carries, one of which a slice is added to."""
    return tp.scan(lambda c, x: ((c[1], c[0] + x), c[0]), (a, b), xs)


def multiplies(h: Any, w: Any, xs: Any) -> Any:
    """Multiply by a matrix in each step, and join and split the result."""

    def step(h: Any, x: Any) -> Any:
        product = tp.matmul(tp.reshape(h, (1, 4)), w)
        both = tp.concat([tp.reshape(product, (4,)), x])
        left, right = tp.split(both, 2)
        return tp.tanh(left + right), (left, tp.reshape(both, (2, 4)))

    return tp.scan(step, h, xs, reverse=True)


def counts(x: Any) -> Any:
    """Halve until the sum is small, but for a carry that stays as it is."""
    return tp.while_loop(
        lambda c: tp.sum(tp.abs(c[0])) > 0.5, lambda c: (c[0] * 0.5, c[1] + 1, c[2]), (x, 0, x)
    )


def differentiates(h: Any, w: Any, xs: Any) -> Any:
    return tp.grad(lambda h, w: tp.sum(multiplies(h, w, xs)[0]), (0, 1))(h, w)


# The function, its arguments, the number of loops, and for the first one: the numbers of carries,
# sequences and other operands; names of what a step calls, a group as "group".
FORMS: list[Any] = [
    (swaps, (ROW, -ROW, ROWS), 1, (2, 1, 0), ["group"]),
    (
        multiplies,
        (ROW, SQUARE, ROWS),
        1,
        (1, 1, 1),
        ["Reshape", "BatchMatMul", "Reshape", "Concat", "SplitV", "group", "Reshape"],
    ),
    (counts, (ROW,), 1, (3, 0, 0), ["group"] * 3),
    (differentiates, (ROW, SQUARE, ROWS), 2, None, None),
    (lambda xs: tp.map(lambda x: x - tp.max(x), xs), (ROWS,), 1, (0, 1, 0), ["group"]),
    (
        lambda x: tp.fori_loop(2, 6, lambda i, y: y * 0.5 + i, x),
        (ROW,),
        1,
        (1, 1, 0),
        ["group", "group"],
    ),
]


@pytest.mark.parametrize(("f", "arrays", "count", "operands", "calls"), FORMS)
def test_bodies_mean_what_the_functions_do(loops, f, arrays, count, operands, calls):
    loops.compare(f, *arrays)
    assert (len(loops.asked), loops.runs) == (count, 2 * count)
    body = loops.asked[0]
    if operands is not None:
        assert (body.carries, body.sequences, body.fixed) == operands
        names = ["group" if isinstance(call.of, Group) else call.of.name for call in body.calls]
        assert names == calls


def test_each_slot_is_written_once_and_has_the_type_of_its_value(loops):
    loops.compare(multiplies, ROW, SQUARE, ROWS)
    (body,) = loops.asked
    first = body.carries + body.sequences + body.fixed
    written = [slot for call in body.calls for slot in call.outputs]
    assert sorted(written) == list(range(first, len(body.types)))
    assert [type_.shape for type_ in body.types[:first]] == [(4,), (4,), (4, 4)]


def test_constants_are_data(loops):
    with loops.context():
        constant = tp.asarray(SQUARE)
    loops.compare(lambda h, xs: multiplies(h, constant, xs), ROW, ROWS)
    (body,) = loops.asked
    assert (body.fixed, len(body.constants)) == (0, 1)
    np.testing.assert_array_equal(body.constants[0], SQUARE)


def test_declined_loops_run_step_by_step(loops):
    loops.takes = False
    loops.compare(multiplies, ROW, SQUARE, ROWS)
    assert (len(loops.asked), loops.runs) == (1, 0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, xs: tp.scan(lambda h, x: (tp.cumulative_sum(h) + x, h), x, xs),
        lambda x, xs: tp.scan(lambda h, x: (tp.cond(h[0] > 0, tp.sin, tp.cos, h) + x, h), x, xs),
        lambda x, xs: tp.scan(lambda h, x: (h + x, h), x, xs[:0]),
    ],
    ids=["a kernel", "a branch", "no steps"],
)
def test_what_is_asked_besides_groups_and_the_backends_kernels(loops, f):
    """A kernel of the backend is data too; a branch, and a loop of no steps, are not asked."""
    loops.compare(f, ROW, ROWS)
    names = [[getattr(call.of, "name", "") for call in body.calls] for body in loops.asked]
    assert names == ([] if loops.runs == 0 else [["Cumsum", "Add"]])


def test_a_kernel_of_another_distribution_is_not_part_of_a_loop(loops):
    with loops.context():
        entry = loops.engine.registry.state.kernel("BatchMatMul", "cpu").entry
        loops.engine.registry.add(Owner("another"), kernels=[("cpu", entry)], override=True)
    loops.compare(multiplies, ROW, SQUARE, ROWS)
    assert not loops.asked


def test_observers_see_the_kernels_of_each_step(loops):
    with loops.context():
        f = tp.compile(swaps)
        tensors = [tp.asarray(x) for x in (ROW, -ROW, ROWS)]
        f(*tensors)
        runs = loops.runs
        with tp.profile() as profile:
            f(*tensors)
        assert loops.runs == runs
        assert sum(kernel.name == "Add" for kernel in profile.kernels) == len(ROWS)


def test_a_program_says_who_runs_its_loops(loops):
    with loops.context():
        tensors = [tp.asarray(x) for x in (ROW, -ROW, ROWS)]
        shown = repr(tp.compile(swaps).program(*tensors))
        assert "(all steps by cpu)" in shown
        assert "body: <Program on cpu: 1 calls, 1 group>" in shown
        loops.takes = False
        assert "(programs)" in repr(tp.compile(swaps).program(*tensors))

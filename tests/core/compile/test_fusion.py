"""Fusion: which calls form a group, and what the group computes, without a backend's compiler."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import expressions, inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import KernelTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.dispatch.context import Context, use_context
from tensorplug.engine.plans import Plan
from tensorplug.errors import KernelRefusedError
from tensorplug.ops.elementwise import rounding
from tensorplug_conformance.interpreter import interpreter
from tensorplug_conformance.selftest.delegates import Delegate
from tensorplug_conformance.selftest.programs.engines import delegating

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.groups import Group

ROWS, COLUMNS = 6, 5
RNG = np.random.default_rng(7)


class Compiler(Delegate):
    """Computes the groups that ``takes`` accepts by an interpreter, and remembers those asked.

    A text is the reason why one is declined.
    """

    least_group = 12
    functions = frozenset(expressions.FUNCTIONS)

    def __init__(
        self, clean: Any, takes: Callable[[Group], bool | str], asked: list[Group]
    ) -> None:
        super().__init__(clean)
        self.takes = takes
        self.asked = asked

    def compile_group(self, group: Group) -> Any:
        self.asked.append(group)
        taken = self.takes(group)
        if isinstance(taken, str):
            raise KernelRefusedError(taken)
        return interpreter(group) if taken else None


class Compiled:
    """An engine whose backend takes some groups; ``asked``: those for which it was asked."""

    def __init__(self) -> None:
        self.asked: list[Group] = []
        self.takes: Callable[[Group], bool | str] = lambda _: True
        self.engine = delegating(partial(Compiler, takes=self._decide, asked=self.asked))

    def _decide(self, group: Group) -> bool | str:
        return self.takes(group)

    def run(self, f: Callable[..., Any], *arrays: Any) -> tuple[list[Any], list[Any], list[Group]]:
        """Return the results of a compiled function and of the function, and the groups taken."""
        with use_context(Context(self.engine, self.engine.open("cpu"), None)):
            tensors = [tp.asarray(array) for array in arrays]
            self.takes, kept = lambda _: False, self.takes
            plain = [tp.asarray(x).numpy() for x in _listed(f(*tensors))]
            self.takes = kept
            self.asked.clear()
            fused = tp.compile(f)
            fused(*tensors)  # the first run is kernel by kernel as well
            ours = [tp.asarray(x).numpy() for x in _listed(fused(*tensors))]
        return ours, plain, [group for group in self.asked if self.takes(group)]


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.fixture
def compiled() -> Compiled:
    return Compiled()


X = RNG.standard_normal((ROWS, COLUMNS)).astype(np.float32)
Y = RNG.standard_normal((ROWS, COLUMNS)).astype(np.float32)
ROW = RNG.standard_normal(COLUMNS).astype(np.float32)
COLUMN = RNG.standard_normal((ROWS, 1)).astype(np.float32)
CUBE = RNG.standard_normal((2, ROWS, COLUMNS)).astype(np.float32)
COUNTS = RNG.integers(-9, 9, (ROWS, COLUMNS)).astype(np.int32)


def normalize(x: Any) -> Any:
    """Return x less its mean, by its deviation, row by row."""
    centred = x - tp.mean(x, axis=1, keepdims=True)
    return centred / tp.sqrt(tp.mean(tp.square(centred), axis=1, keepdims=True))


# The function, its arguments, and for each group: the names of its calls, its shape, the number of
# inputs, the spans of the reductions, and the spans of the outputs.
FORMS: list[Any] = [
    (
        lambda x, y: tp.exp(x + y) * x,
        (X, Y),
        [("Add+Exp+Multiply", (30,), 2, [], [(True,)])],
    ),
    (
        lambda x, row: tp.tanh(x * row) - row,
        (X, ROW),
        [("Multiply+Tanh+Sub", (6, 5), 2, [], [(True, True)])],
    ),
    (
        lambda x, column: tp.where(x < column, 0.0, x),
        (X, COLUMN),
        [("Less+Select", (6, 5), 2, [], [(True, True)])],
    ),
    (  # neighbouring axes that all operands have become one
        lambda x, row: tp.abs(x) + row,
        (CUBE, ROW),
        [("Abs+Add", (12, 5), 2, [], [(True, True)])],
    ),
    (  # mixed dtypes, and a bool between
        lambda n, x: tp.astype(n, tp.float32) * x + tp.where(n > 2, x, -x),
        (COUNTS, X),
        [("Cast+Multiply+Greater+Neg+Select+Add", (30,), 2, [], [(True,)])],
    ),
    (  # two results that are used outside
        lambda x: (tp.exp(x) + 1, tp.exp(x) * 2),
        (X,),
        [("Exp+Add+Multiply", (30,), 1, [], [(True,), (True,)])],
    ),
    (  # a reshape that puts in and leaves out axes of length 1
        lambda x: tp.reshape(tp.exp(tp.reshape(x * 2, (ROWS, 1, COLUMNS))), (ROWS, COLUMNS)) + x,
        (X,),
        [("Multiply+Reshape+Exp+Reshape+Add", (30,), 1, [], [(True,)])],
    ),
    (
        tp.nn.softmax,
        (X,),
        [("Softmax", (6, 5), 1, [(False, True)] * 2, [(True, True)])],
    ),
    (
        lambda x, row: tp.nn.layer_norm(x * 2, row, row),
        (X, ROW),
        [("Multiply+LayerNorm", (6, 5), 2, [(False, True)] * 2, [(True, True)])],
    ),
    (  # reductions written by hand, the second of an expression with the first
        lambda x: (
            (x - tp.mean(x, axis=1, keepdims=True))
            / tp.sqrt(
                tp.mean(tp.square(x - tp.mean(x, axis=1, keepdims=True)), axis=1, keepdims=True)
            )
        ),
        (X,),
        [("Mean+Sub+Square+Mean+Sqrt+RealDiv", (6, 5), 2, [(False, True)] * 2, [(True, True)])],
    ),
    (  # a whole reduction at the end of a chain, and arithmetic with its result
        lambda x, y: tp.sum(tp.square(x - y)) / 2 + 1,
        (X, Y),
        [("Sub+Square+Sum+RealDiv+Add", (30,), 2, [(True,)], [(False,)])],
    ),
    (  # the gradient of a bias: a reduction along leading axes
        lambda x, y: (x * y, tp.sum(x * y, axis=0)),
        (X, Y),
        [("Multiply+Sum", (6, 5), 2, [(True, False)], [(True, True), (False, True)])],
    ),
    (
        lambda x: tp.any(x > 1, axis=1),
        (X,),
        [("Greater+Cast+Any", (6, 5), 1, [(False, True)], [(True, False)])],
    ),
    (  # reductions along other axes do not fit into the group
        lambda x: (tp.sum(tp.exp(x), axis=0), tp.max(tp.exp(x), axis=1)),
        (X,),
        [("Exp+Sum", (6, 5), 1, [(True, False)], [(True, True), (False, True)])],
    ),
    (  # a call outside uses a result before the last member: the chain is cut there
        lambda x, y: tp.exp(x @ tp.matrix_transpose(tp.exp(x) + 1)) @ y + (tp.exp(x) + 1),
        (X, Y),
        [
            ("Exp+Add", (30,), 1, [], [(True,)]),
        ],
    ),
    (  # too few elements
        lambda row: tp.exp(row) + 1,
        (ROW,),
        [],
    ),
]


@pytest.mark.parametrize(("f", "arrays", "expected"), FORMS)
def test_calls_form_groups(compiled: Compiled, f: Any, arrays: Any, expected: Any) -> None:
    ours, plain, groups = compiled.run(f, *arrays)
    for mine, other in zip(ours, plain, strict=True):
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(mine, other, rtol=2e-6, atol=2e-6)
    result = [
        (
            group.name,
            group.shape,
            len(group.inputs),
            [reduction.axes for reduction in group.reductions],
            [output.spans for output in group.outputs],
        )
        for group in groups
    ]
    assert result == expected


def test_numbers_are_constants_of_a_group(compiled: Compiled) -> None:
    _, _, (group,) = compiled.run(lambda x: tp.exp(x * 0.5) + tp.asarray(3.0), X)
    assert len(group.inputs) == 1
    assert "constant float32 0.5" in str(group.outputs[0].expression)
    assert "constant float32 3.0" in str(group.outputs[0].expression)


def test_a_declined_group_is_offered_in_parts(compiled: Compiled) -> None:
    compiled.takes = lambda group: not group.reductions
    ours, plain, groups = compiled.run(lambda x, y: tp.nn.softmax(tp.exp(x) + y) * 2 - y, X, Y)
    np.testing.assert_allclose(ours[0], plain[0], rtol=2e-6)
    assert [group.name for group in groups] == ["Exp+Add", "Multiply+Sub"]


def test_a_group_with_an_operation_that_is_declined_loses_only_that(compiled: Compiled) -> None:
    compiled.takes = lambda group: "erf" not in str(group.outputs[0].expression)
    f = lambda x: tp.sin(tp.sin(tp.erf(tp.cos(tp.cos(x)))))  # noqa: E731
    ours, plain, groups = compiled.run(f, X)
    np.testing.assert_allclose(ours[0], plain[0], rtol=2e-6)
    assert [group.name for group in groups] == ["Cos+Cos", "Sin+Sin"]


def test_a_large_native_call_of_several_steps_is_a_group(compiled: Compiled) -> None:
    with use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)):
        x = tp.asarray(X)
        result = tp.nn.softmax(x).numpy()
        tp.exp(x), tp.sum(x), tp.nn.softmax(tp.asarray(ROW))  # one step, or few elements
    assert [group.name for group in compiled.asked] == ["Softmax"]
    powers = np.exp(X.astype(np.float64))
    np.testing.assert_allclose(result, powers / powers.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: tp.tanh(x * x) + x, []),  # three calls cost no more than a group
        (lambda x: tp.tanh(x * x) + x - 1, ["Multiply+Tanh+Add+Sub"]),
        (tp.nn.softmax, ["Softmax"]),  # a call of five steps
        (lambda x: tp.reshape(tp.reshape(tp.tanh(x * x), (1, -1)) + x, (-1, 1)), []),
    ],
)
def test_few_elements_need_several_calls(compiled: Compiled, f: Any, expected: Any) -> None:
    ours, plain, groups = compiled.run(f, ROW)
    np.testing.assert_allclose(ours[0], plain[0], rtol=2e-6)
    assert [group.name for group in groups] == expected


def test_gradients_of_few_elements_form_groups(compiled: Compiled) -> None:
    f = tp.grad(lambda x: tp.sum(tp.tanh(tp.tanh(x * x) + x)))
    ours, plain, groups = compiled.run(f, ROW)
    np.testing.assert_allclose(ours[0], plain[0], rtol=2e-6)
    assert len(groups) == 1


def test_eager_calls_on_few_elements_are_no_groups(compiled: Compiled) -> None:
    with use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)):
        for _ in range(3):  # a program of the decomposition, and of the backward pass
            tp.grad(lambda x: tp.sum(tp.nn.softmax(tp.nn.gelu(x)) * x))(tp.asarray(ROW))
    assert compiled.asked == []


def test_an_observer_sees_the_kernels_of_a_group(compiled: Compiled) -> None:
    with use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)):
        f = tp.compile(lambda x: tp.exp(x) + x)
        f(tp.asarray(X))
        with tp.profile() as profile:
            f(tp.asarray(X))
    assert {"Exp", "Add"} <= {kernel.name for kernel in profile.kernels}


@pytest.mark.parametrize(
    ("factors", "groups"),
    [((3.0, 3.0, 3.0), 1), ((3.0, 5.0, 3.0), 2), ((0.0, -0.0, 0.0), 2)],
    ids=["equal", "different constants", "signed zeros"],
)
def test_equal_groups_of_a_program_are_compiled_once(
    compiled: Compiled, factors: tuple[float, ...], groups: int
) -> None:
    def f(x: Any) -> Any:
        for factor in factors:
            x = tp.sort(1 / (tp.exp(-x) * factor - x), axis=1)  # which is in no group
        return x

    ours, plain, asked = compiled.run(f, X)
    np.testing.assert_allclose(ours, plain, rtol=2e-6)
    assert len(asked) == groups
    with use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)):
        fusion = tp.compile(f).program(tp.asarray(X)).fusion
    assert fusion is not None
    assert len(fusion.groups) == len(factors)
    assert len({group.run for group in fusion.groups}) == groups


@pytest.mark.parametrize(
    ("fuses", "refuses", "prepared"),
    [(True, False, 0), (False, False, 1), (False, True, 1)],
    ids=["in a group", "alone", "alone, refused"],
)
def test_a_kernel_is_prepared_where_no_group_computes_the_call(
    compiled: Compiled, fuses: bool, refuses: bool, prepared: int
) -> None:
    made = []
    table = KernelTable()

    @table.prepare(rounding.CEIL)
    def ceil(x: Any) -> Any:
        made.append(x)
        if refuses:
            raise KernelRefusedError("too odd")
        return np.ceil

    device = compiled.engine.open("cpu")
    kernels = [("cpu", entry) for entry in table]
    compiled.engine.registry.add(device.owner, kernels=kernels, override=True)
    compiled.takes = lambda _: fuses
    with use_context(Context(compiled.engine, device, None)):
        f = tp.compile(lambda x: tp.ceil(x) + x)
        for _ in range(2):
            np.testing.assert_allclose(f(tp.asarray(X)).numpy(), np.ceil(X) + X)
        assert len(made) == prepared
        with tp.profile() as profile:  # each kernel by itself
            f(tp.asarray(X))
    assert len(made) == 1
    assert [kernel.name for kernel in profile.kernels][-1] == "Add"


# What a program shows -------------------------------------------------------------------


TWO_STEPS = KernelSpec("TwoSteps", ("x",), inference.same)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_decomposition_is_a_group_unless_a_kernel_is_replaced(
    compiled: Compiled, replaced: bool
) -> None:
    def sevens(x: Any) -> Any:
        return np.full_like(x, 7)

    with (
        use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)),
        tp.register_decomposition(TWO_STEPS, lambda x: tp.exp(x) + x),
        tp.register_kernel("Exp", "cpu", sevens, override=True) if replaced else nullcontext(),
    ):
        result = dispatch(TWO_STEPS, tp.asarray(X)).numpy()
    np.testing.assert_allclose(result, (7 if replaced else np.exp(X)) + X, rtol=2e-6)
    assert [group.name for group in compiled.asked] == ([] if replaced else ["TwoSteps"])


@pytest.mark.parametrize(
    ("f", "expected"),
    [(lambda x: tp.exp(x) + x, []), (lambda x: tp.exp(tp.sort(x)) + x, ["Sort"])],
    ids=["all in a group", "one alone"],
)
def test_the_first_run_checks_the_kernels_that_run(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch, f: Any, expected: list[str]
) -> None:
    checked: list[str] = []

    def check(plan: Plan, result: Any) -> None:
        checked.append(plan.spec.name)
        original(plan, result)

    original = Plan.check
    monkeypatch.setattr(Plan, "check", check)
    with use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)):
        program = tp.compile(f)
        for _ in range(2):
            np.testing.assert_allclose(program(tp.asarray(X)).numpy(), f(tp.asarray(X)).numpy())
    assert checked == expected
    assert len(compiled.asked) == 1

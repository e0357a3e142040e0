"""Programs that differ in sizes alone: their groups are found once, their code compiled once."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.fusion.steps import Composite, Reduce, Steps
from tensorplug.compile.tracing.values import Constant
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.keys import freeze_attributes
from tensorplug.errors import RecompileWarning, TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.denominator import Row, cases_of, entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("on_the_cpu")

WIDTH = 32
CASES = 12  # of a kernel in a dtype


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def attention(x: Any) -> Any:
    """Return a block of a transformer; its sizes are read by no line of Python."""
    h = tp.nn.layer_norm(x, tp.zeros((WIDTH,)), tp.ones((WIDTH,)))
    weights = tp.nn.softmax(h @ tp.matrix_transpose(h) * WIDTH**-0.5)
    x = x + weights @ h
    return x + tp.nn.gelu(tp.nn.layer_norm(x, tp.zeros((WIDTH,)), tp.ones((WIDTH,))))


def pooled(x: Any) -> Any:
    """Return numbers that depend on sizes: the divisor of a mean, and the choice of a branch."""
    centred = x - tp.mean(x, axis=1, keepdims=True)
    return centred * 2 if x.shape[1] % 2 else centred / x.shape[1] + 1


def slope(x: Any) -> Any:
    """Return a gradient that holds one number for all elements: one over how many there are."""
    return tp.grad(lambda x: tp.mean(tp.tanh(x) * x))(x)


FUNCTIONS: list[Callable[[Any], Any]] = [attention, pooled, slope]


def loaded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that gets the object code of each module that LLVM loads."""
    compiler = pytest.importorskip("tensorplug_cpu.jit.codegen.compiler")
    pytest.importorskip("llvmlite")
    modules: list[bytes] = []
    load = compiler._load
    monkeypatch.setattr(compiler, "_load", lambda code: (modules.append(code), load(code))[1])
    return modules


@pytest.mark.filterwarnings("ignore::tensorplug.errors.RecompileWarning")
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("compiles", [False, True], ids=["eager", "compiled"])
def test_200_lengths_compile_a_handful_of_modules(
    function: Any, compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = loaded(monkeypatch)
    f = tp.compile(function) if compiles else function
    lengths = np.random.default_rng(0).permutation(np.arange(70, 470))[:200]
    marks = []
    for at, length in enumerate(lengths):
        f(tp.asarray(numbers(1, int(length), WIDTH)))
        if at in (39, 199):
            marks.append(len(modules))
    assert marks[0] <= 24, marks
    # Products of a few more geometries, and divisions by a power of two.
    assert marks[1] - marks[0] <= 6, marks


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("compiles", [False, True], ids=["eager", "compiled"])
def test_results_do_not_depend_on_the_lengths_before(f: Any, compiles: bool) -> None:
    """A group that is known from another length gives the bits of one that was found anew."""
    device = engine_of(current_context()).devices.of(current_context())
    lengths = [3, 200, 201, 64, 128, 500, 201, 1]
    run = tp.compile(f) if compiles else f
    known = [run(tp.asarray(numbers(2, n, WIDTH))).numpy() for n in lengths]
    assert device.structures or f is pooled  # which has no group of its own, if it is eager
    for n, result in zip(lengths, known, strict=True):
        device.forget_plans()
        run = tp.compile(f) if compiles else f
        np.testing.assert_array_equal(result, run(tp.asarray(numbers(2, n, WIDTH))).numpy())


@pytest.mark.parametrize("kept", [3, 256])
def test_a_full_cache_drops_one_program_at_a_time(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("tensorplug.compile.functions"), "LIMIT", kept)
    traced: list[int] = []

    @tp.compile
    def f(x: Any) -> Any:
        traced.append(x.shape[0])
        return tp.sort(x)

    lengths = range(2, kept + 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecompileWarning)
        for n in [*lengths, *lengths]:
            f(tp.zeros((n,)))
        assert traced == [*lengths]
        f(tp.zeros((kept + 2,)))  # the first length is in its place
        for n in [*lengths[1:], kept + 2, 2]:
            f(tp.zeros((n,)))
    assert traced == [*lengths, kept + 2, 2]


def test_lengths_that_share_code_cause_no_warning() -> None:
    f = tp.compile(attention)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecompileWarning)
        for n in range(200, 220):
            f(tp.asarray(numbers(1, n, WIDTH)))


def test_groups_of_another_length_are_not_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tp.compile(attention)
    for n in (200, 333):
        f(tp.asarray(numbers(1, n, WIDTH)))
    monkeypatch.setattr(Steps, "find", None)  # must not be called
    program = f.program(tp.asarray(numbers(1, 335, WIDTH)))
    assert program.fusion is not None
    assert [group.group.shape for group in program.fusion.groups][1] == (335, 335)


def declared() -> list[str]:
    state = engine_of(current_context()).registry.state
    found = {name: state.decomposition(name) for name in entries()}
    return sorted(
        name
        for name, owned in found.items()
        if owned is not None and (owned.entry.alone or owned.entry.reads is not None)
    )


def plans(kernel: str, factor: int, kept: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield plans of a kernel's cases, with sizes above 1 times ``factor``; None where it fails.

    Sizes along the axes of the attributes ``kept`` stay as they are.
    """
    engine = engine_of(current_context())
    entry = entries()[kernel]
    for dtype in (dt.float32, dt.int32):
        if dtype not in entry.dtypes:
            continue
        for case in list(cases_of(entry, Row(kernel, dtype.name, "native"), 0))[:CASES]:
            axes = [case.attributes.get(name) for name in kept]

            def scaled(array: Any, axes: Any = axes) -> TensorType:
                rank = array.ndim
                fixed: set[int] = set()
                for each in axes:
                    fixed |= {
                        at % rank for at in (range(rank) if each is None else np.ravel(each))
                    }
                shape = [
                    n * factor if n > 1 and at not in fixed else n
                    for at, n in enumerate(array.shape)
                ]
                return TensorType(dt.of(array.dtype), tuple(shape))

            types = [
                [scaled(x) for x in given]
                if isinstance(given, list)
                else given
                if given is None
                else scaled(given)
                for given in case.inputs
            ]
            try:
                yield engine.explain(entry.spec, engine.devices.active, types, case.attributes)[0]
            except TensorplugError:
                yield None


def outline(step: Composite | None) -> Any:
    """Return all of a composite but its sizes: calls, numbers, and which sizes are equal."""
    if step is None:
        return None
    places: dict[Any, int] = {}
    sizes: dict[int, int] = {1: 1}

    def operand(x: Any) -> Any:
        type_ = x.placement.type
        shape = tuple(sizes.setdefault(n, len(sizes) + 1) for n in type_.shape)
        data = (
            x.placement.device.backend.to_host(x.buffer).tobytes()
            if isinstance(x, Constant)
            else b""
        )
        return places.setdefault(x, len(places)), type_.dtype, shape, data

    return [
        (
            call.plan.spec.name,
            [] if call.plan.spec.name == "Reshape" else freeze_attributes(call.plan.attributes),
            [operand(x) for x in (*call.operands(), *call.outputs)],
            # A mean's number of elements is a constant in a composite.
            isinstance(kind, Reduce)
            and kind.divides
            and [call.operands()[0].placement.type.shape[axis] for axis in kind.axes],
        )
        for call, kind in step.calls
    ]


@pytest.mark.slow
def test_decompositions_read_no_sizes_but_those_they_declare() -> None:
    """What ``DecompositionTable`` says of each holds for the suite's cases at three sizes."""
    engine = engine_of(current_context())
    compared = 0
    for kernel in declared():
        owned = engine.registry.state.decomposition(kernel)
        assert owned is not None
        entry = owned.entry
        versions = [plans(kernel, factor, entry.reads or ()) for factor in (1, 3, 7)]
        for alike in zip(*versions, strict=True):
            usable = [plan for plan in alike if plan is not None and plan.static_shapes]
            outlines = [
                (pattern(plan), outline(Steps(engine)._find_composite(plan)))
                for plan in usable
                if not any(0 in type_.shape for type_ in plan.operand_types())
            ]
            compared += len(outlines)
            # With other sizes, other ones may be equal: those along axes that are kept.
            same = [found for sizes, found in outlines if sizes == outlines[0][0]]
            assert all(each == same[0] for each in same), usable[0].describe()
    assert compared > 1000


def pattern(plan: Any) -> list[tuple[int, ...]]:
    sizes: dict[int, int] = {1: 1}
    return [
        tuple(sizes.setdefault(n, len(sizes) + 1) for n in type_.shape)
        for type_ in plan.operand_types()
    ]

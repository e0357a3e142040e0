"""Whole programs: what the backend is asked, what it takes, and what is kept of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.dispatch.context import Context, use_context
from tensorplug.errors import KernelOutputError, KernelRefusedError, RegistrationError
from tensorplug.tensors.tree import leaves
from tensorplug_conformance.program_interpreter import Interpreted
from tensorplug_conformance.selftest.delegates import Delegate
from tensorplug_conformance.selftest.programs.engines import delegating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tensorplug.plugin import programs


class Compiler(Delegate):
    """Takes the calls whose kernels are not in ``refused``; remembers what it was asked."""

    def __init__(self, clean: Any, asked: Asked) -> None:
        super().__init__(clean)
        self.asked = asked

    @property
    def compiler(self) -> str:
        return self.asked.version

    def take_calls(self, program: programs.TracedProgram, offered: Any) -> Any:
        self.asked.queries.append((program, offered))
        return self.asked.take(program, offered)

    def compile_program(self, program: programs.TracedProgram) -> Any:
        self.asked.compiled.append(program)
        return self.asked.make(program)

    def load_program(self, program: programs.TracedProgram, content: bytes) -> Any:
        self.asked.loaded.append(content)
        return self.asked.load(program)


class Asked:
    """An engine with such a backend, and what this was asked."""

    def __init__(self) -> None:
        self.version = "compiler 1"
        self.refused: set[str] = set()
        self.queries: list[Any] = []
        self.compiled: list[programs.TracedProgram] = []
        self.loaded: list[bytes] = []
        self.make: Callable[[programs.TracedProgram], Any] = Interpreted
        self.load: Callable[[programs.TracedProgram], Any] = Interpreted
        self.take: Callable[[programs.TracedProgram, Any], Any] = self._take
        self.engine = delegating(partial(Compiler, asked=self))
        self.device = self.engine.open("cpu")

    def _take(self, program: programs.TracedProgram, offered: Any) -> Any:
        return [at for at in offered if program.calls[at].kernel not in self.refused]

    def entered(self) -> use_context:
        return use_context(Context(self.engine, self.device))


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    monkeypatch.setenv("TENSORPLUG_CPU_CACHE", str(tmp_path / "kept"))
    asked = Asked()
    with asked.entered():
        yield asked


X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def kernels(program: programs.TracedProgram) -> list[str]:
    return [call.kernel for call in program.calls]


def test_a_program_is_one_part(asked: Asked) -> None:
    f = tp.compile(lambda x: (tp.sort(tp.exp(x), axis=0), tp.sum(x)))
    results = f(tp.asarray(X))
    np.testing.assert_allclose(results[0].numpy(), np.sort(np.exp(X), axis=0), rtol=1e-6)
    np.testing.assert_allclose(results[1].numpy(), X.sum(), atol=1e-6)
    (program,) = asked.compiled
    assert kernels(program) == ["Exp", "Sort", "Sum"]
    assert (program.inputs, program.constants) == ((0,), ())
    assert [str(program.types[at]) for at in program.outputs] == ["float32[3,4]", "float32[]"]
    text = repr(f.program(tp.asarray(X)))
    assert "3 calls, 0 groups, 1 part>" in text
    assert "part 1: 3 calls of %0 -> %2, %3, by cpu" in text
    assert text.count(", in part 1") == 3


# What a call after another one is refused as, and the calls of each part: the fewest there can be.
STAGES: list[tuple[Callable[[Any], Any], list[list[str]]]] = [
    (lambda x: tp.exp(tp.sort(tp.sin(x))), [["Sin"], ["Exp"]]),
    (lambda x: tp.exp(tp.sort(x)) + tp.sin(x), [["Exp", "Sin", "Add"]]),
    (lambda x: (tp.exp(tp.sort(tp.sin(x))), tp.cos(x)), [["Sin", "Cos"], ["Exp"]]),
    (
        lambda x: tp.exp(tp.sort(tp.sin(x))) + tp.tan(tp.sort(tp.cos(x))),
        [["Sin", "Cos"], ["Exp", "Tan", "Add"]],
    ),
    (tp.sort, []),
]


@pytest.mark.parametrize(("f", "parts"), STAGES, ids=range(len(STAGES)))
def test_the_rest_runs_in_between(asked: Asked, f: Any, parts: list[list[str]]) -> None:
    asked.refused = {"Sort"}
    x = tp.asarray(X)
    for meant, got in zip(leaves(f(x)), leaves(tp.compile(f)(x)), strict=True):
        np.testing.assert_allclose(got.numpy(), meant.numpy(), rtol=1e-6, atol=1e-6)
    assert [kernels(each) for each in asked.compiled] == parts


def test_only_own_kernels_on_the_device_are_offered(asked: Asked) -> None:
    def looped(x: Any) -> Any:
        return tp.exp(tp.fori_loop(0, 3, lambda _, y: y * 2 + 1, tp.sin(x)))

    x = tp.asarray(X)
    np.testing.assert_allclose(tp.compile(looped)(x).numpy(), looped(x).numpy(), rtol=1e-6)
    offered = [
        [call.kernel for at, call in enumerate(program.calls) if at in places]
        for program, places in asked.queries
    ]
    assert ["Sin", "Exp"] in offered  # and not the loop, which has programs of its own
    assert any("Multiply" in names for names in offered)


def test_small_constants_are_literals_and_weights_are_bound(asked: Asked) -> None:
    weights = [np.full((4, 80), number, np.float32) for number in (1, 2)]
    scale = tp.asarray(np.array([1, 2, 3, 4], np.float32))
    for weight in weights:
        held = tp.asarray(weight)
        f = tp.compile(lambda x, held=held: (x * scale) @ held)
        meant = (X * [1, 2, 3, 4]) @ weight.astype(np.float64)
        np.testing.assert_allclose(f(tp.asarray(X)).numpy(), meant, rtol=1e-6)
    (program,) = asked.compiled
    assert next(iter(program.literals.values())).tolist() == [1, 2, 3, 4]
    # The second function differs in its weights alone, so it has the same code.
    assert len(asked.loaded) == 1


def test_it_is_kept_on_disk_by_versions(asked: Asked) -> None:
    def run() -> None:
        tp.compile(lambda x: tp.exp(x) + 1)(tp.asarray(X))

    run()
    for version, compiled, loaded in (
        ("compiler 1", 1, 1),
        ("compiler 2", 2, 1),
        ("compiler 2", 2, 2),
        ("compiler 1", 2, 3),
    ):
        asked.version = version
        run()
        assert (len(asked.compiled), len(asked.loaded)) == (compiled, loaded)


def _refuse(_program: programs.TracedProgram) -> Any:
    raise KernelRefusedError("of another day")


def test_what_cannot_be_loaded_is_compiled_again(asked: Asked) -> None:
    for _ in range(2):
        asked.load = _refuse
        assert tp.compile(lambda x: tp.exp(x) + 1)(tp.asarray(X)).shape == (3, 4)
    assert (len(asked.compiled), len(asked.loaded)) == (2, 1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(_refuse, "declined: of another day"), (lambda _: None, "declined: no reason given")],
)
def test_a_declined_part_runs_kernel_by_kernel(asked: Asked, make: Any, reason: str) -> None:
    asked.make = make
    f = tp.compile(lambda x: tp.exp(tp.sort(x)))
    np.testing.assert_allclose(f(tp.asarray(X)).numpy(), np.exp(np.sort(X)), rtol=1e-6)
    assert f"2 calls: {reason}" in repr(f.program(tp.asarray(X)))


class _Wrong(Interpreted):
    """Returns ``results`` in the place of its own."""

    results: Any = None

    def bind(self, constants: Any) -> Any:  # noqa: ARG002  # of the protocol
        return lambda *_: self.results


def _returning(results: Any) -> Callable[[programs.TracedProgram], Any]:
    def make(program: programs.TracedProgram) -> Any:
        made = _Wrong(program)
        object.__setattr__(made, "results", results)
        return made

    return make


def _failing(_program: programs.TracedProgram) -> Any:
    raise ZeroDivisionError("out of registers")


OWNER = r"of tensorplug-cpu \S+ on backend 'cpu'"
FAULTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"take": lambda *_: [7]}, RegistrationError, f"take_calls {OWNER} took call 7 .*take 0, 1"),
    ({"make": lambda _: 3}, RegistrationError, f"compile_program {OWNER} must .* int has no bind"),
    ({"make": _returning(None)}, KernelOutputError, f"compile_program {OWNER}: .*NoneType"),
    ({"make": _returning([])}, KernelOutputError, "returned 0 outputs instead of a list of 1"),
    ({"make": _returning(["x"])}, KernelOutputError, "output 0 is no buffer"),
    (
        {"make": _returning([X[0]])},
        KernelOutputError,
        r"is float32\[4\], but must be float32\[3,4\]",
    ),
    ({"make": _failing}, ZeroDivisionError, "out of registers"),
]


@pytest.mark.parametrize(("changes", "kind", "message"), FAULTS, ids=[x[2] for x in FAULTS])
def test_errors_name_plugin_and_hook(
    asked: Asked, changes: dict[str, Any], kind: type[Exception], message: str
) -> None:
    for name, value in changes.items():
        setattr(asked, name, value)
    with pytest.raises(kind, match=message) as caught:
        tp.compile(lambda x: tp.exp(tp.sort(x)))(tp.asarray(X))
    if kind is ZeroDivisionError:
        assert any("compile_program of tensorplug-cpu" in note for note in caught.value.__notes__)


def test_memory_of_donated_arguments_is_offered(asked: Asked) -> None:
    large = np.ones((300, 300), np.float32)
    f = tp.compile(lambda x, y: x * 2 + y, donate="x")
    x, y = tp.asarray(large), tp.asarray(large)
    assert float(tp.sum(f(x, y))) == 3 * large.size
    (program,) = asked.compiled
    assert program.donated == {program.inputs[0]}
    x = tp.asarray(large)
    shared = tp.reshape(x, (-1,))
    f(x, y)
    assert [each.donated for each in asked.compiled] == [program.donated, frozenset()]
    assert float(tp.sum(shared)) == large.size


def test_observers_see_each_kernel(asked: Asked) -> None:
    f = tp.compile(lambda x: tp.exp(tp.sort(x)))
    with tp.profile() as profile:
        f(tp.asarray(X))
    assert {"Exp", "Sort"} <= set(profile.kernel_names)
    assert len(asked.compiled) == 1


def test_other_sizes_are_other_programs(asked: Asked) -> None:
    f = tp.compile(lambda x: tp.exp(tp.sort(x)))
    for rows in (3, 5, 7):
        assert f(tp.ones((rows, 4))).shape == (rows, 4)
    assert [program.types[0].shape for program in asked.compiled] == [(3, 4), (5, 4), (7, 4)]


def test_digests_tell_programs_apart(asked: Asked) -> None:
    tp.compile(lambda x: tp.sum(x * 3, axis=0))(tp.asarray(X))
    (program,) = asked.compiled
    (at,) = program.literals
    sum_ = program.calls[-1]
    others = [
        replace(program, literals={at: program.literals[at] + 1}),
        replace(program, donated=frozenset(program.inputs)),
        replace(program, outputs=program.outputs * 2),
        replace(program, calls=(*program.calls[:-1], replace(sum_, kernel="Prod"))),
        replace(
            program,
            calls=(*program.calls[:-1], replace(sum_, attributes={**sum_.attributes, "axis": 1})),
        ),
        replace(program, types=(*program.types[:-1], program.types[0])),
    ]
    digests = {each.digest() for each in (program, *others)} | {program.digest("2.0")}
    assert len(digests) == len(others) + 2
    assert replace(program).digest() == program.digest()

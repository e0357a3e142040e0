"""The suite's own strength: what it must catch, and that it says so when something escapes."""

from __future__ import annotations

from typing import Any

import pytest

from tensorplug.ops.elementwise import MULTIPLY, SQUARE
from tensorplug.registry import Owner
from tensorplug.tables import gradient_entry
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.kernels import run_row
from tensorplug_conformance.selftest import try_backend, try_null, try_saboteur
from tensorplug_conformance.selftest.backends import WRONG_BACKENDS, WrongBackend
from tensorplug_conformance.selftest.sabotage import Call, Saboteur, install
from tensorplug_conformance.selftest.saboteurs import saboteurs
from tensorplug_conformance.session import Session, engine_factory


def test_there_are_enough_of_them_and_of_many_kinds() -> None:
    found = saboteurs()
    assert len(found) >= 80
    assert len({each.kind for each in found}) >= 30


@pytest.mark.parametrize("saboteur", saboteurs(), ids=lambda each: f"{each.name} {each.dtype}")
def test_saboteurs_are_caught(saboteur: Saboteur) -> None:
    trial = try_saboteur("cpu", entries()[saboteur.kernel], saboteur)
    assert trial.right, trial.evidence


@pytest.mark.parametrize("wrong", WRONG_BACKENDS, ids=lambda each: each.name)
def test_wrong_backends_are_caught(wrong: WrongBackend) -> None:
    trial = try_backend("cpu", wrong)
    assert trial.right, trial.evidence


@pytest.mark.parametrize("level_and_check", sorted({(w.level, w.check) for w in WRONG_BACKENDS}))
def test_a_backend_that_is_wrapped_and_right_passes(level_and_check: tuple[int, str]) -> None:
    level, check = level_and_check
    harmless = WrongBackend("does nothing wrong", lambda clean: clean, level, check)
    assert not try_backend("cpu", harmless).right


def _clean(call: Call) -> Any:
    return call.clean()


@pytest.mark.parametrize("kernel", ["Add", "TopK", "Softmax", "Concat"])
def test_a_wrapper_that_changes_nothing_is_not_flagged(kernel: str) -> None:
    harmless = Saboteur("harmless", kernel, _clean)
    assert not try_saboteur("cpu", entries()[kernel], harmless).right


def test_a_missing_kernel_cannot_be_sabotaged() -> None:
    session = Session(engine_factory(None), "cpu")
    with pytest.raises(LookupError, match="Nothing"):
        install(session, Saboteur("odd", "Nothing", _clean))


@pytest.mark.parametrize("what", ["zeros", "nothing"])
def test_null_backends_fail(what: str) -> None:
    trial = try_null(what)
    assert trial.right, trial.evidence


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param(lambda dy, x: dy * 2.0 * x * 1.001, "wrong", id="factor"),
        pytest.param(lambda dy, x: dy + 0.0 * x, "wrong", id="x ignored"),
        pytest.param(lambda dy, x: (dy * 2.0 * x).sum(), "GradientError", id="summed"),
    ],
)
def test_wrong_gradients_are_caught(rule: Any, message: str) -> None:
    session = Session(engine_factory(None), "cpu")
    row = Row("Square", "float32", "gradient")
    assert run_row(session, entries()["Square"], row, 0).status == "pass gradient"
    wrong = gradient_entry(SQUARE, "x", rule)
    session.engine.registry.add(Owner("saboteur"), gradients=[wrong], override=True)
    verdict = run_row(session, entries()["Square"], row, 0)
    assert verdict.status == "fail"
    assert message in verdict.failures[0].message


def test_a_missing_gradient_is_missing() -> None:
    session = Session(engine_factory(None), "cpu")
    session.engine.registry.remove_gradient(MULTIPLY.name)
    row = Row("Multiply", "float32", "gradient")
    assert run_row(session, entries()["Multiply"], row, 0).status == "missing"


def test_a_kernel_that_runs_elsewhere_is_no_pass() -> None:
    session = Session(engine_factory(None), "cpu")
    session.engine.registry.remove_kernel("Square", "cpu")
    entry = entries()["Square"]
    assert run_row(session, entry, Row("Square", "int32", "native"), 0).status == "not claimed"
    assert (
        run_row(session, entry, Row("Square", "int32", "decomposed"), 0).status
        == "pass decomposed"
    )
    session.engine.registry.remove_kernel("Neg", "cpu")
    assert run_row(session, entries()["Neg"], Row("Neg", "int32", "native"), 0).status == "missing"


def test_primitives_only_means_just_that() -> None:
    session = Session(engine_factory(None), "cpu", primitives_only=True)
    names = {name for name, backend in session.engine.registry.state.kernels if backend == "cpu"}
    assert "Add" in names
    assert "Square" not in names
    assert session.engine.fallback == "error"

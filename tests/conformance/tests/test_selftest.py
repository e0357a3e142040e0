"""The self test: what it must catch, and its verdict when something escapes."""

from __future__ import annotations

from typing import Any

import pytest

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.contract.rule_entries import gradient_entry
from tensorplug.plugin import specs
from tensorplug_conformance.checks import CheckFailedError, Target, checks
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.selftest import Finding, try_backend, try_saboteur
from tensorplug_conformance.selftest.backends import WRONG_BACKENDS, WrongBackend, engine_with
from tensorplug_conformance.selftest.delegates import Remote
from tensorplug_conformance.selftest.generation import families, selected
from tensorplug_conformance.selftest.kinds import generated
from tensorplug_conformance.selftest.matrix import GROUPS, group_of, matrix
from tensorplug_conformance.selftest.memories import WRONG_MEMORIES
from tensorplug_conformance.selftest.sabotage import Call, Saboteur, install
from tensorplug_conformance.selftest.saboteurs import saboteurs
from tensorplug_conformance.selftest.sharing import Plan, run
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.rows import run_row


def test_there_are_enough_of_them_and_of_many_kinds() -> None:
    by_hand = saboteurs()
    assert len(by_hand) >= 80
    assert len({saboteur.kind for saboteur in by_hand}) >= 30


def test_every_kernel_gets_saboteurs_of_many_kinds() -> None:
    everything = list(selected(1))
    assert {saboteur.kernel for saboteur in everything} == set(entries())
    kinds = {saboteur.kind for saboteur in everything}
    assert len(kinds) >= 55
    assert {group_of(kind) for kind in kinds} == set(GROUPS)
    tried = list(selected())
    assert len(tried) >= 150
    assert len({saboteur.kind for saboteur in tried}) >= 45
    family_of = {kernel: name for name, kernels in families().items() for kernel in kernels}
    assert {family_of[saboteur.kernel] for saboteur in tried} == set(families())


def test_samples_of_two_offsets_are_disjoint_but_for_one_of_each_family() -> None:
    samples = [{saboteur.name for saboteur in selected(97, offset)} for offset in (0, 1)]
    assert all(len(sample) >= 100 for sample in samples)
    assert len(samples[0] & samples[1]) <= len(families())


def test_the_matrix_counts_what_was_caught() -> None:
    some = generated(entries()["Add"])
    large = next(saboteur for saboteur in some if group_of(saboteur.kind) == "large")
    findings = [Finding(large, "caught", ""), Finding(large, "escaped", "")]
    *tables, idle = matrix([*findings, Finding(large, "harmless", "")])
    (table,) = tables
    cells = [list(column.cells) for column in table.columns]
    assert cells == [["elementwise", "all"], ["[bold red]1/2[/]", "[bold red]1/2[/]"]]
    assert [list(column.cells) for column in idle.columns] == [[large.kind], ["1"]]


def test_processes_share_the_work_and_find_the_same() -> None:
    plan = Plan(kinds="NaN equal")
    one, two = run(plan, 1), run(plan, 2)
    assert [finding.outcome for finding in one.findings] == ["caught"]
    assert one.findings[0].evidence == two.findings[0].evidence
    assert one.trials == two.trials
    assert one.trials[-1].right


def test_a_wrong_backend_is_chosen_by_its_name() -> None:
    found = run(Plan(kinds="is lost while it computes"))
    assert found.findings == []
    [trial] = found.trials
    assert trial.right
    assert trial.evidence.startswith("reports loss: a device that computes is lost")


def test_what_the_right_kernel_does_not_pass_is_no_escape() -> None:
    """An infinite divisor has no single quotient, so cases need not catch that it is clipped."""
    entry = entries()["FloorDiv"]
    assert entry.ordinary == ("a", "b")
    (clips,) = (saboteur for saboteur in generated(entry) if saboteur.kind == "infinities clipped")
    assert try_saboteur("cpu", entry, clips).outcome != "escaped"


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("ArgMin", "float64 read as float32"),  # shows only where such digits decide
        ("ArgMin", "subnormals read as 0"),
        ("SparseSegmentMean", "unsigned as signed"),  # wraps, and then divides
        ("Selu", "subnormals flushed"),  # makes a normal number of the largest one
    ],
)
def test_lost_digits_are_caught_where_few_values_show_them(kernel: str, kind: str) -> None:
    entry = entries()[kernel]
    (saboteur,) = (saboteur for saboteur in generated(entry) if saboteur.kind == kind)
    assert try_saboteur("cpu", entry, saboteur).outcome == "caught"


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("Add", "float32"),
        ("MaxPool", "float32"),  # asks for its attributes as a whole
        ("Conv2D", "float32"),
        ("TopK", "int32"),  # two outputs
        ("Sum", "bfloat16"),  # of the clean backend a kernel in float32
        ("BatchMatMul", "bfloat16"),
    ],
)
def test_who_does_nothing_wrong_is_not_caught(kernel: str, dtype: str) -> None:
    idle = Saboteur("does nothing", kernel, lambda call: call.clean(), dtype)
    assert try_saboteur("cpu", entries()[kernel], idle).outcome == "harmless"


@pytest.mark.parametrize("kernel", ["Add", "TopK", "ScatterNd"])
@pytest.mark.parametrize("kind", ["leaks results", "leaks inputs", "leaks scratch"])
def test_kernels_that_leak_are_caught(kernel: str, kind: str) -> None:
    entry = entries()[kernel]
    (saboteur,) = (saboteur for saboteur in generated(entry) if saboteur.kind == kind)
    finding = try_saboteur("cpu", entry, saboteur)
    assert finding.outcome == "caught"
    assert "a leak" in finding.evidence


def test_a_backend_that_cannot_be_closed_fails() -> None:
    target = Target("cpu", "tensorplug_conformance.selftest.misbehaving:raises_at_close")
    (reopen,) = (check for check in checks(0) if check.id == "opens again")
    with pytest.raises(CheckFailedError, match="the driver is gone"):
        reopen.run(target, lambda: Session(engine_factory(None), "cpu"))


def test_a_backend_that_computes_on_the_host_is_found_out() -> None:
    remote = WrongBackend("is remote", Remote, 1, "kernels run on the device")
    assert "passed" in try_backend("cpu", remote).evidence
    session = Session(lambda: engine_with(remote), "cpu")

    def add(a: Any, b: Any, *, backend: Any) -> Any:
        return backend.from_host(backend.to_host(a) + backend.to_host(b))

    owner = Owner("saboteur")
    wrong = kernel_entry(specs.ADD, add)
    session.engine.registry.add(owner, kernels=[("cpu", wrong)], override=True)
    (check,) = (check for check in checks(1) if check.id == "kernels run on the device")
    with pytest.raises(CheckFailedError, match="Add fetched"):
        check.run(Target("cpu"), lambda: session)


WRONG = (*WRONG_BACKENDS, *WRONG_MEMORIES)


@pytest.mark.parametrize("level_and_check", sorted({(w.level, w.check) for w in WRONG}))
def test_a_backend_that_is_wrapped_and_right_passes(level_and_check: tuple[int, str]) -> None:
    level, check = level_and_check
    harmless = WrongBackend("does nothing wrong", lambda clean: clean, level, check)
    assert not try_backend("cpu", harmless).right


def _clean(call: Call) -> Any:
    return call.clean()


def test_a_missing_kernel_cannot_be_sabotaged() -> None:
    session = Session(engine_factory(None), "cpu")
    with pytest.raises(LookupError, match="Nothing"):
        install(session, Saboteur("odd", "Nothing", _clean))


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
    wrong = gradient_entry(specs.SQUARE, "x", rule)
    session.engine.registry.add(Owner("saboteur"), rules=[wrong], override=True)
    verdict = run_row(session, entries()["Square"], row, 0)
    assert verdict.status == "fail"
    assert message in verdict.failures[0].message


def test_a_missing_gradient_is_missing() -> None:
    session = Session(engine_factory(None), "cpu")
    session.engine.registry.remove_gradient(specs.MULTIPLY.name)
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

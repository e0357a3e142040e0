"""Tables of kernels, gradient rules and decompositions: inert, and checked when filled."""

from __future__ import annotations

import re

import pytest

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import GradientTable, RuleTable
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import DecompositionTable, KernelTable
from tensorplug.errors import RegistrationError

BINARY = KernelSpec(
    "Binary",
    ("a", "b"),
    lambda a, b: a,  # noqa: ARG005
    attributes={"axis": attributes.integer(0)},
)
TWO = KernelSpec("Two", ("x",), lambda x: (x, x), outputs=("values", "indices"))
BACK = KernelSpec("Back", ("dy", "x"), lambda dy, x: x)  # noqa: ARG005


def kernel(a, b, *, axis, backend, out, attributes): ...
def kernel_again(a, b): ...
def misnamed(a, c): ...
def rule(dy, a_type, out, axis, attributes): ...
def rule_again(dy): ...
def greedy(dy, backend): ...
def joint_rule(wanted, dy, b, *, axis): ...


def names(table):
    return [entry.spec.name for entry in table]


@pytest.mark.parametrize("how", ["register", "prepare"])
def test_kernels(how):
    table = KernelTable()
    assert getattr(table, how)(BINARY, dtypes=[dt.float32])(kernel) is kernel
    (entry,) = table
    assert len(table) == 1
    assert (entry.spec, entry.function, entry.prepares) == (BINARY, kernel, how == "prepare")
    assert entry.dtypes == frozenset({dt.float32})
    assert entry.asks == ("axis", "backend", "out", "attributes")
    message = "kernel 'Binary' is in this table twice: "
    with pytest.raises(RegistrationError, match=message) as caught:
        table.register(BINARY)(kernel_again)
    assert "test_tables.kernel and " in str(caught.value)
    assert str(caught.value).endswith("test_tables.kernel_again")
    assert [entry.function for entry in table] == [kernel]


def launch(program, *inputs, backend, out, **asked):
    return program, inputs, backend, out, asked


def test_a_table_launches_its_programs():
    table = KernelTable(launch)
    program = table.register(BINARY)(lambda a, b, *, axis: None)  # noqa: ARG005
    (entry,) = table
    assert sorted(entry.asks) == ["axis", "backend", "out"]
    run = entry.function(1, 2, axis=3, backend="device", out="type")
    assert run == (program, (1, 2), "device", "type", {"axis": 3})
    with pytest.raises(
        RegistrationError, match=r"twice: .*lambda> in line \d+ and .*kernel_again"
    ):
        table.register(BINARY)(kernel_again)
    with pytest.raises(RegistrationError, match=r"kernel 'Two': .*misnamed has the parameters"):
        table.register(TWO)(misnamed)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda program, *inputs, device, **asked: None,  # noqa: ARG005
        lambda program, *inputs: None,  # noqa: ARG005
        lambda program, inputs, **asked: None,  # noqa: ARG005
        lambda *inputs, **asked: None,  # noqa: ARG005
        lambda **asked: None,  # noqa: ARG005
        3,
    ],
)
def test_a_launch_of_another_form_is_refused(wrong):
    with pytest.raises(RegistrationError, match="KernelTable: "):
        KernelTable(wrong)


def test_gradients():
    table = GradientTable()
    assert table.wrt(BINARY, "a")(rule) is rule
    table.stop(BINARY, "b")
    assert [(entry.wrt, entry.rule) for entry in table] == [("a", rule), ("b", None)]
    twice = "gradient of 'Binary' with respect to 'a' is in this table twice"
    with pytest.raises(RegistrationError, match=twice):
        table.wrt(BINARY, "a")(rule_again)
    with pytest.raises(RegistrationError, match=r"twice: a statement and .*rule_again"):
        table.wrt(BINARY, "b")(rule_again)
    table.stop(TWO)
    assert len(table) == 3


def test_joint_gradients():
    table = GradientTable()
    assert table.of(BINARY)(joint_rule) is joint_rule
    first, second = table
    assert (first.wrt, second.wrt) == ("a", "b")
    assert first.asks == second.asks == ("dy", "b", "axis")
    assert first.joint is second.joint
    assert first.joint.function is joint_rule
    assert first.joint.asks == ("wanted", "dy", "b", "axis")
    one = GradientTable()
    one.of(BINARY, "b", dtypes=["float32"])(joint_rule)
    assert [(entry.wrt, entry.dtypes) for entry in one] == [("b", frozenset({dt.float32}))]
    with pytest.raises(RegistrationError, match="with respect to 'b' is in this table twice"):
        one.wrt(BINARY, "b")(rule_again)


def test_formulas():
    table = RuleTable()
    table.formulas(BINARY, b=lambda dy, a: dy * a, a=lambda dy, axis, b_type: dy)  # noqa: ARG005
    assert [(entry.wrt, entry.asks) for entry in table] == [
        ("b", ("dy", "a")),
        ("a", ("dy", "axis", "b_type")),
    ]
    assert [entry.rule(3, 2) for entry in table if entry.wrt == "b"] == [6]
    with pytest.raises(RegistrationError, match=r"twice: .*<lambda> in line \d+ and .*rule_again"):
        table.vjp(BINARY, "a")(rule_again)


def test_decompositions():
    table = DecompositionTable()
    assert table.of(BINARY)(kernel_again) is kernel_again
    assert (names(table), len(table)) == (["Binary"], 1)
    with pytest.raises(RegistrationError, match="decomposition of 'Binary' is in this table"):
        table.of(BINARY)(kernel_again)


FILLED = [
    (KernelTable, lambda table, **says: table.register(TWO, **says)(lambda x: x)),
    (KernelTable, lambda table, **says: table.prepare(TWO, **says)(lambda x: x)),
    (GradientTable, lambda table, **says: table.wrt(TWO, "x", **says)(lambda x: x)),
    (DecompositionTable, lambda table, **says: table.of(TWO, **says)(lambda x: x)),
]


@pytest.mark.parametrize("says", [{}, {"override": True}])
@pytest.mark.parametrize(("make", "fill"), FILLED)
def test_an_entry_says_whether_it_replaces_anothers(make, fill, says):
    table = make()
    fill(table, **says)
    assert [entry.override for entry in table] == [bool(says)]


WRONG = [  # what fills the table, parts of the message
    (
        lambda: KernelTable().register(BINARY)(misnamed),
        ["kernel 'Binary': ", "has the parameters (a, c)"],
    ),
    (
        lambda: KernelTable().prepare(BINARY)(rule),
        ["(a, b, *, axis, attributes, backend, out)"],
    ),
    (
        lambda: GradientTable().wrt(BINARY, "c")(rule),
        ["gradient of 'Binary' with respect to 'c': 'c' is not an input; inputs are a, b"],
    ),
    (
        lambda: RuleTable().formulas(BINARY, a=lambda dy: dy, c=lambda dy: dy),
        ["gradient of 'Binary' with respect to 'c': 'c' is not an input; inputs are a, b"],
    ),
    (
        lambda: RuleTable().formulas(BINARY, a=lambda dy, x: dy * x),
        ["with respect to 'a': ", "<lambda> in line ", "unknown parameters x;"],
    ),
    (
        lambda: GradientTable().stop(BINARY, "c"),
        ["'c' is not an input; inputs are a, b"],
    ),
    (
        lambda: GradientTable().of(BINARY, "a", "c")(joint_rule),
        ["joint gradient of 'Binary': 'c' is not an input; inputs are a, b"],
    ),
    (
        lambda: GradientTable().of(BINARY)(rule),
        ["must have the parameter 'wanted'", "test_tables.rule"],
    ),
    (
        lambda: GradientTable().wrt(BINARY, "a")(joint_rule),
        ["unknown parameters wanted"],
    ),
    (
        lambda: GradientTable().wrt(BINARY, "a")(greedy),
        [
            "unknown parameters backend",
            "possible are dy, a, b, a_type, b_type, out, axis, attributes",
        ],
    ),
    (
        lambda: GradientTable().wrt(TWO, "x")(rule_again),
        [
            "unknown parameters dy;",
            "possible are dy_values, dy_indices, x, x_type, values, indices",
        ],
    ),
    (lambda: GradientTable().wrt(BACK, "x")(greedy), ["possible are ddy, dy, x, "]),
    (lambda: DecompositionTable().of(BINARY)(kernel), ["(a, b, *, axis, attributes, out)"]),
    (lambda: KernelTable().register(BINARY)(max), ["no signature to read"]),
]


@pytest.mark.parametrize(("fill", "parts"), WRONG)
def test_wrong_functions(fill, parts):
    with pytest.raises(RegistrationError) as caught:
        fill()
    assert all(re.search(re.escape(part), str(caught.value)) for part in parts), caught.value

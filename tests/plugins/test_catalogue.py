"""The core's catalogue is found by walking its family packages."""

from __future__ import annotations

import ast
import inspect
import sys

import pytest

from tensorplug import library, ops
from tensorplug.contract.families import modules_of
from tensorplug.contract.rules import RuleTable
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import DecompositionTable
from tensorplug.errors import RegistrationError
from tensorplug.ops import creation, matrix_products
from tensorplug.ops.elementwise import arithmetic
from tensorplug.plugins import catalogue
from tensorplug.plugins.assembly import core_registry

ANOTHER_SPEC = """
from tensorplug.contract import inference
from tensorplug.contract.rules import RuleTable
from tensorplug.contract.spec import KernelSpec
from tensorplug.ops.elementwise.arithmetic import ADD
from tensorplug.ops.elementwise.casting import CAST
{name} = KernelSpec("{kernel}", ("x",), inference.same)
"""


@pytest.fixture
def family(tmp_path, monkeypatch):
    """Put a family file of one's own into one of the core's packages."""
    loaded = []

    def write(package, source):
        module = f"{package}.zz_another_family"
        (tmp_path / "zz_another_family.py").write_text(source, encoding="utf-8")
        path = [*sys.modules[package].__path__, str(tmp_path)]
        monkeypatch.setattr(sys.modules[package], "__path__", path)
        loaded.append(module)

    yield write
    for module in loaded:
        sys.modules.pop(module, None)


def test_catalogue_holds_each_spec_once():
    result = catalogue.catalogue()
    names = [spec.name for spec in result]
    assert len(set(names)) == len(names)
    by_name = dict(zip(names, result, strict=True))
    assert by_name["Add"] is arithmetic.ADD
    assert by_name["BatchMatMul"] is matrix_products.BATCH_MAT_MUL
    assert by_name["Fill"] is creation.FILL


def declared_specs(module):
    """Return the names of the specs that a module assigns: those that it imports are not."""
    assigned = {
        target.id
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    return {name for name in assigned if isinstance(vars(module).get(name), KernelSpec)}


def imported_modules(module):
    """Return the modules of the core that a module's source imports, anywhere in it."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_module_in_ops_declares_a_spec_or_is_imported_where_specs_or_rules_are():
    above = ("library", "introspection", "plugin", "algorithms", "random", "linalg", "special")
    core_registry()  # loads rules and decompositions
    using = set()
    for name, module in sorted(sys.modules.items()):
        package, _, rest = name.partition(".")
        if package == "tensorplug" and rest and rest.partition(".")[0] not in above:
            using.update(imported_modules(module))
    idle = [
        module.__name__
        for module in modules_of(ops)
        if not declared_specs(module) and module.__name__ not in using
    ]
    assert not idle, "these belong into tensorplug.library"


def test_library_declares_no_spec():
    result = {module.__name__: declared_specs(module) for module in modules_of(library)}
    assert result
    assert not any(result.values()), result


def test_new_family_file_is_found_without_a_list(family):
    family("tensorplug.ops", ANOTHER_SPEC.format(name="ANOTHER", kernel="Another"))
    added = {spec.name for spec in catalogue.catalogue()}
    assert "Another" in added
    assert isinstance(core_registry().spec("Another"), KernelSpec)


def test_two_specs_of_one_name(family):
    family("tensorplug.ops", ANOTHER_SPEC.format(name="ADD", kernel="Add"))
    with pytest.raises(RegistrationError) as caught:
        catalogue.catalogue()
    families = ("tensorplug.ops.elementwise.arithmetic", "tensorplug.ops.zz_another_family")
    for text in ("'Add'", *families):
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("package", "kind", "collect"),
    [
        ("rules", RuleTable, catalogue.rules),
        ("decompositions", DecompositionTable, catalogue.decompositions),
    ],
)
def test_tables_of_every_family(package, kind, collect, family):
    __import__(f"tensorplug.{package}")
    before = len(collect())
    table = f"from tensorplug.plugin import {kind.__name__}\n{package} = {kind.__name__}()\n"
    family(f"tensorplug.{package}", table)
    after = collect()
    assert len(after) == before + 1
    assert all(isinstance(table, kind) for table in after)


@pytest.mark.parametrize("package", ["rules", "decompositions"])
def test_table_under_an_unexpected_name(package, family):
    __import__(f"tensorplug.{package}")
    kind = {"rules": "RuleTable", "decompositions": "DecompositionTable"}[package]
    family(
        f"tensorplug.{package}",
        f"from tensorplug.plugin import {kind}\ntable = {kind}()\n",
    )
    with pytest.raises(RegistrationError, match=f"zz_another_family.table is a {kind}"):
        getattr(catalogue, package)()


def test_core_registry_belongs_to_the_core():
    state = core_registry().state
    owners = {
        owned.owner
        for stacks in (state.gradients, state.decompositions)
        for stack in stacks.values()
        for owned in stack
    }
    assert {owner.distribution for owner in owners} == {"tensorplug"}
    assert state.kernels == {}

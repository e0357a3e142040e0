"""What the core itself brings: its kernel specs, their rules and decompositions."""

from __future__ import annotations

from tensorplug import decompositions as decomposition_families
from tensorplug import ops
from tensorplug import rules as rule_families
from tensorplug.contract.families import modules_of, tables_of
from tensorplug.contract.rules import RuleTable
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import DecompositionTable
from tensorplug.errors import RegistrationError


def catalogue() -> tuple[KernelSpec, ...]:
    """Return every kernel spec of the core, in the order of families and their lines.

    Raises:
        RegistrationError: when two specs have one name.

    """
    by_name: dict[str, tuple[KernelSpec, str]] = {}
    for module in modules_of(ops):
        for value in vars(module).values():
            if not isinstance(value, KernelSpec):
                continue
            known, where = by_name.setdefault(value.name, (value, module.__name__))
            if known is not value:  # an import of another family's spec is the same object
                raise RegistrationError(
                    f"two kernel specs are called {value.name!r}, in {where} and in "
                    f"{module.__name__}"
                )
    return tuple(spec for spec, _ in by_name.values())


def rules() -> tuple[RuleTable, ...]:
    """Return the table of rules of every family."""
    return tables_of(rule_families, RuleTable, "rules")


def decompositions() -> tuple[DecompositionTable, ...]:
    """Return the decomposition table of every family."""
    return tables_of(decomposition_families, DecompositionTable, "decompositions")

"""The case tables of installed extension packages, by their hook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import RegistrationError, TensorplugError
from tensorplug.plugins.loading import Loader
from tensorplug.plugins.metadata import EXTENSIONS
from tensorplug.plugins.selection import Selection
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from tensorplug.plugins.metadata import Claim

__all__ = ["HOOK", "extension_tables"]

HOOK = "tensorplug_conformance_cases"


def extension_tables() -> tuple[CaseTable, ...]:
    """Return the tables of every extension that is installed and not disabled.

    An extension that does not load has no kernels in the engine either; it is the engine that
    warns of it.

    Raises:
        RegistrationError: a hook gave something else than case tables.

    """
    selection = Selection.read()
    loader = Loader()
    found: list[CaseTable] = []
    for name in selection.names(EXTENSIONS):
        for claim in selection.claims:
            if claim.group == EXTENSIONS and claim.name == name:
                found.extend(_tables_of(loader, claim))
    return tuple(found)


def _tables_of(loader: Loader, claim: Claim) -> list[CaseTable]:
    try:
        plugin = loader.load(claim)
    except TensorplugError:
        return []
    tables = [table for result in loader.call(plugin, HOOK) for table in result]
    for table in tables:
        if not isinstance(table, CaseTable):
            raise RegistrationError(f"{claim}: {HOOK} gave {table!r}, which is no CaseTable")
    return tables

"""The case tables of installed extension packages, by their hook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import RegistrationError, TensorplugError
from tensorplug.plugins.loader import Loader
from tensorplug.plugins.metadata import EXTENSIONS
from tensorplug.plugins.selection import Selection
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from tensorplug.plugins.metadata import Candidate


HOOK = "tensorplug_conformance_cases"


def extension_tables() -> tuple[CaseTable, ...]:
    """Return the tables of every extension that is installed and enabled.

    An extension that does not load has no kernels in the engine either; the engine warns about it.

    Raises:
        RegistrationError: a hook returned something other than case tables.

    """
    selection = Selection.read()
    loader = Loader()
    tables: list[CaseTable] = []
    for name in selection.names(EXTENSIONS):
        for candidate in selection.candidates:
            if candidate.group == EXTENSIONS and candidate.name == name:
                tables.extend(_tables_of(loader, candidate))
    return tuple(tables)


def _tables_of(loader: Loader, candidate: Candidate) -> list[CaseTable]:
    try:
        plugin = loader.load(candidate)
    except TensorplugError:
        return []
    tables = [table for result in loader.call(plugin, HOOK) for table in result]
    for table in tables:
        if not isinstance(table, CaseTable):
            raise RegistrationError(
                f"{candidate}: {HOOK} returned {table!r}, which is not a CaseTable"
            )
    return tables


def versions() -> list[str]:
    """Return the extensions that a certificate covers, with their versions.

    They are those that are installed and allowed: their kernels are in the engine, and their cases
    among the rows.
    """
    selection = Selection.read()
    names = selection.names(EXTENSIONS)
    by_distribution = {
        str(candidate.owner)
        for candidate in selection.candidates
        if candidate.group == EXTENSIONS and candidate.name in names
    }
    return sorted(by_distribution)

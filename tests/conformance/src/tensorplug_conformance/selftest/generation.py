"""The saboteurs of all kernels, or a sample that is spread over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug_conformance import cases
from tensorplug_conformance.selftest.kinds import generated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.selftest.sabotage import Saboteur


THINNED: Final = 127
"""Of the generated saboteurs one in so many is tried by default; a prime, so that kinds rotate."""


def families() -> dict[str, list[str]]:
    """Return the kernels of each family of cases."""
    return {
        table_name: [entry.spec.name for entry in table]
        for table_name, table in cases.by_family().items()
    }


def selected(thin: int = THINNED, offset: int = 0) -> Iterator[Saboteur]:
    """Yield one in ``thin`` of the generated saboteurs, of each family at least one.

    ``offset``: which one of ``thin``; the samples of two offsets have hardly any in common.
    """
    number = 0
    for table in cases.by_family().values():
        first = True
        for entry in table:
            for saboteur in generated(entry):
                if number % thin == offset % thin or first:
                    yield saboteur
                number, first = number + 1, False

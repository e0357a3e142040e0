"""Kinds of mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.selftest.sabotage import Saboteur

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call


ORDINARY: Final = ("float32", "int32")
FLOATS: Final = ("float32", "complex64")
EXACT: Final = ("int32", "float32")


def anywhere(_entry: CaseEntry) -> bool:
    """Return True: the kind fits every kernel."""
    return True


@dataclass(frozen=True, slots=True)
class Kind:
    """A mistake that kernels of many specs may have.

    ``dtypes``: those in which it is tried, the first that the kernel has rows for; with
    ``strict`` there must be one of them, otherwise any dtype of the kernel will do.
    ``fits``: which kernels can have it. ``raw`` and ``demanded``: see ``Saboteur``.
    """

    name: str
    wrong: Callable[[Call], Any]
    dtypes: tuple[str, ...] = ORDINARY
    strict: bool = False
    fits: Callable[[CaseEntry], bool] = anywhere
    raw: bool = False
    demanded: bool = False

    def saboteurs(self, entry: CaseEntry) -> Iterator[Saboteur]:
        """Yield the saboteur of this kind for a kernel, if there is one."""
        dtype = chosen(entry, self.dtypes, strict=self.strict)
        if dtype is not None and self.fits(entry):
            yield Saboteur(
                self.name,
                entry.spec.name,
                self.wrong,
                dtype,
                raw=self.raw,
                demanded=self.demanded,
            )


def chosen(entry: CaseEntry, dtypes: tuple[str, ...], *, strict: bool = False) -> str | None:
    """Return the first of ``dtypes`` that a kernel has rows for; else any, unless ``strict``."""
    own = [dtype.name for dtype in entry.dtypes]
    fitting = [dtype for dtype in dtypes if dtype in own]
    if fitting:
        return fitting[0]
    numeric = [dtype.name for dtype in entry.dtypes if dtype is not dt.string]
    return None if strict else (numeric or own)[0]

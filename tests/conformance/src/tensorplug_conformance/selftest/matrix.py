"""The matrix of the self test: families by kinds, how many saboteurs were caught in each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table

from tensorplug_conformance.selftest.generation import families

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.selftest.bench import Finding

__all__ = ["matrix"]

_ACROSS = 14  # families side by side: what a terminal of 100 columns shows


def matrix(findings: Sequence[Finding]) -> Table:
    """Return kinds with the numbers caught, escaped and harmless, and where they were tried."""
    family_of = {kernel: family for family, kernels in families().items() for kernel in kernels}
    counts: Counter[tuple[str, str]] = Counter()
    where: dict[str, Counter[str]] = {}
    for each in findings:
        kind, family = each.saboteur.kind, family_of[each.saboteur.kernel]
        counts[kind, each.outcome] += 1
        cell = where.setdefault(kind, Counter())
        cell[f"{family}" if each.outcome != "escaped" else f"[red]{family}![/]"] += (
            each.outcome != "harmless"
        )
    table = Table("kind", "caught", "escaped", "no difference", "families: how many of them")
    for kind in sorted(where):
        tried = [f"{family} {n}" for family, n in sorted(where[kind].items()) if n]
        shown = ", ".join(tried[:_ACROSS]) + (", ..." if len(tried) > _ACROSS else "")
        caught, escaped = counts[kind, "caught"], counts[kind, "escaped"]
        table.add_row(
            kind,
            str(caught),
            f"[bold red]{escaped}[/]" if escaped else "0",
            str(counts[kind, "harmless"]),
            shown,
        )
    return table

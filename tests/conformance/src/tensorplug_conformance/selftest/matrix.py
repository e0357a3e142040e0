"""The matrix of the self test: families by kinds, how many saboteurs were caught of how many."""

from __future__ import annotations

import fnmatch
from collections import Counter
from typing import TYPE_CHECKING, Final

from rich import box
from rich.table import Table

from tensorplug_conformance.selftest.generation import families

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug_conformance.selftest.bench import Finding


# Group -> patterns of the kinds in it; other kinds are under "other".
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "off by one": ("one element wrong", "last element left out", "off by one*", "drops the last*"),
    "wrong axis": ("wrong axis", "rows and columns mixed", "axis *", "perm *"),
    "NaN rule": (
        "NaN *",
        "bits of NaN lost",
        "infinities *",
        "sign of zero lost",
        "subnormals *",
    ),
    "tie rule": ("ties *", "equals *"),
    "dtype": (
        "wrong dtype",
        "float64 *",
        "integers through float32",
        "imaginary part lost",
        "unsigned as signed",
        "saturates",
        "through float32",
        "half-precision *",
    ),
    "precision": ("half the digits", "too many ulp", "fast approximation", "adds the identity"),
    "attribute": ("attribute *", "* ignored"),
    "operands": ("operands swapped", "* not stretched", "*index*", "condition inverted"),
    "input changed": ("*input changed",),
    "output aliased": ("output aliased", "writes past the end"),
    "large": (
        "wrong above 2*",
        "wrong only above *",
        "wrong above 64 rows",
        "wrong along *",
        "wrong in the tail of vectors",
    ),
    "strided": (
        "wrong where strided",
        "wrong only when strided",
        "wrong where offset",
        "wrong where stretched",
        "wrong where backwards",
        "wrong where turned",
    ),
    "one buffer": (
        "wrong where one buffer",
        "wrong where overlapping",
        "wrong where one is a transpose",
        "wrong for its own result",
    ),
    "empty": ("wrong from nothing", "empty *", "fails for nothing", "wrong where empty"),
    "rank, shape": ("wrong for *", "wrong above rank *", "scalar *", "wrong shape"),
    "stale": ("stale *", "cached *", "wrong when repeated"),
    "lost update": ("lost update",),
    "race": ("race*", "not deterministic"),
    "leak": ("leaks *",),
    "second output": ("wrong second output",),
    "gradient": ("gradient *",),
}
Counts = Counter[tuple[str, str]]  # by family and group
_OTHER: Final = "other"
_CELL: Final = 10  # columns of a terminal for one group
_FIRST: Final = 24


def matrix(findings: Sequence[Finding], width: int = 100) -> Iterator[Table]:
    """Yield tables of families by groups of kinds, each "caught/all", side by side in ``width``.

    Harmless ones are counted in a separate table, by kind.
    """
    family_of = {kernel: family for family, kernels in families().items() for kernel in kernels}
    caught: Counts = Counter()
    tried: Counts = Counter()
    harmless: Counter[str] = Counter()
    for finding in findings:
        cell = family_of[finding.saboteur.kernel], group_of(finding.saboteur.kind)
        harmless[finding.saboteur.kind] += finding.outcome == "harmless"
        tried[cell] += finding.outcome != "harmless"
        caught[cell] += finding.outcome == "caught"
    shown = [name for name in (*GROUPS, _OTHER) if _sum(tried, name)]
    across = max(1, (width - _FIRST) // _CELL)
    for first in range(0, len(shown), across):
        yield _table(shown[first : first + across], caught, tried)
    yield _idle(harmless)


def group_of(kind: str) -> str:
    """Return the group of a kind."""
    for name, kinds in GROUPS.items():
        if any(fnmatch.fnmatchcase(kind, pattern) for pattern in kinds):
            return name
    return _OTHER


def _table(groups: Sequence[str], caught: Counts, tried: Counts) -> Table:
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("family", no_wrap=True, min_width=_FIRST - 4)
    for group in groups:
        table.add_column(group, min_width=_CELL - 1)
    for family in sorted({family for family, _ in tried}):
        table.add_row(family, *(_cell(caught[family, at], tried[family, at]) for at in groups))
    table.add_section()
    table.add_row("all", *(_cell(_sum(caught, at), _sum(tried, at)) for at in groups))
    return table


def _sum(counts: Counts, group: str) -> int:
    return sum(n for (_, at), n in counts.items() if at == group)


def _cell(caught: int, tried: int) -> str:
    text = f"{caught}/{tried}"
    if not tried:
        return ""
    return text if caught == tried else f"[bold red]{text}[/]"


def _idle(harmless: Counter[str]) -> Table:
    table = Table("make no difference", "how many", box=box.SIMPLE)
    for kind, count in sorted(harmless.items()):
        if count:
            table.add_row(kind, str(count))
    return table

"""The rows and cases of a level, known before anything runs: kernels x dtypes x modes x cases."""

from __future__ import annotations

import fnmatch
import hashlib
import zlib
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, groupby
from signal import SIG_IGN, SIGINT, signal
from typing import TYPE_CHECKING, Final, Literal

from tensorplug.plugin import dtypes as dt
from tensorplug.plugins import catalogue
from tensorplug_conformance import cases as own
from tensorplug_conformance.case import Relation, flat
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.points.far_points import far_cases
from tensorplug_conformance.pools import spawned_pool
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.variants.derivation import all_cases
from tensorplug_conformance.variants.relatives import relatives

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.tables import CaseTable


Mode = Literal["native", "decomposed", "gradient"]
LEVELS = (0, 1, 2, 3, 4)
NATIVE: Final = 3
"""The level up to which rows are of native kernels, which a partial certificate is about."""
_PART: Final = 16  # cases of a decomposed row
_WORTH_SHARING: Final = 1000  # rows: fewer take less time than processes need to start


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """One line of the report: a kernel in a dtype, run natively, decomposed, or differentiated."""

    kernel: str
    dtype: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class Selection:
    """What a partial run is limited to; a run with any limit certifies nothing.

    ``kernels``: patterns of names; like ``dtypes``, none at all stands for all. ``checks``:
    patterns of names of checks. Whoever selects rows gets no other checks, and the reverse.
    ``registered``: native rows alone, which are not claimed where no kernel is registered.
    """

    kernels: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    mode: Literal["native", "decomposed", "both"] = "both"
    checks: tuple[str, ...] = ()
    registered: bool = False

    @property
    def partial(self) -> bool:
        """Whether anything is left out."""
        return self != Selection()

    @property
    def of_rows(self) -> bool:
        """Whether rows are left out by what they are."""
        return replace(self, checks=(), registered=False) != Selection()

    def takes_check(self, name: str) -> bool:
        """Return whether the check called ``name`` is selected."""
        if not self.checks:
            return not self.of_rows
        return any(fnmatch.fnmatchcase(name, glob) for glob in self.checks)

    def takes(self, row: Row) -> bool:
        """Return whether ``row`` is selected."""
        if self.checks and not self.of_rows:
            return False
        return (
            (not self.kernels or any(fnmatch.fnmatchcase(row.kernel, g) for g in self.kernels))
            and (not self.dtypes or row.dtype in self.dtypes)
            and self.mode in ("both", row.mode)
            and (row.mode == "native" or not self.registered)
        )


def entries(extra: Iterable[CaseTable] = ()) -> dict[str, CaseEntry]:
    """Return all cases by kernel name; ``extra`` tables come from extension packages.

    Raises:
        ValueError: when two tables have cases for one kernel.

    """
    by_kernel: dict[str, CaseEntry] = {}
    for table in (*own.tables(), *extra):
        for entry in table:
            if entry.spec.name in by_kernel:
                raise ValueError(f"two case tables have cases for kernel {entry.spec.name!r}")
            by_kernel[entry.spec.name] = entry
    return by_kernel


def rows(level: int, known: Mapping[str, CaseEntry]) -> tuple[Row, ...]:
    """Return the rows of ``level`` itself (not of the levels below), in a fixed order.

    Level 2: the primitives, natively. Level 3: everything else natively where claimed, and by
    decomposition from the primitives alone; and gradients of all. Other levels have no rows.
    """
    listed: list[Row] = []
    for name in sorted(known):
        entry = known[name]
        if level == 2 and name in PRIMITIVES:
            listed.extend(Row(name, dtype.name, "native") for dtype in entry.dtypes)
        if level == 3:
            listed.extend(_catalogue_rows(entry))
    return tuple(listed)


def _catalogue_rows(entry: CaseEntry) -> Iterator[Row]:
    name = entry.spec.name
    if name not in PRIMITIVES:
        served = _decomposed_dtypes().get(name)
        for dtype in entry.dtypes:
            yield Row(name, dtype.name, "native")
            if served is None or dtype in served:
                yield Row(name, dtype.name, "decomposed")
    if entry.smooth is not None:
        for dtype in entry.dtypes:
            if dtype in dt.INEXACT:
                yield Row(name, dtype.name, "gradient")


@cache
def _decomposed_dtypes() -> dict[str, frozenset[DType]]:
    """Return the dtypes of the core's decompositions that are for some dtypes only."""
    return {
        entry.spec.name: entry.dtypes
        for table in catalogue.decompositions()
        for entry in table
        if entry.dtypes is not None
    }


def cases_of(entry: CaseEntry, row: Row, seed: int, *, blind: bool = False) -> Sequence[Case]:
    """Return the cases of a row; ``blind``: without the outputs that they expect.

    Huge inputs try how a kernel divides its work; decompositions leave that to primitives. They
    make the same calls in all dtypes, so that each dtype but the leading one gets a part of the
    cases, a different one.
    """
    if row.mode == "gradient":
        corpus = Corpus(dt.of(row.dtype), seed, f"{entry.spec.name}:gradient")
        near = list(entry.gradient_cases(corpus))
        return list(entry.checked((*near, *far_cases(entry, corpus, near))))
    every = _latest.of(entry, row.dtype, seed, blind=blind)
    if row.mode == "native":
        return every
    fit = [case for case in every if not (case.period or case.native)]
    if row.dtype == entry.leading.name or len(fit) <= _PART:
        return fit
    step = -(-len(fit) // _PART)
    return fit[zlib.crc32(row.dtype.encode()) % step :: step]


_TOLD: Final = 1 << 20  # bytes of inputs


class _Latest:
    """The cases of one kernel and dtype: native and decomposed rows, which are neighbours, agree.

    They see the same inputs.
    """

    def __init__(self) -> None:
        self._made: tuple[CaseEntry | None, str, int, bool] = None, "", 0, False
        self._cases: Sequence[Case] = ()

    def of(self, entry: CaseEntry, dtype: str, seed: int, *, blind: bool) -> Sequence[Case]:
        """Return all cases, and their relatives."""
        if self._made[0] is not entry or self._made[1:] != (dtype, seed, blind):
            self._cases = ()  # their memory is free before others are made
            own_cases = list(all_cases(entry, Corpus(dt.of(dtype), seed, entry.spec.name)))
            made = entry.checked((*own_cases, *relatives(entry, own_cases)))
            self._cases = tuple(without_expected(case) if blind else case for case in made)
            self._made = entry, dtype, seed, blind
        return self._cases


_latest: Final = _Latest()


def is_told(case: Case) -> bool:
    """Return whether results of a case are told to another process: not if they are large."""
    return bool(sum(array.nbytes for array in flat(case.inputs)) <= _TOLD)


def without_expected(case: Case) -> Case:
    """Return a case without the outputs that it expects, if it is told; errors are left."""
    known = isinstance(case.expected, tuple | Relation) and is_told(case)
    return replace(case, expected=None) if known else case


def fingerprint(
    chosen: Iterable[Row], known: Mapping[str, CaseEntry], seed: int, jobs: int = 1
) -> tuple[int, str]:
    """Return how many cases the rows have, and a SHA-256 over their ids in order.

    That makes all cases, half a minute's work for all rows; so many processes share it. Then
    ``known`` are the entries of what is installed.
    """
    listed = list(chosen)
    if jobs == 1 or len(listed) < _WORTH_SHARING:
        return _hashed(_ids(known, listed, seed))
    parts = [list(some) for _, some in groupby(listed, key=lambda row: (row.kernel, row.dtype))]
    with spawned_pool(jobs, signal, (SIGINT, SIG_IGN)) as pool:
        return _hashed(
            chain.from_iterable(pool.map(partial(_listed_ids, seed), parts, chunksize=8))
        )


def _hashed(ids: Iterable[str]) -> tuple[int, str]:
    digest = hashlib.sha256()
    count = 0
    for case_id in ids:
        digest.update(case_id.encode())
        count += 1
    return count, digest.hexdigest()


def _ids(known: Mapping[str, CaseEntry], chosen: Iterable[Row], seed: int) -> Iterator[str]:
    for row in chosen:
        for case in cases_of(known[row.kernel], row, seed):
            yield f"{row.kernel}\0{row.dtype}\0{row.mode}\0{case.id}\n"


def _listed_ids(seed: int, chosen: Sequence[Row]) -> list[str]:
    return list(_ids(_installed(), chosen, seed))


@cache
def _installed() -> dict[str, CaseEntry]:
    return entries(extension_tables())

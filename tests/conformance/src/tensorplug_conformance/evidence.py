"""Collections of tests that others wrote: evidence beside the suite's own, never a condition.

An installed package offers one by an entry point in the group ``tensorplug.evidence``: an object
with the members of ``Collection``, or the module that has them. The suite runs it as it runs its
own items, in worker processes with a time limit each, and without another backend to fall back to.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, runtime_checkable

import tensorplug as tp
from tensorplug.plugin import pip_install

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug_conformance.session import Session
    from tensorplug_conformance.verdicts import Item, Outcome


GROUP: Final = "tensorplug.evidence"
Status = Literal["pass", "known", "unsupported", "fail"]
_WORD: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_LONGEST: Final = 500  # characters of a reason
STATUSES: Final = ("pass", "known", "unsupported", "fail")


class EvidenceError(Exception):
    """There is no such collection, or it is none; the message says why, on one line."""


@runtime_checkable
class Collection(Protocol):
    """Tests that run on the active backend.

    ``TITLE``: a few words. ``ABOUT``: who wrote the tests, and what they compare, in a sentence
    or two. ``versions``: of the distributions that decide the result, by name. ``tests``: the
    names of all tests, by group, whose name is a word. ``run``: runs one, and returns its status
    and the reason:

    - ``pass``;
    - ``fail``: the backend is wrong, or lacks something;
    - ``known``: the test cannot pass on any backend, for the reason that is returned;
    - ``unsupported``: the package cannot ask it, on whatever backend.

    An exception of ``run`` is a failure.
    """

    TITLE: str
    ABOUT: str

    def versions(self) -> Mapping[str, str]:
        """Return the versions of distributions, by name."""

    def tests(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the tests of each group."""

    def run(self, group: str, name: str) -> tuple[Status, str]:
        """Run a test; return its status, and why."""


@dataclass(slots=True)
class EvidenceVerdict:
    """The verdict on one test. ``kernels``: how many kernels of the backend ran."""

    status: str
    why: str = ""
    kernels: int = 0
    seconds: float = 0.0


@cache
def load(name: str) -> Collection:
    """Return an installed collection.

    Raises:
        EvidenceError: none of that name is installed, two are, or it does not load.

    """
    entries = metadata.entry_points(group=GROUP)
    by_value = {entry.value: entry for entry in entries if entry.name == name}
    if not by_value:
        names = ", ".join(sorted({entry.name for entry in entries})) or "none"
        hint = f": {pip_install('tensorplug-onnx')}" if name == "onnx" else ""
        raise EvidenceError(
            f"no installed package has tests called {name!r}{hint}; installed are: {names}"
        )
    if len(by_value) > 1:
        raise EvidenceError(f"several packages have tests called {name!r}: {', '.join(by_value)}")
    ((value, entry),) = by_value.items()
    try:
        collection = entry.load()
    except Exception as error:
        reason = " ".join(str(error).split())
        raise EvidenceError(
            f"the tests {name!r} ({value}) do not load: {type(error).__name__}: {reason}"
        ) from error
    if not isinstance(collection, Collection):
        lacks = [part for part in _MEMBERS if not hasattr(collection, part)]
        raise EvidenceError(f"{value} is no collection of tests: it lacks {', '.join(lacks)}")
    return collection


_MEMBERS: Final = ("TITLE", "ABOUT", "versions", "tests", "run")


def items_of(name: str) -> list[Item]:
    """Return the items of a collection, in its order.

    Raises:
        EvidenceError: as ``load`` does, or the collection is empty.

    """
    tests = load(name).tests()
    for group in tests:
        if not _WORD.fullmatch(group):
            raise EvidenceError(
                f"the tests {name!r}: {group!r} is not the name of a group: use letters and "
                "digits, with . _ and - between them"
            )
    items: list[Item] = [
        ("evidence", name, group, test) for group, several in tests.items() for test in several
    ]
    if not items:
        raise EvidenceError(f"the tests {name!r} are none")
    return items


def described(name: str) -> dict[str, Any]:
    """Return what the report says of a collection, apart from its results."""
    collection = load(name)
    return {
        "name": name,
        "title": collection.TITLE,
        "about": collection.ABOUT,
        "versions": dict(collection.versions()),
    }


def run(session: Session, name: str, group: str, test: str) -> EvidenceVerdict:
    """Return the verdict on one test."""
    began = time.perf_counter()
    with session.entered(), tp.trace_dispatch() as trace:
        try:
            status, why = load(name).run(group, test)
        except Exception as error:  # noqa: BLE001  # whatever a backend raises is a verdict
            status, why = "fail", f"{type(error).__name__}: {error}"
    if status not in STATUSES:
        why = f"the collection gives {status!r}, which is none of {', '.join(STATUSES)}"
        status = "fail"
    why = " ".join(why.split())[:_LONGEST]
    kernels = sum(call.how == "native" for call in trace.calls)
    return EvidenceVerdict(status, why, kernels, round(time.perf_counter() - began, 4))


def assembled(described: Iterable[dict[str, Any]], outcomes: Iterable[Outcome]) -> list[Any]:
    """Return the part of the report: each collection with the results of its tests."""
    tests: dict[str, list[dict[str, Any]]] = {}
    for outcome in outcomes:
        _, name, group, test = outcome.item
        lost = {"status": "fail", "why": outcome.error, "kernels": 0, "seconds": 0.0}
        verdict = lost if outcome.verdict is None else outcome.verdict
        tests.setdefault(name, []).append({"group": group, "test": test, **verdict})
    return [{**one, "tests": tests.get(one["name"], [])} for one in described]

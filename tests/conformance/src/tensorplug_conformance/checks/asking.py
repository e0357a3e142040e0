"""Levels 2 and 3: cases asked again by a plain process, which the backend cannot tell apart."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.trying.plain import PlainProcessError, ask, drawn, misjudged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_PARTS: Final = {2: 3, 3: 6}  # of a level, for several workers
_FAULTS: Final = 5  # that are told


def _again(
    level: int, part: int, parts: int, target: Target, opened: Callable[[], Session]
) -> str:
    if target.factory is not None:
        raise NotMeasuredError("this backend is not an installed plugin")
    session = opened()
    known = sorted(entries(extension_tables()).items())[part::parts]
    asked = drawn(session, dict(known), level, target.draw)
    lacking = [name for name, _ in known if session.registration(name) is None]
    try:
        answers, native = ask(target.backend, asked, target.patience, lacking)
    except PlainProcessError as error:
        raise CheckFailedError(f"a plain process: {error}") from None
    if native:
        raise CheckFailedError(
            f"a plain process has kernels that are hidden here: {', '.join(native)}"
        )
    if asked and not answers:
        raise CheckFailedError("a plain process: no call ended in time")
    faults = list(misjudged(session, asked, answers))
    if faults:
        shown = "; ".join(faults[:_FAULTS])
        raise CheckFailedError(
            f"a plain process gave other results (--again-seed {target.draw}, "
            f"{len(faults)} of {len(answers)} cases): {shown}"
        )
    late = len(asked) - len(answers)
    untried = f"; no time was left for {late} more" if late else ""
    return f"{len(answers)} cases, --again-seed {target.draw}{untried}"


CHECKS: Final = tuple(
    Check(
        level,
        f"asked again by a plain process, part {part + 1} of {parts}",
        partial(_again, level, part, parts),
    )
    for level, parts in _PARTS.items()
    for part in range(parts)
)

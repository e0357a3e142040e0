"""A registry: a folder of signed reports, and the table of what they prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.attesting import statement
from tensorplug_conformance.reporting import report
from tensorplug_conformance.reporting.quoting import for_markdown
from tensorplug_conformance.reporting.rendering.badge import standing
from tensorplug_conformance.reporting.rendering.support import table
from tensorplug_conformance.reporting.verification import verify

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tensorplug_conformance.attesting.statement import Signature

KEYS: Final = "keys"
_HEAD: Final = ("backend", "plugin", "device", "result", "suite", "signed by", "on", "until")


@dataclass(frozen=True, slots=True)
class Entry:
    """A report of the registry, and what is wrong with it; ``owner``: the name of the key."""

    place: str
    faults: Sequence[str]
    content: Mapping[str, Any]
    owner: str = ""
    signature: Signature | None = None


def entries(folder: Path, keys: Path) -> list[Entry]:
    """Return all reports below ``folder``, each checked with the keys of a folder, ``*.pub``.

    Raises:
        SignatureError: a key is none, or there are no keys.

    """
    known = {path.stem: statement.public_key(path) for path in sorted(keys.glob("*.pub"))}
    if not known:
        raise statement.SignatureError(f"{keys} has no keys, *.pub")
    return [_entry(folder, path, known) for path in sorted(folder.rglob(report.NAME))]


def _entry(folder: Path, path: Path, known: Mapping[str, Any]) -> Entry:
    place = path.parent.relative_to(folder).as_posix()
    try:
        content = report.parse(path)
    except report.ReportError as error:
        return Entry(place, [str(error)], {})
    faults = verify(content)
    for owner, key in known.items():
        signature, wrong = statement.checked(path, key)
        if signature is not None:
            editable = ["the plugin was installed as editable"] * signature.editable
            return Entry(place, [*faults, *wrong, *editable], content, owner, signature)
    return Entry(place, [*faults, "no key of the registry has signed it"], content)


def rendered(found: Sequence[Entry]) -> str:
    """Return the table of the reports that hold, in Markdown."""
    lines = []
    for one in found:
        if one.faults or one.signature is None:
            continue
        backend = one.content["backend"]
        lines.append(
            [
                for_markdown(backend["name"]),
                for_markdown(f"{backend.get('distribution', '?')} {backend.get('version', '?')}"),
                for_markdown(backend.get("device", "?")),
                f"[{for_markdown(standing(one.content))}]({one.place}/{report.NAME})",
                one.content["suite"]["version"],
                for_markdown(one.owner),
                f"{one.signature.at:%Y-%m-%d}",
                f"{one.signature.until:%Y-%m-%d}",
            ]
        )
    return "\n".join(["# Certified backends", "", *table(_HEAD, lines), ""])

"""Forms of a report for people and machines: a page, a summary, a badge, JUnit's XML.

Each module makes one form, from the report's data alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.reporting.rendering.badge import badge
from tensorplug_conformance.reporting.rendering.junit import junit
from tensorplug_conformance.reporting.rendering.page import page
from tensorplug_conformance.reporting.rendering.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["FORMS", "render"]

FORMS: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "badge.svg": badge,
    "junit.xml": junit,
    "report.html": page,
    "report.md": summary,
}
"""What a report is rendered to, by the name of the file."""


def render(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write every form of ``report`` into ``folder``; return the paths."""
    written = []
    for name, form in FORMS.items():
        path = folder / name
        path.write_text(form(report), "utf-8", errors="backslashreplace")
        written.append(path)
    return written

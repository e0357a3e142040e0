"""A badge for a README: which level a backend conforms at."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.reporting.report import registered

if TYPE_CHECKING:
    from collections.abc import Mapping


_GREEN: Final = "#2c7a3f"
_RED: Final = "#b3261e"
_GREY: Final = "#5f6368"
_BLUE: Final = "#1f6587"  # within a vendor's bounds
_LETTER: Final = 6.6  # pixels, of Verdana at 11; textLength makes it exact
_PAD: Final = 10
PARTIAL_RUN: Final = "partial run"
_AGAINST: Final = ("fail", "fallback", "missing", "expected fail")


def standing(report: Mapping[str, Any]) -> str:
    """Return the level that a report proves, in a few words.

    A level alone is proved strictly; one within a vendor's bounds is called so. What proves
    none, but the kernels that the backend registers, is called partial.
    """
    level = f"level {report['level']}"
    if report["conformant"] is None:
        if not registered(report):
            return PARTIAL_RUN
        level = "partial"
        if not report["vendor"]["blocked_by"]:
            by_vendor = ", vendor" if report["blocked_by"] else ""
            return f"partial ({registered(report)}{by_vendor})"
    if report["conformant"]:
        return level
    if report["vendor"]["conformant"]:
        return f"{level} (vendor)"
    count = sum(report["totals"]["rows"].get(status, 0) for status in _AGAINST)
    failing = f"{level}: {count} rows fail" if count else ""
    return failing or ("partial: not certified" if registered(report) else "not conformant")


def colour(report: Mapping[str, Any]) -> str:
    """Return the colour of what ``standing`` says."""
    if report["conformant"] is None:
        return _RED if registered(report) and report["vendor"]["blocked_by"] else _GREY
    if report["conformant"]:
        return _GREEN
    return _BLUE if report["vendor"]["conformant"] else _RED


def badge(report: Mapping[str, Any]) -> str:
    """Return an SVG image of one line."""
    left, right = "tensorplug conformance", standing(report)
    widths = [round(len(text) * _LETTER + 2 * _PAD) for text in (left, right)]
    whole = sum(widths)
    label = escape(f"{left}: {right}")
    texts = []
    for text, width, at in ((left, widths[0], 0), (right, widths[1], widths[0])):
        texts.append(
            f'<text x="{at + width / 2}" y="14" textLength="{width - 2 * _PAD}">'
            f"{escape(text)}</text>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
        f'<clipPath id="r"><rect width="{whole}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{widths[0]}" height="20" fill="#3c4043"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="20" fill="{colour(report)}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,sans-serif" '
        f'font-size="11">{"".join(texts)}</g></svg>\n'
    )

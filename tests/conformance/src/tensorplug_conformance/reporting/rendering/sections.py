"""Sections of the support page that others write: they lie between marks and are kept.

``tensorplug-conformance support`` rewrites the page from reports. Commands for a single backend
put other measurements between two comments of the page, which keeps them.
"""

from __future__ import annotations

import re
from typing import Final

PLACE: Final = "## Kernels\n"  # sections come before this line
_BEGIN: Final = "<!-- section {}: begin -->\n"
_END: Final = "<!-- section {}: end -->\n"
_SECTION: Final = re.compile(
    _BEGIN.format("(?P<name>[a-z]+)") + ".*?" + _END.format("(?P=name)"), re.DOTALL
)


def kept(page: str) -> str:
    """Return the sections of ``page`` with their marks, an empty line after each."""
    return "".join(f"{section[0]}\n" for section in _SECTION.finditer(page))


def inserted(page: str, name: str, text: str) -> str:
    """Return ``page`` with ``text`` as its section ``name``, in place of an earlier one.

    Raises:
        ValueError: ``page`` is not a support page.

    """
    section = f"{_BEGIN.format(name)}\n{text.strip()}\n\n{_END.format(name)}"
    for known_section in _SECTION.finditer(page):
        if known_section["name"] == name:
            return page[: known_section.start()] + section + page[known_section.end() :]
    before, place, after = page.partition(f"\n{PLACE}")
    if not place:
        raise ValueError(f"the page has no line {PLACE.strip()!r}, before which sections go")
    return f"{before}\n{section}{place}{after}"

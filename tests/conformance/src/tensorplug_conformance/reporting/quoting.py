"""Text from reports and backends, made harmless for terminals and for Markdown.

HTML and SVG are quoted by Jinja2 and ``html.escape``, XML by ``ElementTree``, Python by ``repr``.
"""

from __future__ import annotations

import re
from typing import Final

from rich.markup import escape

_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>|&~!#])")


def printable(text: str) -> str:
    """Return ``text`` with escapes in place of the characters that control a device.

    Newlines stay. A terminal obeys the others: they move its cursor, or rename its window.
    """
    return "".join(
        character
        if character == "\n" or character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def for_terminal(text: object) -> str:
    """Return ``text`` such that rich prints it as it is, without control characters."""
    return escape(printable(str(text)))


def for_markdown(text: object) -> str:
    """Return ``text`` as one line that Markdown shows as it is, in a table too."""
    return _MARKDOWN.sub(r"\\\1", printable(" ".join(str(text).split("\n"))))

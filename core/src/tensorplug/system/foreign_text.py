"""Text from plugins, for messages: it may hide terminal escapes, and making it may fail."""

from __future__ import annotations

from typing import Final

# Characters of a text that a message repeats: its beginning and its end. The error has all.
_FIRST: Final = 3000
_LAST: Final = 1000


def shortened(text: str) -> str:
    """Return ``text``, or of a long one the beginning and the end, and how much is missing.

    Examples:
        >>> shortened("x" * 100_000)[2997:-997]
        'xxx ... (96,000 more characters) ... xxx'

    """
    more = len(text) - _FIRST - _LAST
    if more <= 0:
        return text
    return f"{text[:_FIRST]} ... ({more:,} more characters) ... {text[-_LAST:]}"


def printable(text: str) -> str:
    r"""Return ``text`` with every character that could act on a terminal escaped.

    Control characters, those that change the direction of writing, and lone surrogates become
    ``\x1b``, ``\u202e``, ``\udc80``; line ends and tabs remain.

    Examples:
        >>> print(printable("\x1b[2Jno driver"))
        \x1b[2Jno driver

    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in "\n\t"
        else character.encode("unicode_escape").decode()
        for character in text
    )


def message_of(error: BaseException) -> str:
    """Return the message of an error of any origin; never raise."""
    try:
        return printable(shortened(str(error)))
    except KeyboardInterrupt:
        raise
    except BaseException as raised:  # noqa: BLE001  # SystemExit must not end the program
        return f"<its __str__ raised {type(raised).__name__}>"


def cause_of(error: BaseException) -> str:
    """Return class and message of an error: ``OSError: no driver``."""
    return f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")


def shown(value: object) -> str:
    """Return the ``repr`` of a value of any origin; never raise."""
    try:
        return printable(shortened(repr(value)))
    except KeyboardInterrupt:
        raise
    except BaseException as raised:  # noqa: BLE001  # SystemExit must not end the program
        return f"<its __repr__ raised {type(raised).__name__}>"

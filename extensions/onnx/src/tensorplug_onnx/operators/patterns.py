r"""Regular expressions of RE2 as those of Python.

Both have the same core. What one of them lacks, or reads in another way, is translated or refused:

- classes such as ``\d`` are those of ASCII, as RE2's; ``[[:alpha:]]`` becomes ``[a-zA-Z]``;
- ``\z``, ``\Q...\\E``, ``(?<name>...)`` and ``\x{...}`` have another form in Python;
- references and lookaround, which RE2 does not have, are errors;
- Unicode properties (``\pL``), ``\C`` and ``(?U)`` are not supported.
"""

from __future__ import annotations

import re
from typing import Final

from tensorplug_onnx.errors import UnsupportedError

_CLASSES: Final = {
    "alnum": r"0-9A-Za-z", "alpha": r"A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": r"0-9", "graph": r"!-~", "lower": r"a-z",
    "print": r" -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": r"A-Z",
    "word": r"0-9A-Za-z_", "xdigit": r"0-9A-Fa-f",
}  # fmt: skip
_ESCAPES: Final = {
    "z": r"\Z", "A": r"\A", "b": r"(?a:\b)", "B": r"(?a:\B)",
    "d": "[0-9]", "D": "[^0-9]", "w": "[0-9A-Za-z_]", "W": "[^0-9A-Za-z_]",
    "s": r"[\t\n\f\r ]", "S": r"[^\t\n\f\r ]",
}  # fmt: skip
_INSIDE: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_TOKEN: Final = re.compile(
    r"""(?xs)
    \\Q(?P<literal>.*?)(?:\\E|\Z)
    | \\x\{(?P<code>[0-9A-Fa-f]+)\}
    | \\(?P<escape>.)
    | \(\?(?P<group>P?<[A-Za-z_]\w*>|:|[a-zA-Z]*(?:-[a-zA-Z]+)?[:)]|.)
    | (?P<repeat>[*+?]|\{\d+(?:,\d*)?\})(?P<more>[*+?]?)
    | (?P<bracket>\[\^?)
    | (?P<other>.)
    """
)
_MEMBER: Final = re.compile(
    r"(?s)\[:(?P<inverse>\^?)(?P<name>\w+):\]|\\x\{(?P<code>[0-9A-Fa-f]+)\}"
    r"|\\(?P<escape>.)|(?P<other>.)"
)


def to_python(pattern: str) -> str:
    r"""Return an RE2 pattern as one for Python's ``re``.

    Raises:
        ValueError: RE2 does not have what the pattern uses.
        UnsupportedError: RE2 has it, and Python does not.

    Example:
        >>> to_python(r"[[:digit:]]+\z")
        '[0-9]+\\Z'

    """
    out, at = [], 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        assert match is not None  # any character is a token
        at = match.end()
        kind = match.lastgroup
        if match["literal"] is not None:
            out.append(re.escape(match["literal"]))
        elif match["code"] is not None:
            out.append(re.escape(chr(int(match["code"], 16))))
        elif match["escape"] is not None:
            out.append(_ESCAPES.get(match["escape"]) or _escaped(match["escape"], pattern))
        elif match["group"] is not None:
            out.append(_group(match["group"], pattern))
        elif kind in ("repeat", "more"):
            if match["more"] in ("*", "+"):
                raise ValueError(f"pattern {pattern!r}: RE2 has no repetition of repetitions")
            out.append(match[0])
        elif match["bracket"] is not None:
            text, at = _bracket(pattern, at)
            out.append(match["bracket"] + text)
        else:
            out.append(r"\Z" if match[0] == "$" and not _has_lines(pattern) else match[0])
    return "".join(out)


def _has_lines(pattern: str) -> bool:
    return re.search(r"\(\?[a-ln-z]*m", pattern) is not None


def _escaped(character: str, pattern: str) -> str:
    if character.isdigit() and character != "0":
        raise ValueError(f"pattern {pattern!r}: RE2 has no references to groups")
    if character in "pPCX":
        raise UnsupportedError(f"pattern {pattern!r}: \\{character} of RE2 is not supported")
    if character.isalnum() and character not in "0aftnrvx":
        raise ValueError(f"pattern {pattern!r}: RE2 has no \\{character}")
    return "\\" + character


def _group(text: str, pattern: str) -> str:
    if text.endswith(">"):
        return f"(?P{text.removeprefix('P')}"
    if text in (":", ")"):
        return f"(?{text}"
    if text[-1:] not in (":", ")"):
        raise ValueError(f"pattern {pattern!r}: RE2 has no (?{text}")
    flags = set(text[:-1]) - {"-"}
    if not flags <= set("imsU"):
        raise ValueError(f"pattern {pattern!r}: RE2 has no flags (?{text}")
    if "U" in flags:
        raise UnsupportedError(f"pattern {pattern!r}: flag U of RE2 is not supported")
    return f"(?{text}"


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """Return the rest of a class from behind its bracket, and where it ends."""
    out: list[str] = []
    while at < len(pattern):
        match = _MEMBER.match(pattern, at)
        assert match is not None  # any character is a member
        at = match.end()
        if match["name"] is not None:
            if match["inverse"] or match["name"] not in _CLASSES:
                raise UnsupportedError(f"pattern {pattern!r}: class {match[0]} is not supported")
            out.append(_CLASSES[match["name"]])
        elif match["code"] is not None:
            out.append(re.escape(chr(int(match["code"], 16))))
        elif match["escape"] is not None:
            escape = match["escape"]
            if escape in "DWS":
                # Python's are the complements of its ASCII classes only under a flag.
                out.append({"D": r"\x00-/:-\U0010ffff"}.get(escape) or _complement(escape))
            else:
                out.append(_INSIDE.get(escape) or _escaped(escape, pattern))
        elif match["other"] == "]" and out:
            return "".join(out) + "]", at
        else:
            out.append("\\" + match["other"] if match["other"] in "[]&~|" else match["other"])
    raise ValueError(f"pattern {pattern!r}: a class has no end")


def _complement(escape: str) -> str:
    if escape == "W":
        return r"\x00-/:-@\[-\^`{-\U0010ffff"
    return r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff"

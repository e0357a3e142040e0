"""The code of a guide, run as its reader would run it, and its output."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from typing import Any

_BLOCK = re.compile(r"(?ms)^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?")


def blocks(guide: str) -> list[tuple[str, str]]:
    """Return the pieces of Python of a guide, each with the output that stands below it."""
    return _BLOCK.findall(guide)


def run(code: str, names: dict[str, Any], file: str = "train.py") -> str:
    """Run a piece in ``names``; return what it prints, and the error that ends it, if one does.

    Its lines are those of ``file``, so that messages name them.
    """
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, file, "exec"), names)
        except Exception as error:  # noqa: BLE001  # it is what the guide shows
            print(f"{type(error).__module__}.{type(error).__name__}: {error}")
        finally:
            del linecache.cache[file]
    return "".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines())


def comparable(text: str) -> list[str]:
    """Return the lines without what differs from run to run: times, shares, bars, their order.

    Nor with version numbers, so that a guide outlives a release.
    """
    text = re.sub(r"\d+\.\d+\.\d+|\d+\.\d{3}\b|\d+\.\d%|[█░]+(?! in )", "#", text)
    return sorted(re.sub(r"[ ─#]+", " ", line).strip() for line in text.splitlines())

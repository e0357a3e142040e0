"""Whether a wheel that says it is for all platforms holds compiled code."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from typing import Final

_LIBRARY: Final = re.compile(r"\.(so(\.\d+)*|dylib|dll|pyd)$")


def misplaced_libraries(name: str) -> list[str]:
    """Return the libraries of an installed distribution whose wheel is tagged for any platform."""
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return []
    tags = re.findall(r"^Tag: (.*)$", installed.read_text("WHEEL") or "", re.MULTILINE)
    if not any(tag.strip().endswith("-any") for tag in tags):
        return []
    return [str(path) for path in installed.files or () if _LIBRARY.search(path.name)]

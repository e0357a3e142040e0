"""Writes the pages that say what the code says: those of specs and of gradients.

They are not in git. ``make site`` writes them before it reads the pages, ``make docs`` alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS: Final = Path(__file__).parents[1]


def write() -> None:
    """Write the pages into ``docs``."""
    import gradient_page  # the two import the suite, which takes its time
    import spec_page

    pages = {"specs.md": spec_page.page(), "gradients_table.md": gradient_page.page()}
    for name, page in pages.items():
        path = DOCS / name
        if not path.is_file() or path.read_text("utf-8") != page:  # else Sphinx reads it again
            path.write_text(page, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", lambda _app: write())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent))  # the tests' lists
    write()

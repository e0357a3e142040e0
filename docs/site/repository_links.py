"""Links from a page to a file or folder that the site does not have lead to the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT: Final = Path(__file__).resolve().parents[2]
_LINK: Final = re.compile(r"(?<!!)(\[[^][]*(?:\[[^][]*\][^][]*)*\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_PICTURES: Final = {".png", ".svg"}


def _rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))

    def of_link(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        path = (page.parent / target).resolve()
        if not path.is_relative_to(_ROOT) or not path.exists():
            return match[0]  # the build reports it
        if path.is_dir() and (path / "index.md").exists() and _on_site(app, path / "index.md"):
            return f"{before}{target.rstrip('/')}/index.md{after}"
        if path.is_dir() and (path / "README.md").exists() and _on_site(app, path / "README.md"):
            return f"{before}{target.rstrip('/')}/README.md{after}"
        if _on_site(app, path):
            return match[0]
        kind = "tree" if path.is_dir() else "blob"
        place = f"{kind}/main/{path.relative_to(_ROOT).as_posix()}"
        return f"{before}{app.config.urls['Repository']}/{place}{after}"

    source[0] = _LINK.sub(of_link, source[0])


def _on_site(app: Sphinx, path: Path) -> bool:
    if path.is_dir():
        return False
    if path.suffix in _PICTURES:
        return True
    return app.project.path2doc(path) in app.project.docnames


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("urls", {}, "env", dict, "The project's addresses, by name.")
    app.connect("source-read", _rewrite)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

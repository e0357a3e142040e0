"""Plugins as a package manager installs them: a module beside the metadata of a distribution."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def install(
    folder: Path, source: str, *, group: str = "backends", name: str = "acme", requires: str = ""
) -> None:
    """Install the plugin ``name``, version 1.0, in ``folder``, which is or becomes a site folder.

    Args:
        folder: is made if it does not exist.
        source: of the plugin's module, ``acme_{name}``; indented or not.
        group: of entry points, after ``tensorplug.``.
        name: of the entry point; the distribution is ``tensorplug-{name}``.
        requires: what the distribution requires, such as ``"tensorplug<0.0.1"``.

    """
    info = folder / f"tensorplug_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: tensorplug-{name}\nVersion: 1.0\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    (info / "METADATA").write_text(metadata)
    (info / "entry_points.txt").write_text(f"[tensorplug.{group}]\n{name} = acme_{name}\n")
    (folder / f"acme_{name}.py").write_text(textwrap.dedent(source))

"""``python -m tensorplug new``: a distribution that works at once, to be changed step by step.

The templates are such distributions themselves, by the name of ``acme``. Those that
``plugins_example`` holds have the same sources; a test compares them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tensorplug.command_line import new_names
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from tensorplug.command_line.new_names import Kind, Names

__all__ = ["LICENSE", "Project", "advice", "create", "rendered"]

LICENSE: Final = "Apache-2.0"  # as the templates have it

_CACHE: Final = re.compile(r"__pycache__|\..*_cache")  # pip compiles what it installs, for one
_SPDX: Final = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")


@dataclass(frozen=True, slots=True)
class Project:
    """What was written, and where."""

    kind: Kind
    names: Names
    folder: Path
    written: tuple[str, ...]


def create(name: str, kind: Kind, folder: Path | None, author: str, license: str) -> Project:
    """Write a new distribution into ``folder``, which is made, or into one named like it.

    Raises:
        ArgumentError: the name, the author or the licence is refused, or the folder holds
            something or cannot be written.

    """
    names = new_names.checked(name, kind)
    author = author or f"The {names.distribution} developers"
    if not author.isprintable() or set(author) & set('"\\'):
        raise ArgumentError(f"author {author!r} holds quotes, backslashes or control characters")
    if not _SPDX.fullmatch(license):
        raise ArgumentError(
            f"{license!r} is no licence in SPDX's form, such as MIT or 'MIT OR Apache-2.0'; "
            "one of your own is LicenseRef-Proprietary"
        )
    folder = Path(names.distribution) if folder is None else folder
    texts = rendered(kind, names, author, license)
    try:
        _write(texts, folder)
    except OSError as error:
        raise ArgumentError(f"{folder} cannot be written: {error}") from error
    return Project(kind, names, folder, tuple(texts))


def rendered(kind: Kind, names: Names, author: str, license: str = LICENSE) -> dict[str, str]:
    """Return the files of a distribution, by their paths in it."""
    words = {
        "The tensorplug-acme developers": author,
        LICENSE: license,
        "tensorplug-acme": names.distribution,
        "tensorplug_acme": names.package,
        "Acme": names.title,
        "ACME": names.identifier.upper(),
        "acme": names.name if kind == "backend" else names.identifier,
    }
    templates = files("tensorplug.command_line") / "templates" / kind
    return {
        _replaced(path, words): _replaced(text, words) for path, text in sorted(_texts(templates))
    }


def _replaced(text: str, words: Mapping[str, str]) -> str:
    """Replace all words in one go: nothing is searched in what was put in."""
    return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text)


def _texts(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for path in folder.iterdir():
        if path.is_dir():
            if not _CACHE.fullmatch(path.name):
                yield from _texts(path, f"{above}{path.name}/")
        else:
            yield f"{above}{path.name}", path.read_text("utf-8")


def _write(texts: Mapping[str, str], folder: Path) -> None:
    if folder.exists() and any(file.name != ".git" for file in folder.iterdir()):
        raise ArgumentError(
            f"{folder} is not empty, and nothing is overwritten; name another with --directory"
        )
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8", newline="\n")


def advice(project: Project) -> str:
    """Return what to do next, in lines for a terminal."""
    certify = {
        "backend": f"--backend {project.names.name} --level 2",
        "extension": f"--backend cpu --level 3 --kernels {project.names.title}",
    }[project.kind]
    return f"""\
{project.names.distribution}: {len(project.written)} files in {project.folder}. Try it:

  cd {project.folder}
  python -m pip install --editable ".[test]"
  python -m pytest
  tensorplug-conformance run {certify}

It computes with NumPy. `grep -rn REPLACE src` lists what to replace; README.md says how."""

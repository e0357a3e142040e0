"""``python -m tensorplug new``: writes a distribution that works at once, as a starting point.

The sources of a backend and of an extension come from two examples of the repository's
``plugins_example``; ``hatch_build.py`` copies them into wheels and sdists. The other files come
from ``templates``, where the project is called ``acme``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tensorplug.command_line import new_names
from tensorplug.command_line.new_names import Names
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from tensorplug.command_line.new_names import Kind


LICENSE: Final = "Apache-2.0"  # as the templates have it

_TEMPLATE: Final = Names.of("acme")
# The folder and the names of the example that has the sources of a kind of project.
_EXAMPLES: Final[Mapping[Kind, tuple[str, Names]]] = {
    "backend": (
        "minimal_backend",
        Names("minimal", "tensorplug-example-minimal", "tensorplug_example_minimal"),
    ),
    "extension": (
        "op_package",
        Names("swish", "tensorplug-example-swish", "tensorplug_example_swish"),
    ),
}
_LIKE: Final[Mapping[Kind, Kind]] = {"dialect": "backend", "c": "backend"}  # for files it lacks
_UNUSED: Final = {"c": "hatch_build.py"}  # of those: CMake builds the wheel
_CACHE: Final = re.compile(r"__pycache__|\..*_cache")  # pip compiles what it installs, for one
_SPDX: Final = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")


@dataclass(frozen=True, slots=True)
class Project:
    """A project that was written: its names, its folder, and the paths of its files."""

    kind: Kind
    names: Names
    folder: Path
    written: tuple[str, ...]


def create(name: str, kind: Kind, folder: Path | None, author: str, license: str) -> Project:
    """Write a new distribution into ``folder``; by default, one named like the distribution.

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
            f"{license!r} is not an SPDX licence expression, such as MIT or 'MIT OR Apache-2.0'; "
            "for a licence of your own, use LicenseRef-Proprietary"
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
    templates = files("tensorplug.command_line") / "templates"
    renamed = {
        "The tensorplug-acme developers": author,
        LICENSE: license,
        **_renaming(_TEMPLATE, names, kind),
    }
    documents = {
        _replaced(path, renamed): _replaced(text, renamed)
        for each in (_LIKE.get(kind), kind)
        if each
        for path, text in _texts(templates / each)
        if (kind not in _EXAMPLES and each == kind) or not path.startswith("src/")
        if path != _UNUSED.get(kind)
    }
    if kind in _EXAMPLES:
        example, example_names = _EXAMPLES[kind]
        sources = templates / kind / "src"
        if not sources.is_dir():  # in a checkout
            sources = Path(__file__).parents[4] / "plugins_example" / example / "src"
        renamed = _renaming(example_names, names, kind)
        for path, text in _texts(sources, "src/"):
            documents[_replaced(path, renamed)] = _replaced(text, renamed)
    return dict(sorted(documents.items()))


def _renaming(old: Names, new: Names, kind: Kind) -> dict[str, str]:
    """Return the new spelling of each spelling of a project's name."""
    return {
        old.distribution: new.distribution,
        old.package: new.package,
        old.title: new.title,
        old.identifier.upper(): new.identifier.upper(),
        old.name: new.identifier if kind == "extension" else new.name,
    }


def _replaced(text: str, words: Mapping[str, str]) -> str:
    """Replace all words in one pass, so that no replacement is searched again."""
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
        raise ArgumentError(f"{folder} is not empty; choose another folder with --directory")
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8", newline="\n")


def advice(project: Project) -> str:
    """Return the next steps, as text for a terminal."""
    certify = f"--backend {project.names.name} --level 2"
    if project.kind == "extension":
        certify = f"--backend cpu --level 3 --kernels {project.names.title}"
    now = {"dialect": "a C compiler", "c": "a thread in C"}.get(project.kind, "NumPy")
    return f"""\
{project.names.distribution}: {len(project.written)} files in {project.folder}. Try it:

  cd {project.folder}
  python -m pip install --editable ".[test]"
  python -m pytest
  tensorplug-conformance run {certify}

It computes with {now}. `grep -rn REPLACE src` lists what to replace; see README.md."""

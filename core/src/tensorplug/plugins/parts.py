"""Public names that extensions of the project bring: ``tensorplug.train`` is tensorplug-train."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorplug.errors import TensorplugError
from tensorplug.plugins import metadata
from tensorplug.plugins.selection import Selection
from tensorplug.system.distributions import EXTENSIONS, pip_install

if TYPE_CHECKING:
    from collections.abc import Iterable


def installed(part: str = "") -> list[str]:
    """Return the names that installed and enabled extensions bring.

    ``part``: ``"special."`` for those of ``tensorplug.special``; else the package's own.
    """
    enabled = set(Selection.read().names(metadata.EXTENSIONS))
    return [
        name.removeprefix(part)
        for name, path in EXTENSIONS.items()
        if name.rpartition(".")[0] == part.rstrip(".") and _extension(path) in enabled
    ]


def find(name: str) -> Any:
    """Return what is public as ``tensorplug.<name>`` once an extension is installed.

    Raises:
        AttributeError: the extension is not installed, or may not be used; it says what to do.

    """
    path = EXTENSIONS[name]
    extension = _extension(path)
    selection = Selection.read()
    if not _has(selection.candidates, extension):
        distribution = f"tensorplug-{extension}"
        raise AttributeError(
            f"tensorplug.{name} is in the distribution {distribution}, which is not installed. "
            f"Try: {pip_install(distribution)}",
            name=name,
        )
    try:
        selection.pick(metadata.EXTENSIONS, extension)
    except TensorplugError as error:  # disabled, of another version, or two of one name
        raise AttributeError(f"tensorplug.{name}: {error}", name=name) from error
    module, _, member = path.partition(":")
    imported = import_module(module)
    return getattr(imported, member) if member else imported


def _extension(path: str) -> str:
    return path.partition(":")[0].partition(".")[0].removeprefix("tensorplug_")


def _has(candidates: Iterable[metadata.Candidate], extension: str) -> bool:
    return any(
        candidate.group == metadata.EXTENSIONS and candidate.name == extension
        for candidate in candidates
    )

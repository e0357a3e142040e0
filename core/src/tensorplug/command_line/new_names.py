"""The names of a new project and its parts, and which names are refused."""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import dataclass
from importlib import metadata
from typing import Final, Literal

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.plugins import catalogue
from tensorplug.plugins.metadata import RESERVED
from tensorplug.system.distributions import FOLDERS

Kind = Literal["backend", "c", "dialect", "extension"]

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST: Final = 30
_PREFIX: Final = "tensorplug-"
_USED: Final = ("np", "tp")  # by the files of a new extension
_OURS: Final = tuple(name.removeprefix("tensorplug-") for name in FOLDERS)


@dataclass(frozen=True, slots=True)
class Names:
    """The spellings of a project's name."""

    name: str  # acme-gpu
    distribution: str  # tensorplug-acme-gpu
    package: str  # tensorplug_acme_gpu

    @classmethod
    def of(cls, name: str) -> Names:
        """Return the names of a new project."""
        distribution = f"{_PREFIX}{name}"
        return cls(name, distribution, distribution.replace("-", "_"))

    @property
    def identifier(self) -> str:
        """The name in Python: ``acme_gpu``."""
        return self.name.replace("-", "_")

    @property
    def title(self) -> str:
        """The name of a class and of a kernel: ``AcmeGpu``."""
        return "".join(part.capitalize() for part in self.name.split("-"))


def checked(name: str, kind: Kind) -> Names:
    """Return the names of a new project.

    Raises:
        ArgumentError: the name is invalid or taken.

    """
    _check_spelling(name)
    names = Names.of(name)
    if keyword.iskeyword(names.identifier):
        raise ArgumentError(f"{name!r} is a Python keyword; choose another name")
    if name in (*RESERVED, *_OURS):
        raise ArgumentError(f"{name!r} is a name of tensorplug itself; choose another")
    if kind == "extension":
        _check_op(names)
    else:
        _check_backend(names)
    if installed := list(metadata.distributions(name=names.distribution)):
        raise ArgumentError(
            f"{names.distribution} {installed[0].version} is already installed; choose another "
            f"name, or uninstall it first: pip uninstall {names.distribution}"
        )
    return names


def _check_spelling(name: str) -> None:
    """Check that a distribution and a Python module can have this name."""
    if _NAME.fullmatch(name) and len(name) <= _LONGEST and not name.startswith(_PREFIX):
        return
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").removeprefix(_PREFIX)
    hint = f" Try: {better}" if _NAME.fullmatch(better) and len(better) <= _LONGEST else ""
    raise ArgumentError(
        f"{name!r} is not a valid name: use at most {_LONGEST} lower-case letters and digits with "
        f"hyphens between them, a letter first, and leave out the prefix {_PREFIX!r}.{hint}"
    )


def _check_backend(names: Names) -> None:
    for backend in tp.backends():
        if backend.name.lower().replace("_", "-") == names.name:
            raise ArgumentError(
                f"backend {backend.name!r} is already installed, by {backend.distribution}; "
                f"choose another name, or uninstall it first: pip uninstall {backend.distribution}"
            )


def _check_op(names: Names) -> None:
    """Check that tensorplug and the project's own files use this name for nothing else."""
    if names.identifier in _USED or hasattr(builtins, names.identifier):
        raise ArgumentError(
            f"a function {names.identifier!r} would hide another object of this name in the new "
            "project; choose another name for the op"
        )
    kernels = {spec.name.lower() for spec in catalogue.catalogue()}
    known = names.title.lower() in kernels or hasattr(tp, names.identifier)
    if known or hasattr(tp.Tensor, names.identifier):
        raise ArgumentError(
            f"tensorplug already has {names.identifier!r}; choose another name for the op"
        )

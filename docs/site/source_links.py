"""Where the source of each entry of the reference stands in the repository, to the line.

A method of ``Tensor`` leads to the function that it is, and a name that ``tensorplug`` passes on
to the module that defines it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
import textwrap
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import tensorplug as tp
from tensorplug.system.distributions import EXTENSIONS

_ROOT: Final = Path(__file__).resolve().parents[2]


def place(module: str, name: str) -> str:
    """Return ``path#L1-L9`` of a name in a module; "" where Python itself defines it."""
    package, _, part = module.partition(".")
    brought = part.partition(".")[0] in EXTENSIONS  # no module has this name
    home: Any = attrgetter(part)(tp) if brought else importlib.import_module(module)
    *outer, last = name.split(".")
    for part in outer:
        home = getattr(home, part)
    value = inspect.getattr_static(home, last, None)
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, functools.cached_property):
        value = value.func
    value = inspect.unwrap(getattr(value, "__func__", value))
    owner = getattr(value, "__module__", "").partition(".")[0]
    ours = owner == package or owner.startswith(f"{package}_")  # an extension brings it
    written = inspect.isfunction(value) and value.__code__.co_name == value.__name__
    if ours and (written or inspect.isclass(value)):  # others come from a table, line by line
        lines, first = inspect.getsourcelines(value)
        return _place(inspect.getsourcefile(value), first, first + len(lines) - 1)
    for each in _homes(home, last):  # a field, a constant or another name of a type
        found = _assignment(each, last)
        if found:
            return _place(inspect.getsourcefile(each), found.lineno, found.end_lineno or 0)
    return ""


def _homes(home: Any, name: str) -> list[Any]:
    """Return the classes or modules that may assign a name, the nearest first."""
    if inspect.isclass(home):
        return list(inspect.getmro(home))
    package = home.__name__.partition(".")[0]
    value = getattr(home, name)
    others = [
        module
        for path, module in list(sys.modules.items())
        if path.startswith(f"{package}.") and vars(module).get(name) is value
    ]
    return [home, *others]


def _place(file: str | None, first: int, last: int) -> str:
    path = Path(file or "").resolve()
    if not path.is_relative_to(_ROOT):
        return ""
    return f"{path.relative_to(_ROOT).as_posix()}#L{first}-L{last}"


def _assignment(home: Any, name: str) -> ast.stmt | None:
    """Return the statement that gives a module or a class an attribute, with its line there."""
    try:
        lines, first = inspect.getsourcelines(home)
    except (OSError, TypeError):  # Python's own class
        return None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    body = tree.body[0].body if inspect.isclass(home) else tree.body  # type: ignore[attr-defined]
    for statement in body:
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        targets += [getattr(statement, "name", None)]  # type X = ...
        if any(getattr(target, "id", None) == name for target in targets if target):
            return ast.increment_lineno(statement, max(first - 1, 0))
    return None

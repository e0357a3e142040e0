"""The names in annotations of several modules, as one module that imports them all needs them."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet


class AnnotationNames:
    """Rewrites annotations for a stub and collects its imports.

    Args:
        defined: the class that the stub defines.
        shadowed: the names of its members. In the body of the class they hide builtins.

    """

    def __init__(self, defined: type, *, shadowed: AbstractSet[str]) -> None:
        self._defined = defined.__name__
        self._shadowed = shadowed
        self._found: dict[str, tuple[str, str]] = {}

    def imports(self) -> str:
        """Return the import statements for what ``resolve`` was given so far."""
        modules, members = [], defaultdict(list)
        for name, (home, own) in sorted(self._found.items()):
            renamed = "" if name == (own or home) else f" as {name}"
            if own:
                members[home].append(own + renamed)
            else:
                modules.append(f"import {home}{renamed}\n")
        froms = [f"from {home} import {', '.join(names)}\n" for home, names in members.items()]
        return "".join((*modules, *sorted(froms, key=lambda line: ("tensorplug" in line, line))))

    def resolve_all(self, signature: inspect.Signature, module: str) -> inspect.Signature:
        """Return the signature of a function of ``module`` with the stub's annotations."""
        parameters = [
            parameter.replace(
                annotation=self.resolve(
                    "Any" if parameter.annotation is parameter.empty else parameter.annotation,
                    module,
                )
            )
            for parameter in signature.parameters.values()
        ]
        returns = self.resolve(signature.return_annotation, module)
        return signature.replace(parameters=parameters, return_annotation=returns)

    def resolve(self, annotation: str, module: str) -> str:
        """Return an annotation of ``module`` with the names that the stub has for it."""
        tree = ast.parse(annotation, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = self._resolved(node.id, module)
        return ast.unparse(tree)

    def _resolved(self, name: str, module: str) -> str:
        if name == self._defined:
            return name
        origin = _origins(module).get(name)
        if origin is None:
            if name not in vars(builtins):
                raise NameError(f"{module} does not import {name!r}, which an annotation has")
            if name not in self._shadowed:
                return name
            self._found["builtins"] = ("builtins", "")
            return f"builtins.{name}"
        if name in self._shadowed or self._found.setdefault(name, origin) != origin:
            name = f"{name}_of_{module.rpartition('.')[2]}"
            self._found[name] = origin
        return name


@cache
def _origins(module: str) -> dict[str, tuple[str, str]]:
    """Return where the names of a module come from, imports for type checkers included.

    That is a module and a name in it, which is empty for a module itself.
    """
    return dict(_bindings(ast.parse(inspect.getsource(sys.modules[module])).body, module))


def _bindings(body: list[ast.stmt], module: str) -> Iterator[tuple[str, tuple[str, str]]]:
    for statement in body:
        match statement:
            case ast.If():  # if TYPE_CHECKING
                yield from _bindings(statement.body, module)
            case ast.Import(names):
                for alias in names:
                    yield alias.asname or alias.name, (alias.name, "")
            case ast.ImportFrom(home, names) if home is not None:
                for alias in names:
                    yield alias.asname or alias.name, (home, alias.name)
            case ast.ClassDef(name):
                yield name, (module, name)
            case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
                yield name, (module, name)

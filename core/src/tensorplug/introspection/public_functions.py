"""Public functions by name, and the calls of them in their own documentation."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType

__all__ = ["check_arguments", "example_call", "find", "names", "of_types"]

_PACKAGE: Final = __name__.partition(".")[0]
_SHORT: Final = "tp"  # as programs import the package, and examples call it

Arguments = tuple[list[Any], dict[str, Any]]


def names() -> list[str]:
    """Return the names of the public functions: ``["abs", ..., "nn.relu", ...]``."""
    package: Any = sys.modules[_PACKAGE]
    found = []
    for name in package.__all__:
        member = getattr(package, name)
        if isinstance(member, FunctionType):
            found.append(name)
        elif isinstance(member, ModuleType):
            public = getattr(member, "__all__", ())
            found += [f"{name}.{each}" for each in public if _is_function(member, each)]
    return found


def find(name: str) -> Callable[..., Any] | None:
    """Return the public function ``name``: ``"add"``, ``"nn.relu"`` or ``"tp.nn.relu"``."""
    place = name.removeprefix(f"{_SHORT}.").removeprefix(f"{_PACKAGE}.")
    part, _, last = place.rpartition(".")
    module: Any = sys.modules[_PACKAGE]
    if part:
        module = getattr(module, part, None) if part in module.__all__ else None
    if not isinstance(module, ModuleType) or last not in getattr(module, "__all__", ()):
        return None
    return getattr(module, last) if _is_function(module, last) else None


def _is_function(module: ModuleType, name: str) -> bool:
    return isinstance(getattr(module, name), FunctionType)


def check_arguments(
    function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> None:
    """Check that a function can be called with arguments.

    Raises:
        ArgumentError: one is missing, or the function has no such argument.

    """
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        raise ArgumentError(
            f"{function.__name__}{signature}: {error}; options are attributes (--set NAME=VALUE "
            "on the command line)"
        ) from None


def example_call(function: Callable[..., Any]) -> Arguments | None:
    """Return the arguments of the first call of a function in its own example, or None.

    The statements before this call are run.
    """
    import doctest  # only where a function is explained without a call

    known: dict[str, Any] = {_SHORT: sys.modules[_PACKAGE], "np": np}
    known["__arguments__"] = lambda *arguments, **options: (list(arguments), options)
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Call) and _evaluate(node.func, known) is function:
                call = ast.Call(ast.Name("__arguments__", ast.Load()), node.args, node.keywords)
                found: Arguments | None = _evaluate(call, known)
                if found is not None:
                    return found
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(example.source, "<example>", "exec"), known)  # noqa: S102  # of our documentation
    return None


def _evaluate(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return the value of an expression; None if names in it are unknown, as in a function."""
    tree = ast.fix_missing_locations(ast.Expression(node))
    try:
        return eval(compile(tree, "<example>", "eval"), known)  # noqa: S307  # of our documentation
    except (NameError, AttributeError):
        return None


def of_types(value: Any, dtype: DType | None = None) -> Any:
    """Return arguments with types in the place of tensors, of ``dtype`` if they are floats."""
    if isinstance(value, list | tuple):
        return type(value)([of_types(member, dtype) for member in value])
    if isinstance(value, dict):
        return {key: of_types(member, dtype) for key, member in value.items()}
    if not isinstance(value, Tensor | TensorType):
        return value
    chosen = dtype if dtype is not None and value.dtype.kind == "float" else value.dtype
    return TensorType(chosen, value.shape)

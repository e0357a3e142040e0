"""Public functions by name, and the calls of them in their own documentation."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import sys
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError
from tensorplug.introspection.families import FOLDERS, families
from tensorplug.system.distributions import EXTENSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType


_PACKAGE: Final = __name__.partition(".")[0]
_SHORT: Final = "tp"  # as programs import the package, and examples call it

_ARRAYS: Final = ("ArrayLike", "TensorLike")  # annotations of what becomes a tensor
_SEQUENCES: Final = tuple(f"Sequence[{each}" for each in _ARRAYS)

Arguments = tuple[list[Any], dict[str, Any]]


def names() -> list[str]:
    """Return the names of the public functions of tensors: ``["abs", ..., "nn.relu", ...]``."""
    return [
        f"{namespace}.{name}".lstrip(".")
        for namespace, family in families()
        for name in getattr(family, "__all__", ())
        if isinstance(getattr(family, name), FunctionType)
    ]


def find(name: str) -> Callable[..., Any] | None:
    """Return the public function ``name``: ``"add"``, ``"nn.relu"`` or ``"tp.nn.relu"``."""
    path = name.removeprefix(f"{_SHORT}.").removeprefix(f"{_PACKAGE}.")
    if path not in names() and path not in EXTENSIONS:
        return None
    function: Callable[..., Any] = attrgetter(path)(sys.modules[_PACKAGE])
    return function


def refuse_others(function: Callable[..., Any]) -> None:
    """Refuse a function of ours that is no function of tensors, and may have effects.

    Raises:
        ArgumentError: it is one.

    """
    module = getattr(function, "__module__", None) or ""
    is_ours = isinstance(function, FunctionType) and module.startswith(f"{_PACKAGE}.")
    if is_ours and not module.startswith(FOLDERS):
        raise ArgumentError(f"explain: {function.__name__} is not a function of tensors")


def check_arguments(
    function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> None:
    """Check that a function can be called with arguments.

    Raises:
        ArgumentError: one is missing, or the function has no such argument.

    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # of a function in C
        return
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        raise ArgumentError(
            f"{name_of(function)}: {error}; it has {', '.join(signature.parameters) or 'none'}. "
            "Pass those that are no inputs as attributes (on the command line: --set NAME=VALUE)"
        ) from None


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of the class of a callable object."""
    return getattr(function, "__name__", type(function).__name__)


def example_call(function: Callable[..., Any]) -> Arguments | None:
    """Return the arguments of the first call of a function in its own example, or None.

    The statements before this call are run. Lists of floats become tensors where the function
    would make tensors of them; of integers it may read the values.
    """
    import doctest  # only where a function is explained without a call

    known: dict[str, Any] = {_SHORT: sys.modules[_PACKAGE], "np": np}
    known["__arguments__"] = lambda *arguments, **options: (list(arguments), options)
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Call) and _evaluate(node.func, known) is function:
                call = ast.Call(ast.Name("__arguments__", ast.Load()), node.args, node.keywords)
                call_: Arguments | None = _evaluate(call, known)
                if call_ is not None:
                    return _with_tensors(function, *call_)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(example.source, "<example>", "exec"), known)  # noqa: S102  # of our documentation
    return None


def _with_tensors(
    function: Callable[..., Any], arguments: list[Any], options: dict[str, Any]
) -> Arguments:
    bound = inspect.signature(function).bind(*arguments, **options)
    for name, value in bound.arguments.items():
        kind = str(inspect.signature(function).parameters[name].annotation)
        if kind.startswith(_ARRAYS):
            bound.arguments[name] = _with_tensor(value)
        elif isinstance(value, list) and kind.startswith(_SEQUENCES):
            bound.arguments[name] = [_with_tensor(member) for member in value]
    return list(bound.args), bound.kwargs


def _with_tensor(value: Any) -> Any:
    """Return a list of floats, which may be nested, as a tensor; any other value unchanged."""
    try:
        is_floats = isinstance(value, list) and np.asarray(value).dtype.kind == "f"
    except ValueError:  # ragged
        return value
    return as_tensor(value) if is_floats else value


def _evaluate(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return the value of an expression; None if names in it are unknown, as in a function."""
    tree = ast.fix_missing_locations(ast.Expression(node))
    try:
        return eval(compile(tree, "<example>", "eval"), known)  # noqa: S307  # of our documentation
    except (NameError, AttributeError):
        return None


def shown(value: Any) -> str:
    """Return an argument of a call as text; it may be a tensor type, or a list of them."""
    if isinstance(value, list | tuple) and any(isinstance(each, TensorType) for each in value):
        return f"[{', '.join(map(shown, value))}]"
    return str(value) if isinstance(value, TensorType) else quoted(value)


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

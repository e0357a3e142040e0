"""The default integer in what public functions return.

Kernels return indices and counts in int32 (``dtypes.kernel_int``), whatever the default integer
is, so that no kernel, decomposition or gradient rule depends on it. The functions that users call
convert: here are the two rules, and the decorators that say which rule holds for a function. If
the default integer is int32, the public functions are the functions of the families themselves.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor
from tensorplug.ops.elementwise.casting import astype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor

__all__: list[str] = []

Function = TypeVar("Function", bound="Callable[..., Any]")

_RULE: Final = "__tensorplug_integers__"


def gives_indices(*places: int, unless: str = "") -> Callable[[Function], Function]:
    """Mark a function that returns indices or counts: they get the default integer.

    Args:
        places: which of several results are indices; without any, all of them.
        unless: a parameter; if it is given, the results are no counts.

    """

    def rule(function: Callable[..., Any]) -> Callable[..., Any]:
        at = list(inspect.signature(function).parameters).index(unless) if unless else 0

        @functools.wraps(function)
        def convert(*arguments: Any, **options: Any) -> Any:
            returned = function(*arguments, **options)
            if unless and (*arguments[at : at + 1], options.get(unless), None)[0] is not None:
                return returned
            if not isinstance(returned, tuple):
                return _convert(returned)
            results = [
                _convert(result) if not places or place in places else result
                for place, result in enumerate(returned)
            ]
            return type(returned)(*results) if hasattr(returned, "_fields") else tuple(results)

        return convert

    return _marking(rule)


def accumulates(dtypes: frozenset[dt.DType]) -> Callable[[Function], Function]:
    """Mark a function that adds or multiplies numbers: those of ``dtypes`` are widened first.

    Signed integers and booleans become the default integer, unsigned ones the unsigned type of its
    size, unless they are as large already, or the caller chooses a dtype.
    """

    def rule(function: Callable[..., Any]) -> Callable[..., Any]:
        wide = {own: _widened(own) for own in dtypes}

        @functools.wraps(function)
        def convert(x: Any, /, *arguments: Any, **options: Any) -> Any:
            if options.get("dtype") is None:
                x = as_tensor(x, what=f"{function.__name__}: x")
                x = astype(x, wide.get(x.dtype, x.dtype), copy=False)
            return function(x, *arguments, **options)

        return convert

    return _marking(rule)


def in_public(function: Function) -> Function:
    """Return the function that users call for one of a family, or for a method."""
    rule = getattr(function, _RULE, None)
    if rule is None or dt.default_int is dt.kernel_int:
        return function
    public: Function = rule(function)
    return public


def _marking(rule: Callable[..., Any]) -> Callable[[Function], Function]:
    def mark(function: Function) -> Function:
        setattr(function, _RULE, rule)
        return function

    return mark


def _convert(result: Tensor) -> Tensor:
    return astype(result, dt.default_int) if result.dtype is dt.kernel_int else result


def _widened(dtype: dt.DType) -> dt.DType:
    if dtype.itemsize >= dt.default_int.itemsize:
        return dtype
    if dtype.kind != "unsigned":
        return dt.default_int
    return next(wide for wide in dt.UNSIGNED if wide.itemsize == dt.default_int.itemsize)

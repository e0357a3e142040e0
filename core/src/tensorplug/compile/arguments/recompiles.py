"""The warning about a function that is traced again and again, because an argument changes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import RecompileWarning
from tensorplug.system import notices
from tensorplug.tensors import tree
from tensorplug.tensors.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.device import Device


MANY: Final = 8
"""The number of signatures of one function after which the next one causes a warning."""

_LISTED: Final = 3  # changes in a message


class _Leaf(NamedTuple):
    """One argument in words, and what to do if it keeps changing.

    ``placing``: dtype and device of a tensor, for which the remedy is another one.
    """

    text: str
    cure: str
    placing: str = ""


Signature = dict[str, _Leaf]  # by the path of the argument

_SHAPE: Final = "pad tensors to a few shapes"
_DTYPE: Final = "convert tensors to one dtype and one device before the call"
_NUMBER: Final = "pass a number that changes as a float or as a tensor"
_STRUCTURE: Final = "pass trees of one structure"
_OBJECT: Final = (
    "static arguments are compared by value: pass the same object again, or one that defines "
    "__eq__ and __hash__"
)


def describe(
    f: Callable[..., Any], device: Device, args: Any, kwargs: Any, read: dict[int, str] | None
) -> Signature:
    """Return the arguments of a call in words.

    ``read``: the floats that the function read, by position; None if all are static.
    """
    signature: Signature = {"the active device": _Leaf(device.name, _DTYPE)}
    floats = 0
    for name, argument in _named(f, args, kwargs).items():
        for path, leaf in zip(tree.paths(argument), tree.flatten(argument)[0], strict=True):
            if leaf.__class__ is float and read is not None:
                signature[name + path] = _describe_float(leaf, read.get(floats))
                floats += 1
            else:
                signature[name + path] = _describe(leaf)
    return signature


def _named(f: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments in the order of the call, by the names of their parameters."""
    try:
        names = list(inspect.signature(f).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):  # a function in C, or a call that f itself refuses
        names = []
    parameters = [name for name in names if name not in kwargs]
    positional = {
        parameters[at] if at < len(parameters) else f"args[{at}]": value
        for at, value in enumerate(args)
    }
    return {**positional, **kwargs}


def _describe_float(value: float, where: str | None) -> _Leaf:
    if where is None:
        return _Leaf("a float", _STRUCTURE)
    site = f" (at {where})" if where else ""
    return _Leaf(
        repr(value),
        f"the function uses the float as a Python number{site}: use it only in arithmetic and as "
        "an input of ops, or pass a tensor",
    )


def _describe(leaf: Any) -> _Leaf:
    if isinstance(leaf, Variable):
        return _Leaf(f"variable {leaf.name!r}", _OBJECT)
    if isinstance(leaf, Tensor):
        return _Leaf(f"{leaf.type} on {leaf.device}", _SHAPE, f"{leaf.dtype} on {leaf.device}")
    text = repr(leaf)
    number = isinstance(leaf, int) and not isinstance(leaf, bool)
    return _Leaf(
        text if len(text) <= 60 else text[:57] + "...",
        _NUMBER if number or isinstance(leaf, float) else _OBJECT,
    )


def warn(f: Callable[..., Any], before: Signature, now: Signature) -> None:
    """Say what changed between two signatures, and what to do about it."""
    changed = [name for name in now if name in before and now[name].text != before[name].text]
    texts = [f"{name} was {before[name].text}, now {now[name].text}" for name in changed]
    cure = _STRUCTURE
    if changed:
        first = now[changed[0]]
        cure = first.cure if first.placing == before[changed[0]].placing else _DTYPE
    if before.keys() != now.keys():
        texts.append(f"the arguments are {_outline(now)} instead of {_outline(before)}")
    elif not changed:
        texts.append("a static field or object is not equal to the one before")
        cure = _OBJECT
    rest = f", and {len(texts) - _LISTED} more" if len(texts) > _LISTED else ""
    notices.warn(
        f"compile: {getattr(f, '__qualname__', repr(f))} was traced for more than {MANY} "
        "signatures, and tracing takes much longer than running. Since the last one: "
        f"{'; '.join(texts[:_LISTED])}{rest}. To avoid it, {cure}",
        RecompileWarning,
    )


def _outline(signature: Signature) -> str:
    names = [name for name in signature if name != "the active device"]
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "") if names else "none"

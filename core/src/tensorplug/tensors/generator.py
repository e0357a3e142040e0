"""The generator of random numbers: a sequence of keys, and a method for each function of a key."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from tensorplug.tensors.call_hints import explain
from tensorplug.tensors.key_sequence import KeySequence

if TYPE_CHECKING:
    from collections.abc import Callable


class Generator(KeySequence):
    """A key and the number of keys made from it: every draw makes a new one.

    The methods are the functions of ``tensorplug.random`` without their key; draw number n uses
    ``fold_in(key(seed), n)``. A generator may be used by several threads, which never get the
    same key; it can be pickled and copied, and the copy makes the same draws. It keeps no tensors,
    so it outlives backends, scopes and processes. A forked child makes the same draws as its
    parent, unless it was given its own generator by ``spawn``.

    Args:
        seed: an integer in [0, 2**64); without it the operating system chooses one.

    Raises:
        ArgumentError: ``seed`` is not an integer, or is out of range.

    Examples:
        >>> rng = tp.random.Generator(0)
        >>> rng.integers((5,), low=1, high=7)
        Tensor([1, 5, 4, 6, 6], dtype=int32, device='cpu')
        >>> rng.integers((5,), low=1, high=7)  # another draw
        Tensor([3, 2, 1, 1, 2], dtype=int32, device='cpu')
        >>> saved = rng.state
        >>> rng.normal((2, 3)).shape
        (2, 3)
        >>> rng.state = saved  # the next draw is the same again

    """

    __slots__ = ()


def attach(draw: Callable[..., Any]) -> None:
    """Make a function of a key, its first argument, a method of ``Generator``."""

    @functools.wraps(draw)
    def method(self: Generator, /, *arguments: Any, **options: Any) -> Any:
        try:
            return draw(self.key(), *arguments, **options)
        except TypeError as error:
            explain(error, _without_key(draw), arguments, options)
            raise

    summary = (draw.__doc__ or "").partition("\n")[0]
    reference = f"``tensorplug.random.{draw.__name__}``"
    method.__doc__ = f"{summary}\n\nIt is {reference} with a new key: see there."
    setattr(Generator, draw.__name__, method)


def _without_key(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the signature of a method, for hints about a call of it."""
    form: Any = functools.wraps(draw)(lambda: None)
    signature = inspect.signature(draw)
    _, *rest = signature.parameters.values()
    form.__signature__ = signature.replace(parameters=rest)
    return form  # type: ignore[no-any-return]  # it is a function

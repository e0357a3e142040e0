"""A key and the number of keys made from it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import shapes
from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.locks import Lock
from tensorplug.errors import ArgumentError
from tensorplug.ops.random.random import (
    SPLIT,
    block_of,
    fold_words,
    halves,
    key_type,
    of_words,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.random.philox import Block

_MOST_SPAWNED: Final = 2**20  # generators; each takes about 100 bytes of the host


class KeySequence:
    """A key and the number of keys made from it; key n is ``fold_in(key(seed), n)``."""

    __slots__ = ("_count", "_lock", "_words")

    def __init__(self, seed: int | None = None) -> None:
        chosen = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        number = shapes.index(chosen, "Generator: seed")
        self._start((*halves(number, "Generator: seed"), 0, 0), 0)

    def _start(self, words: Block, count: int) -> None:
        self._words = words
        self._count = count
        self._lock = Lock()

    def _next(self) -> Block:
        with self._lock:
            count = self._count
            self._count += 1
        return fold_words(self._words, count)

    def __repr__(self) -> str:
        return f"<Generator {self.state}>"

    @property
    def state(self) -> dict[str, Any]:
        """The four words of its key and the number of draws; assign it to return to that point.

        Raises, when assigned:
            ArgumentError: it is not such a state.

        """
        with self._lock:
            return {"key": list(self._words), "count": self._count}

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        words, count = _checked(state)
        with self._lock:
            self._words, self._count = words, count

    def __getstate__(self) -> dict[str, Any]:
        return self.state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._start(*_checked(state))

    def key(self) -> Tensor:
        """Return a new key, for a function that takes one."""
        key: Tensor = current_context().interpreter.draw(self, key_type())
        return key

    def _draw(self) -> Tensor:
        """Return a new key now, whatever transforms the function."""
        return of_words(self._next())

    def spawn(self, n: int, /) -> list[Self]:
        """Return ``n`` generators, for threads or processes, that share nothing with this one.

        Raises:
            ArgumentError: ``n`` is not an integer, is negative, or is above 2**20.

        """
        count = shapes.index(n, "spawn: n")
        if count < 0:
            raise ArgumentError(f"spawn: n must not be negative, got {count}")
        if count > _MOST_SPAWNED:
            raise ArgumentError(f"spawn: n must be at most {_MOST_SPAWNED}, got {count}")
        current_context().interpreter.forbid("the function spawns generators; spawn them outside")
        parent = self._next()
        made: list[Self] = [self.__new__(type(self)) for _ in range(count)]
        for number, item in enumerate(made):
            item._start(block_of(parent, SPLIT + number), 0)
        return made


def _checked(state: Mapping[str, Any]) -> tuple[Block, int]:
    """Return the words and the count of a generator's state.

    Raises:
        ArgumentError: it is not a state.

    """
    try:
        a, b, c, d = (shapes.index(word, "a word") for word in state["key"])
        count = shapes.index(state["count"], "count")
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"a generator's state is {{'key': four words, 'count': an integer}}, got "
            f"{quoted(state)}"
        ) from error
    words = (a, b, c, d)
    if any(not 0 <= word < 2**32 for word in words) or not 0 <= count < 2**64:
        raise ArgumentError(f"a generator's state has a number that is out of range: {state!r}")
    return words, count

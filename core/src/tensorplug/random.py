"""Random numbers that depend on nothing but a key: the same on every backend and every run.

The arguments have one order: the key, the shape, the dtype; the parameters of the distribution
follow by name. ``choice``, ``categorical`` and ``permutation`` draw from a tensor, which follows
the key. Functions take a key, and a key is for one use::

    key = tp.random.key(0)
    for_weights, for_data = tp.random.split(key)
    weights = tp.random.normal(for_weights, (3, 4))

A ``Generator`` makes a new key for every draw. Its methods are the functions without the key::

    rng = tp.random.Generator(0)
    weights = rng.normal((3, 4))
    dice = rng.integers((5,), low=1, high=7)

Bits, integers and uniform numbers are the same to the last bit on all backends, and so are
exponential and normal ones if the device computes as IEEE 754 requires. Draws that also use ops
such as ``log`` are the same up to the accuracy of those ops. The first elements of a draw do not
depend on how many are drawn: ``normal(key, (5,))`` is the beginning of ``normal(key, (6,))``,
and ``(2, 3)`` has the numbers of ``(6,)``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.locks import Lock
from tensorplug.errors import ArgumentError
from tensorplug.library.random.choosing import categorical, choice, permutation
from tensorplug.library.random.counts import binomial, poisson
from tensorplug.library.random.draws import exponential, integers, normal, uniform
from tensorplug.library.random.sampling import bernoulli, gamma, gumbel, truncated_normal
from tensorplug.library.random.simplex import beta, dirichlet, laplace, multivariate_normal
from tensorplug.ops.random.random import (
    SPLIT,
    bits,
    block_of,
    fold_in,
    fold_words,
    halves,
    key,
    of_words,
    split,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.random.philox import Block
    from tensorplug.typing import ArrayLike, DTypeLike, ShapeLike, TensorLike

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "integers",
    "key",
    "laplace",
    "multivariate_normal",
    "normal",
    "permutation",
    "poisson",
    "split",
    "truncated_normal",
    "uniform",
]

_KEY: Final = TensorType(dt.uint32, (4,))
_MOST_SPAWNED: Final = 2**20  # generators; each takes about 100 bytes of the host


class Generator:
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
        key: Tensor = current_context().interpreter.draw(self, _KEY)
        return key

    def _draw(self) -> Tensor:
        """Return a new key now, whatever transforms the function."""
        return of_words(self._next())

    def spawn(self, n: int, /) -> list[Generator]:
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
        made = [Generator.__new__(Generator) for _ in range(count)]
        for number, item in enumerate(made):
            item._start(block_of(parent, SPLIT + number), 0)
        return made

    def bits(self, shape: ShapeLike = (), dtype: DTypeLike = dt.uint32) -> Tensor:
        """Return random bits; see ``tensorplug.random.bits``."""
        return bits(self.key(), shape, dtype)

    def uniform(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
    ) -> Tensor:
        """Return numbers from [low, high); see ``tensorplug.random.uniform``."""
        return uniform(self.key(), shape, dtype, low=low, high=high)

    def normal(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
    ) -> Tensor:
        """Return normally distributed numbers; see ``tensorplug.random.normal``."""
        return normal(self.key(), shape, dtype, loc=loc, scale=scale)

    def truncated_normal(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        lower: ArrayLike = -2.0,
        upper: ArrayLike = 2.0,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
    ) -> Tensor:
        """Return normal numbers within bounds; see ``tensorplug.random.truncated_normal``."""
        return truncated_normal(
            self.key(), shape, dtype, lower=lower, upper=upper, loc=loc, scale=scale
        )

    def exponential(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        scale: ArrayLike = 1.0,
    ) -> Tensor:
        """Return exponentially distributed numbers; see ``tensorplug.random.exponential``."""
        return exponential(self.key(), shape, dtype, scale=scale)

    def gumbel(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
    ) -> Tensor:
        """Return numbers of the Gumbel distribution; see ``tensorplug.random.gumbel``."""
        return gumbel(self.key(), shape, dtype, loc=loc, scale=scale)

    def gamma(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        concentration: ArrayLike,
        scale: ArrayLike = 1.0,
    ) -> Tensor:
        """Return numbers of the gamma distribution; see ``tensorplug.random.gamma``."""
        return gamma(self.key(), shape, dtype, concentration=concentration, scale=scale)

    def laplace(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
    ) -> Tensor:
        """Return numbers of the Laplace distribution; see ``tensorplug.random.laplace``."""
        return laplace(self.key(), shape, dtype, loc=loc, scale=scale)

    def beta(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        a: ArrayLike,
        b: ArrayLike,
    ) -> Tensor:
        """Return numbers of the beta distribution; see ``tensorplug.random.beta``."""
        return beta(self.key(), shape, dtype, a=a, b=b)

    def dirichlet(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        alpha: ArrayLike,
    ) -> Tensor:
        """Return vectors of the Dirichlet distribution; see ``tensorplug.random.dirichlet``."""
        return dirichlet(self.key(), shape, dtype, alpha=alpha)

    def multivariate_normal(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        mean: ArrayLike,
        cov: ArrayLike,
    ) -> Tensor:
        """Return normal vectors; see ``tensorplug.random.multivariate_normal``."""
        return multivariate_normal(self.key(), shape, dtype, mean=mean, cov=cov)

    def poisson(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        rate: ArrayLike,
    ) -> Tensor:
        """Return numbers of the Poisson distribution; see ``tensorplug.random.poisson``."""
        return poisson(self.key(), shape, dtype, rate=rate)

    def binomial(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        n: ArrayLike,
        p: ArrayLike,
    ) -> Tensor:
        """Return numbers of the binomial distribution; see ``tensorplug.random.binomial``."""
        return binomial(self.key(), shape, dtype, n=n, p=p)

    def integers(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        low: ArrayLike = 0,
        high: ArrayLike,
    ) -> Tensor:
        """Return integers from [low, high); see ``tensorplug.random.integers``."""
        return integers(self.key(), shape, dtype, low=low, high=high)

    def bernoulli(self, shape: ShapeLike | None = None, *, p: ArrayLike = 0.5) -> Tensor:
        """Return booleans, True with probability p; see ``tensorplug.random.bernoulli``."""
        return bernoulli(self.key(), shape, p=p)

    def categorical(
        self, logits: ArrayLike, shape: ShapeLike | None = None, axis: int = -1
    ) -> Tensor:
        """Return indices drawn by their logits; see ``tensorplug.random.categorical``."""
        return categorical(self.key(), logits, shape, axis)

    def permutation(self, x: TensorLike, axis: int = 0) -> Tensor:
        """Return slices in random order; see ``tensorplug.random.permutation``."""
        return permutation(self.key(), x, axis)

    def choice(
        self,
        a: TensorLike,
        shape: ShapeLike = (),
        *,
        replace: bool = True,
        p: ArrayLike | None = None,
        axis: int = 0,
    ) -> Tensor:
        """Return slices chosen at random; see ``tensorplug.random.choice``."""
        return choice(self.key(), a, shape, replace=replace, p=p, axis=axis)


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

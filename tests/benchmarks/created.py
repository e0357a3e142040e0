"""Kernels without inputs, including random numbers, and the NumPy expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from expressions import made, row, side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expressions import Array, Row


def created() -> Iterator[Row]:
    """Yield the rows."""
    yield from _created()
    yield from _random()


def _nothing(_size: int, _dtype: str) -> list[Any]:
    return []


def _created() -> Iterator[Row]:
    for size in (64, 1 << 20):
        x = made("unit", size, "float32")
        yield row(
            "Fill",
            lambda x=x: np.full(x.size, 1.5, x.dtype),
            _nothing,
            "s",
            only=size,
            shape=(size,),
            value=1.5,
        )
        yield row(
            "Range",
            lambda x=x: np.arange(0, x.size, 1, x.dtype),
            _nothing,
            "s",
            only=size,
            start=0,
            stop=size,
        )
        yield row(
            "LinSpace",
            lambda x=x: np.linspace(0, 1, x.size, dtype=x.dtype),
            _nothing,
            "s",
            only=size,
            start=0,
            stop=1,
            num=size,
        )
        edge = side(size)
        yield row(
            "Eye",
            lambda n=edge: np.eye(n, dtype=np.float32),
            _nothing,
            "s",
            only=size,
            n_rows=edge,
        )


def _random() -> Iterator[Row]:
    philox = np.random.Generator(np.random.Philox(7))
    key = lambda _n, _d: [np.arange(4, dtype=np.uint32)]  # noqa: E731
    for size in (64, 1 << 20):
        shape = {"shape": (size,)}
        yield row(
            "RandomBits",
            lambda *_, n=size: philox.integers(0, 1 << 32, n, np.uint32),
            key,
            "s",
            only=size,
            **shape,
        )
        yield row(
            "RandomUniform",
            lambda *_, n=size: philox.random(n, np.float32),
            key,
            "s",
            only=size,
            **shape,
        )
        yield row(
            "RandomNormal",
            lambda *_, n=size: philox.standard_normal(n, np.float32),
            key,
            "s",
            only=size,
            **shape,
        )
        yield row(
            "RandomExponential",
            lambda *_, n=size: philox.standard_exponential(n, np.float32),
            key,
            "s",
            only=size,
            **shape,
        )
        yield row(
            "RandomIntegers",
            lambda *_, n=size: philox.integers(0, 10, n, np.uint32),
            lambda n, d: [*key(n, d), np.array(10, np.uint32)],
            "s",
            only=size,
            **shape,
        )
        yield row(
            "Multinomial",
            lambda x, n=size: philox.choice(10, n, p=_chances(x)),
            lambda _n, _d: [np.zeros(10, np.float32)],
            "s",
            only=size,
            num_samples=size,
            seed=1,
        )


def _chances(x: Array) -> Array:
    powers = np.exp(x)
    return powers / powers.sum()

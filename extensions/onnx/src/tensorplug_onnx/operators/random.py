"""Random numbers.

A node with a seed draws the same numbers in each call, the others new ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.operators.casting import dtype_name
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNSEEDED: Final = tp.random.Generator()


def _key(seed: float | None) -> Any:
    """Return a key made of the bits of a seed, which is a float32; a new one without a seed."""
    if seed is None:
        return _UNSEEDED.key()
    return tp.random.key(int(np.float32(seed).view(np.uint32)))


@rule("RandomNormal")
def random_normal(
    *,
    shape: Sequence[int],
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Any:
    return tp.random.normal(_key(seed), shape, _dtype(dtype), loc=mean, scale=scale)


@rule("RandomNormalLike")
def random_normal_like(
    x: Any,
    *,
    dtype: int = 0,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Any:
    return tp.random.normal(_key(seed), x.shape, _dtype(dtype, x), loc=mean, scale=scale)


@rule("RandomUniform")
def random_uniform(
    *,
    shape: Sequence[int],
    dtype: int = 1,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Any:
    return tp.random.uniform(_key(seed), shape, _dtype(dtype), low=low, high=high)


@rule("RandomUniformLike")
def random_uniform_like(
    x: Any,
    *,
    dtype: int = 0,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Any:
    return tp.random.uniform(_key(seed), x.shape, _dtype(dtype, x), low=low, high=high)


def _dtype(elem_type: int, like: Any = None) -> tp.DType:
    """Return the dtype of an ONNX type; that of ``like`` for 0."""
    found: tp.DType = getattr(tp, dtype_name(elem_type)) if elem_type else like.dtype
    return found


@rule("Bernoulli")
def bernoulli(p: Any, *, dtype: int = 0, seed: float | None = None) -> Any:
    """ONNX's function body draws 1 with probability 1 - p; its text says p."""
    return tp.astype(tp.random.bernoulli(_key(seed), p=p), _dtype(dtype, p))


@rule("Multinomial")
def multinomial(
    logits: Any, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Any:
    if logits.ndim != 2:
        raise ValueError(f"the input is of rank {logits.ndim}, must be [batch, classes]")
    batch = logits.shape[0]
    drawn = tp.random.categorical(_key(seed), logits, (sample_size, batch))
    return tp.astype(tp.permute_dims(drawn, (1, 0)), _dtype(dtype))

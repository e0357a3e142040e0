"""What a decoder is, apart from its weights; and what a weight is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import tensorplug as tp
from tensorplug.errors import TensorplugError


class ModelError(TensorplugError, ValueError):
    """A file is not a language model that this package can run; the message says why."""


@dataclass(frozen=True)
class Configuration:
    """The sizes and kinds of a decoder's layers.

    Args:
        layers: the number of blocks.
        width: features of a token between blocks.
        heads: heads of queries.
        key_heads: heads of keys and values; each serves ``heads / key_heads`` heads of queries.
        head_size: features of a head.
        vocabulary: the number of tokens.
        context: the most tokens of a prompt and its answer.
        epsilon: of the normalizations.
        llama: RMSNorm, rotary positions and SwiGLU; otherwise, as in GPT-2, LayerNorm, learned
            positions and GELU.
        frequencies: radians per position, one for each pair of features; empty in GPT-2.

    """

    layers: int
    width: int
    heads: int
    key_heads: int
    head_size: int
    vocabulary: int
    context: int
    epsilon: float
    llama: bool
    frequencies: tuple[float, ...]


@dataclass(frozen=True)
class Matrix:
    """A weight, [outputs, inputs], as its file stores it: in floats, or in blocks of integers.

    A block lies along the inputs. It stands for ``values * scale + offset``.

    Args:
        values: floats or int8, [outputs, inputs]; or uint8, [outputs, inputs / 2], of two
            numbers each, the first in the low bits.
        scale: a float for each block, [outputs, blocks]; None for 1.
        offset: likewise; None for 0.
        bias: [outputs], added to products with the weight; None for 0.
        packed: "int4" or "uint4", the numbers that share a byte; None if none do.

    """

    values: Any
    scale: Any = None
    offset: Any = None
    bias: Any = None
    packed: Literal["int4", "uint4"] | None = tp.static_field(default=None)

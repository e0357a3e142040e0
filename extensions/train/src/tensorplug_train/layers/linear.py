"""Layers that multiply with a matrix, or look up its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug import Tensor
from tensorplug_train import initializers
from tensorplug_train.layers.applying import fitting

if TYPE_CHECKING:
    from typing import Self

    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike
    from tensorplug_train.initializers import Initializer


@dataclass(frozen=True, eq=False)
class Linear:
    """``x @ weight + bias``.

    ``weight``: [inputs, outputs]; ``bias``: [outputs], or None.

    Examples:
        >>> layer = tp.train.layers.Linear(tp.asarray([[1.0], [2.0]]), tp.asarray([0.5]))
        >>> layer([[1.0, 1.0]])
        Tensor([[3.5]], dtype=float32, device='cpu')

    """

    weight: Tensor
    bias: Tensor | None = None

    @classmethod
    def init(
        cls,
        key: KeyLike,
        inputs: int,
        outputs: int,
        *,
        bias: bool = True,
        weight_init: Initializer = initializers.glorot_uniform,
        bias_init: Initializer = initializers.zeros,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a layer with new weights, drawn with ``key``.

        ``inputs``, ``outputs``: lengths of the last axis of x and of the result; ``bias``: whether
        there is one; ``weight_init``, ``bias_init``: draw them, see ``tp.train.initializers``;
        ``dtype``: of both, None for float32. Errors are those of the initializers.
        """
        of_weight, of_bias = tp.random.split(key)
        weight = weight_init(of_weight, (inputs, outputs), dtype)
        return cls(weight, bias_init(of_bias, (outputs,), dtype) if bias else None)

    def __call__(self, x: ArrayLike) -> Tensor:
        """Return ``x @ weight + bias``, of shape [..., outputs].

        ``x``: [..., inputs].

        Raises:
            LayerError: the last axis of x has another length.

        """
        y = fitting(self, x, self.weight.shape[0]) @ self.weight
        return y if self.bias is None else y + self.bias


@dataclass(frozen=True, eq=False)
class Embedding:
    """The rows of a table that integers name.

    ``table``: [rows, features]; ``padding_index``: as for ``tp.nn.embedding``.

    Examples:
        >>> words = tp.train.layers.Embedding.init(tp.random.key(0), 1000, 16)
        >>> words([[7, 3, 3], [1, 0, 2]]).shape
        (2, 3, 16)

    """

    table: Tensor
    padding_index: int | None = tp.static_field(default=None)

    @classmethod
    def init(
        cls,
        key: KeyLike,
        rows: int,
        features: int,
        *,
        padding_index: int | None = None,
        table_init: Initializer = initializers.uniform,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a layer with a new table, drawn with ``key``.

        ``rows``: how many integers there are; ``features``: the length of a row;
        ``padding_index``: an integer whose results are 0, or None; ``table_init``: draws the
        table, by default from [-0.05, 0.05); ``dtype``: of the table, None for float32.
        """
        return cls(table_init(key, (rows, features), dtype), padding_index)

    def __call__(self, x: ArrayLike) -> Tensor:
        """Return the rows that ``x`` names, of shape [*x.shape, features].

        ``x``: integers of any shape.

        Raises: the errors of ``tp.nn.embedding``.
        """
        return tp.nn.embedding(self.table, x, padding_index=self.padding_index)

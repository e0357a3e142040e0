"""Layers that draw random numbers in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.plugin import as_tensor

if TYPE_CHECKING:
    from tensorplug import Tensor
    from tensorplug.typing import ArrayLike, KeyLike


@dataclass(frozen=True, eq=False)
class Dropout:
    """``tp.nn.dropout`` in training, and otherwise nothing.

    ``rate``: the probability of dropping an element, in [0, 1).

    Examples:
        >>> layers = tp.train.layers
        >>> key = tp.random.key(0)
        >>> layers.apply(layers.Dropout(0.5), tp.ones(6), key=key, training=True)[0]
        Tensor([2., 0., 0., 0., 0., 2.], dtype=float32, device='cpu')
        >>> layers.Dropout(0.5)(tp.ones(2))
        Tensor([1., 1.], dtype=float32, device='cpu')

    """

    rate: float = tp.static_field()

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise ArgumentError(f"Dropout: rate must be in [0, 1), got {self.rate!r}")

    @property
    def plain(self) -> bool:
        """Whether the layer never draws."""
        return not self.rate

    def __call__(self, x: ArrayLike) -> Tensor:
        """Return ``x``."""
        return as_tensor(x, what="Dropout: x")

    def apply(
        self,
        x: ArrayLike,
        state: Any = None,
        *,
        key: KeyLike | None = None,
        training: bool = False,
    ) -> tuple[Tensor, Any]:
        """Return ``x``, in training with random elements set to 0, and the state as it is.

        Raises:
            ArgumentError: the key is missing, which training needs.

        """
        if not training or not self.rate:
            return self(x), state
        return tp.nn.dropout(needed(key, "Dropout"), x, self.rate), state


def needed(key: KeyLike | None, who: str) -> KeyLike:
    """Return the key that a layer needs in training; None is an ``ArgumentError``."""
    if key is None:
        raise ArgumentError(f"{who} needs a key in training: apply(model, x, key=..., ...)")
    return key

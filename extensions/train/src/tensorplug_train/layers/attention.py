"""Attention of several heads, to the sequence itself or to another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug_train import initializers
from tensorplug_train.layers.applying import located
from tensorplug_train.layers.linear import Linear
from tensorplug_train.layers.noise import needed

if TYPE_CHECKING:
    from typing import Self

    from tensorplug import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike
    from tensorplug_train.initializers import Initializer


@dataclass(frozen=True, eq=False)
class MultiHeadAttention:
    """Scaled dot-product attention between linear layers.

    Args:
        query: the layer of x, with ``heads`` times the features of a head.
        key: the layer of the context, with as many features for each head of the keys. If these
            are fewer, neighbouring heads of the queries share one (grouped queries).
        value: likewise, of the values.
        output: the layer of all heads' results side by side.
        heads: of the queries.
        causal: whether place i sees places 0 to i only.
        dropout: the probability, in training, that a weight of a value is set to 0.
        rotary: the base of rotary position embeddings of queries and keys, usually 10,000, or
            None. The halves of a head's features are the two coordinates that rotate.

    Sources: "Attention is all you need" (Vaswani et al., 2017); "RoFormer" (Su et al., 2021).

    Examples:
        >>> layer = tp.train.layers.MultiHeadAttention.init(tp.random.key(0), 8, heads=2)
        >>> layer(tp.ones((3, 5, 8))).shape
        (3, 5, 8)
        >>> lengths = tp.asarray([5, 2, 4])  # a mask for padding: [batch, heads, queries, keys]
        >>> mask = (tp.arange(5) < lengths[:, None])[:, None, None]
        >>> layer(tp.ones((3, 5, 8)), mask=mask).shape
        (3, 5, 8)

    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    heads: int = tp.static_field()
    causal: bool = tp.static_field(default=False)
    dropout: float = tp.static_field(default=0.0)
    rotary: float | None = tp.static_field(default=None)

    @classmethod
    def init(
        cls,
        key: KeyLike,
        features: int,
        *,
        heads: int,
        key_heads: int | None = None,
        head_size: int | None = None,
        context_features: int | None = None,
        causal: bool = False,
        dropout: float = 0.0,
        rotary: float | None = None,
        bias: bool = True,
        weight_init: Initializer = initializers.glorot_uniform,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a layer with new weights, and biases of 0.

        Args:
            key: a key of ``tensorplug.random``.
            features: of x, and of the result.
            heads: of the queries.
            key_heads: of the keys and values, which divides ``heads``; None for as many.
            head_size: features of a head; None for ``features / heads``.
            context_features: of the context, if it is not x; None for ``features``.
            causal: see the class; also ``dropout``, ``rotary``.
            dropout: see the class.
            rotary: see the class.
            bias: whether the four layers have biases.
            weight_init: draws their weights.
            dtype: of the weights; None for float32.

        Raises:
            ArgumentError: the heads do not divide the features, ``key_heads`` does not divide
                ``heads``, or rotary heads have an odd number of features.

        """
        shared = heads if key_heads is None else key_heads
        if heads < 1 or shared < 1 or heads % shared or (head_size is None and features % heads):
            raise ArgumentError(
                f"MultiHeadAttention: {heads} heads must divide {features} features, and "
                f"{shared} heads of keys must divide {heads}"
            )
        size = features // heads if head_size is None else head_size
        if rotary is not None and size % 2:
            raise ArgumentError(f"MultiHeadAttention: rotary heads must be even, got {size}")
        context = features if context_features is None else context_features
        widths = (
            (features, heads * size),
            (context, shared * size),
            (context, shared * size),
            (heads * size, features),
        )
        query, of_keys, value, output = (
            Linear.init(own, *width, bias=bias, weight_init=weight_init, dtype=dtype)
            for own, width in zip(tp.random.split(key, 4), widths, strict=True)
        )
        return cls(query, of_keys, value, output, heads, causal, dropout, rotary)

    @property
    def plain(self) -> bool:
        """Whether the layer never draws."""
        return not self.dropout

    def __call__(
        self, x: ArrayLike, context: ArrayLike | None = None, *, mask: ArrayLike | None = None
    ) -> Tensor:
        """Return what each place of x collects from the context, without dropout.

        Args:
            x: [..., places, features].
            context: [..., keys, context features]; None for x.
            mask: as for ``tp.nn.scaled_dot_product_attention``, with an axis for the heads: it
                broadcasts to [..., heads, places, keys].

        Returns:
            [..., places, features].

        Raises:
            LayerError: x or the context has another number of features.

        """
        return self._attend(x, context, mask, {})

    def apply(
        self,
        x: ArrayLike,
        state: Any = None,
        *,
        key: KeyLike | None = None,
        training: bool = False,
        context: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> tuple[Tensor, Any]:
        """Return what a call returns, in training with dropout, and the state.

        Args:
            x: see a call; also ``context``, ``mask``.
            state: not used.
            key: a key of ``tensorplug.random``; needed for dropout in training.
            training: whether to drop weights.
            context: see a call.
            mask: see a call.

        Raises:
            ArgumentError: the key is missing.

        """
        noise = {}
        if training and self.dropout:
            drawn = needed(key, "MultiHeadAttention")
            noise = {"dropout": self.dropout, "dropout_key": drawn}
        return self._attend(x, context, mask, noise), state

    def _attend(
        self,
        x: ArrayLike,
        context: ArrayLike | None,
        mask: ArrayLike | None,
        noise: dict[str, Any],
    ) -> Tensor:
        seen = x if context is None else context
        with located(self):
            q, k, v = self.query(x), self.key(seen), self.value(seen)
        size = q.shape[-1] // self.heads
        q, k, v = (_split(each, size) for each in (q, k, v))
        if self.rotary is not None:
            q, k = (tp.nn.rotary(each, base=self.rotary) for each in (q, k))
        grouped = k.shape[-3] != self.heads
        y = tp.nn.scaled_dot_product_attention(
            q, k, v, mask, is_causal=self.causal, grouped_query=grouped, **noise
        )
        y = tp.swapaxes(y, -2, -3)
        return self.output(tp.reshape(y, (*y.shape[:-2], self.heads * size)))


def _split(x: Tensor, size: int) -> Tensor:
    """Return ``[..., places, heads * size]`` as ``[..., heads, places, size]``."""
    heads = x.shape[-1] // size
    return tp.swapaxes(tp.reshape(x, (*x.shape[:-1], heads, size)), -2, -3)

"""Recurrent layers: stacked, and in both directions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import tensorplug as tp
from tensorplug import Tensor
from tensorplug_train import initializers
from tensorplug_train.layers.applying import fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike
    from tensorplug_train.initializers import Initializer

Weights = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class _Recurrent:
    """Layers whose fields are the weights of ``function``, each with one for every layer."""

    kernels: Weights
    recurrent_kernels: Weights
    biases: Weights | None = None
    function: ClassVar[Callable[..., Any]]
    gates: ClassVar[int]

    def __call__(self, x: ArrayLike, *, lengths: ArrayLike | None = None) -> Tensor:
        """Return the outputs of the last layer; see ``run``."""
        return self.run(x, lengths=lengths)[0]

    def run(
        self,
        x: ArrayLike,
        initial: Sequence[Any] | None = None,
        *,
        lengths: ArrayLike | None = None,
    ) -> tuple[Tensor, list[Any]]:
        """Return the outputs of the last layer, and the last states of all layers.

        Args:
            x: [batch, time, features].
            initial: the states of each layer before the first step; None for 0.
            lengths: integers [batch], how many steps count; see ``tp.nn.lstm``.

        Returns:
            [batch, time, units], or 2 * units in both directions; and the state of each layer, as
            ``tp.nn.lstm`` and ``tp.nn.gru`` return it: (h, c), or h.

        Raises:
            LayerError: x has another number of features, or of axes.

        """
        kernels, *others = (getattr(self, each.name) for each in fields(self))
        y = fitting(self, x, kernels[0].shape[-2], "features", (3,))
        direction = "bidirectional" if kernels[0].ndim == 3 else "forward"
        states = []
        for at, kernel in enumerate(kernels):
            own = (None if each is None else each[at] for each in others)
            start = None if initial is None else initial[at]
            options = {"initial_state": start, "lengths": lengths, "direction": direction}
            y, state = self.function(y, kernel, *own, **options)
            states.append(state)
        return y, states

    @classmethod
    def _drawn(
        cls,
        key: KeyLike,
        inputs: int,
        units: int,
        depth: int,
        inits: tuple[Initializer, Initializer],
        dtype: DTypeLike | None,
        *,
        bidirectional: bool,
    ) -> tuple[Weights, Weights]:
        """Return the kernels and the recurrent kernels; each direction's is drawn by itself."""
        directions = 2 if bidirectional else 1
        keys = iter(tp.random.split(key, 2 * directions * depth))

        def draw(init: Initializer, rows: int) -> Tensor:
            shape = (rows, cls.gates * units)
            drawn = [init(next(keys), shape, dtype) for _ in range(directions)]
            return tp.stack(drawn) if bidirectional else drawn[0]

        widths = [inputs] + [directions * units] * (depth - 1)
        kernels = tuple(draw(inits[0], width) for width in widths)
        return kernels, tuple(draw(inits[1], units) for _ in widths)


@dataclass(frozen=True, eq=False)
class LSTM(_Recurrent):
    """Layers of ``tp.nn.lstm``, of which each takes the outputs of the one before.

    Args:
        kernels: of each layer, [features, 4 * units]; in both directions [2, features, 4 * units].
        recurrent_kernels: of each layer, [units, 4 * units], or with an axis of 2 in front.
        biases: of each layer, [4 * units], or with an axis of 2 in front; or None.

    Examples:
        >>> layer = tp.train.layers.LSTM.init(tp.random.key(0), 3, 5, depth=2, bidirectional=True)
        >>> layer(tp.ones((2, 7, 3)), lengths=[7, 4]).shape
        (2, 7, 10)

    """

    function = staticmethod(tp.nn.lstm)
    gates = 4

    @classmethod
    def init(
        cls,
        key: KeyLike,
        inputs: int,
        units: int,
        *,
        depth: int = 1,
        bidirectional: bool = False,
        bias: bool = True,
        forget_bias: float = 1.0,
        weight_init: Initializer = initializers.glorot_uniform,
        recurrent_init: Initializer = initializers.orthogonal,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return layers with new weights, drawn with ``key``.

        ``inputs``: features of x; ``units``: of each layer and direction; ``depth``: the number of
        layers; ``bidirectional``: whether each also runs from the last step to the first;
        ``bias``: whether there are biases, 0 but ``forget_bias`` for the forget gate;
        ``weight_init``, ``recurrent_init``: draw the kernels; ``dtype``: None for float32.
        """
        inits = (weight_init, recurrent_init)
        drawn = cls._drawn(key, inputs, units, depth, inits, dtype, bidirectional=bidirectional)
        shape = (2, units) if bidirectional else (units,)
        zeros, forget = (
            tp.full(shape, value, dtype=dtype or tp.float32) for value in (0.0, forget_bias)
        )
        one = tp.concat([zeros, forget, zeros, zeros], axis=-1)
        return cls(*drawn, (one,) * depth if bias else None)


@dataclass(frozen=True, eq=False)
class GRU(_Recurrent):
    """Layers of ``tp.nn.gru``, of which each takes the outputs of the one before.

    Args:
        kernels: of each layer, [features, 3 * units]; in both directions [2, features, 3 * units].
        recurrent_kernels: of each layer, [units, 3 * units], or with an axis of 2 in front.
        biases: of each layer, [3 * units], or with an axis of 2 in front; or None.
        recurrent_biases: likewise.

    Examples:
        >>> layer = tp.train.layers.GRU.init(tp.random.key(0), 3, 5)
        >>> y, states = layer.run(tp.ones((2, 7, 3)))
        >>> y.shape, [state.shape for state in states]
        ((2, 7, 5), [(2, 5)])

    """

    recurrent_biases: Weights | None = None
    function = staticmethod(tp.nn.gru)
    gates = 3

    @classmethod
    def init(
        cls,
        key: KeyLike,
        inputs: int,
        units: int,
        *,
        depth: int = 1,
        bidirectional: bool = False,
        bias: bool = True,
        weight_init: Initializer = initializers.glorot_uniform,
        recurrent_init: Initializer = initializers.orthogonal,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return layers with new weights; the arguments are those of ``LSTM.init``."""
        inits = (weight_init, recurrent_init)
        drawn = cls._drawn(key, inputs, units, depth, inits, dtype, bidirectional=bidirectional)
        zeros = tp.zeros((2, 3 * units) if bidirectional else (3 * units,), dtype=dtype)
        biases = (zeros,) * depth if bias else None
        return cls(*drawn, biases, biases)

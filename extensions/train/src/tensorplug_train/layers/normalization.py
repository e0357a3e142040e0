"""Normalizations. Channels, or features, are the last axis."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.errors import ArgumentError
from tensorplug_train.layers.applying import LayerError, fitting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike


class _Norm(ABC):
    """A layer whose input has a last axis as long as its ``scale``."""

    scale: Tensor
    _axis: ClassVar[str] = "channels"  # what errors call the last one

    def __call__(self, x: ArrayLike) -> Tensor:
        """Return ``x`` normalized; ``x``: [batch, ..., channels].

        Raises:
            LayerError: the last axis has another length.

        """
        return self._normalized(self._fitting(x))

    def _fitting(self, x: ArrayLike) -> Tensor:
        return fitting(self, x, self.scale.shape[0], self._axis)

    @abstractmethod
    def _normalized(self, x: Tensor) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class _Affine(_Norm, ABC):
    """A norm with a scale and an offset, and no other number than ``epsilon``."""

    scale: Tensor
    offset: Tensor | None = None
    epsilon: float = tp.static_field(default=1e-5)

    @classmethod
    def init(
        cls,
        features: int,
        *,
        bias: bool = True,
        epsilon: float = 1e-5,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a layer with scale 1 and offset 0.

        ``features``: the length of the last axis; ``bias``: whether there is an offset;
        ``epsilon``: see the class; ``dtype``: of scale and offset, None for float32.
        """
        return cls(*_affine(features, bias, dtype), epsilon)


@dataclass(frozen=True, eq=False)
class LayerNorm(_Affine):
    """``tp.nn.layer_norm`` over the last axis, with a learnt scale and offset.

    ``scale``: [features]; ``offset``: [features], or None; ``epsilon``: added to the variance.

    Examples:
        >>> layer = tp.train.layers.LayerNorm.init(2, epsilon=0.0)
        >>> layer([[1.0, 3.0]])
        Tensor([[-1.,  1.]], dtype=float32, device='cpu')

    """

    _axis = "features"

    def _normalized(self, x: Tensor) -> Tensor:
        return tp.nn.layer_norm(x, self.offset, self.scale, epsilon=self.epsilon)


@dataclass(frozen=True, eq=False)
class RMSNorm(_Norm):
    """``tp.nn.rms_norm`` over the last axis, with a learnt scale.

    ``scale``: [features]; ``epsilon``: added to the mean of the squares.

    Examples:
        >>> tp.train.layers.RMSNorm.init(2, epsilon=0.0)([[1.0, 7.0]]).numpy().round(4)
        array([[0.2, 1.4]], dtype=float32)

    """

    scale: Tensor
    epsilon: float = tp.static_field(default=1e-5)
    _axis = "features"

    @classmethod
    def init(cls, features: int, *, epsilon: float = 1e-5, dtype: DTypeLike | None = None) -> Self:
        """Return a layer with scale 1; the arguments are those of ``LayerNorm.init``."""
        return cls(tp.ones((features,), dtype=dtype), epsilon)

    def _normalized(self, x: Tensor) -> Tensor:
        return tp.nn.rms_norm(x, self.scale, epsilon=self.epsilon)


@dataclass(frozen=True, eq=False)
class GroupNorm(_Norm):
    """``tp.nn.group_norm``, with a learnt scale and offset.

    ``scale``: [channels]; ``offset``: [channels], or None; ``groups``: divides the channels;
    ``epsilon``: added to the variance.

    Examples:
        >>> layer = tp.train.layers.GroupNorm.init(4, groups=2, epsilon=0.0)
        >>> layer([[1.0, 3.0, 10.0, 14.0]])
        Tensor([[-1.,  1., -1.,  1.]], dtype=float32, device='cpu')

    """

    scale: Tensor
    offset: Tensor | None = None
    groups: int = tp.static_field(default=1)
    epsilon: float = tp.static_field(default=1e-5)

    @classmethod
    def init(
        cls,
        channels: int,
        *,
        groups: int,
        bias: bool = True,
        epsilon: float = 1e-5,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a layer with scale 1 and offset 0; see ``LayerNorm.init``.

        Raises:
            ArgumentError: the groups do not divide the channels.

        """
        if groups < 1 or channels % groups:
            raise ArgumentError(f"GroupNorm: {groups} groups do not divide {channels} channels")
        return cls(*_affine(channels, bias, dtype), groups, epsilon)

    def _normalized(self, x: Tensor) -> Tensor:
        return tp.nn.group_norm(x, self.groups, self.offset, self.scale, epsilon=self.epsilon)


@dataclass(frozen=True, eq=False)
class InstanceNorm(_Affine):
    """``tp.nn.instance_norm`` of [batch, ..., channels], with a learnt scale and offset.

    ``scale``: [channels]; ``offset``: [channels], or None; ``epsilon``: added to the variance.

    Examples:
        >>> layer = tp.train.layers.InstanceNorm.init(1, epsilon=0.0)
        >>> layer([[[1.0], [3.0]]])[..., 0]
        Tensor([[-1.,  1.]], dtype=float32, device='cpu')

    """

    def _normalized(self, x: Tensor) -> Tensor:
        return tp.nn.instance_norm(x, self.offset, self.scale, epsilon=self.epsilon)


@dataclass(frozen=True, eq=False)
class BatchNorm:
    """Batch normalization, with a learnt scale and offset; its state is the running statistics.

    In training, x is normalized with the mean and variance of the batch, and the state moves
    towards them; otherwise x is normalized with the state. Statistics are float32 at least.

    Args:
        scale: [channels].
        offset: [channels], or None.
        decay: the factor of the old statistics in a step. They begin as mean 0 and variance 1, and
            each batch counts the same, as in PyTorch (whose ``momentum`` is ``1 - decay``). None:
            the statistics are those of all elements since the start, however large each batch.
        epsilon: added to the variance.

    Examples:
        >>> layers = tp.train.layers
        >>> norm = layers.BatchNorm.init(1, decay=None)
        >>> state = norm.initial_state()
        >>> for batch in ([[1.0], [2.0], [3.0]], [[6.0]] * 2):
        ...     y, state = layers.apply(norm, batch, state, training=True)
        >>> state["mean"].tolist()
        [3.5999999046325684]

    """

    scale: Tensor
    offset: Tensor | None = None
    decay: float | None = tp.static_field(default=0.9)
    epsilon: float = tp.static_field(default=1e-5)

    @classmethod
    def init(
        cls,
        channels: int,
        *,
        bias: bool = True,
        decay: float | None = 0.9,
        epsilon: float = 1e-5,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a layer with scale 1 and offset 0; see the class, and ``LayerNorm.init``."""
        return cls(*_affine(channels, bias, dtype), decay, epsilon)

    def initial_state(self) -> dict[str, Tensor]:
        """Return mean 0 and variance 1; without decay also the count 0 of elements so far."""
        dtype, shape = self.scale.dtype.compute, self.scale.shape
        state = {"mean": tp.zeros(shape, dtype=dtype), "variance": tp.ones(shape, dtype=dtype)}
        return state if self.decay is not None else state | {"count": tp.zeros((), dtype=dtype)}

    def __call__(self, x: ArrayLike, state: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return ``x`` normalized with the statistics in ``state``; see ``apply``."""
        return self.apply(x, state)[0]

    def apply(
        self,
        x: ArrayLike,
        state: Any = None,
        *,
        key: KeyLike | None = None,  # noqa: ARG002  # the same for every layer
        training: bool = False,
    ) -> tuple[Tensor, Any]:
        """Return ``x``, [..., channels], normalized in its dtype, and the new state.

        Raises:
            LayerError: the last axis has another length; or, in training, there is only one
                element for each channel.
            ArgumentError: the state is missing.

        """
        tensor = fitting(self, x, self.scale.shape[0], "channels")
        if state is None:
            raise ArgumentError("BatchNorm needs its state: pass that of initial_state(model)")
        wide = tp.astype(tensor, tensor.dtype.compute, copy=False)
        mean, variance = state["mean"], state["variance"]
        if training:
            count = math.prod(tensor.shape[:-1])
            if count < 2:
                raise LayerError(
                    self,
                    "BatchNorm needs two elements or more for each channel in training, got x of "
                    f"shape {tensor.shape}",
                )
            mean, variance = tp.nn.moments(wide, tuple(range(tensor.ndim - 1)))
            state = self._moved(state, mean, variance, count)
        y = tp.nn.batch_norm(wide, mean, variance, self.offset, self.scale, self.epsilon)
        return tp.astype(y, tensor.dtype, copy=False), state

    def _moved(
        self, state: Mapping[str, Tensor], mean: Tensor, variance: Tensor, count: int
    ) -> dict[str, Tensor]:
        dtype = state["mean"].dtype
        mean, variance = (tp.astype(each, dtype, copy=False) for each in (mean, variance))
        if self.decay is not None:
            new = {"mean": mean, "variance": variance * (count / (count - 1))}
            return {
                name: tp.nn.moving_average(state[name], value, self.decay, zero_debias=False)
                for name, value in new.items()
            }
        # The sums of squares of both parts, and the distance of their means (Chan et al., 1979).
        before = state["count"]
        total = before + count
        distance = mean - state["mean"]
        squares = state["variance"] * tp.maximum(before - 1, 0.0) + variance * count
        squares = squares + tp.square(distance) * (before * (count / total))
        moved = state["mean"] + distance * (count / total)
        return {"mean": moved, "variance": squares / (total - 1), "count": total}


def _affine(size: int, bias: bool, dtype: DTypeLike | None) -> tuple[Tensor, Tensor | None]:  # noqa: FBT001  # of init
    return tp.ones((size,), dtype=dtype), tp.zeros((size,), dtype=dtype) if bias else None

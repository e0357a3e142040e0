"""Convolutions over any number of spatial axes, and their transposes. Channels are last."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.errors import ArgumentError
from tensorplug_train import initializers
from tensorplug_train.layers.applying import fitting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike
    from tensorplug_train.initializers import Initializer

Ints: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = int | tuple[int, ...]
Padding: TypeAlias = str | int | tuple[int | tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class _Filters(ABC):
    """Filters, a bias, and the windows under which they lie; see ``Conv``."""

    weight: Tensor
    bias: Tensor | None = None
    stride: Sizes = tp.static_field(default=1)
    padding: Padding = tp.static_field(default="valid")
    dilation: Sizes = tp.static_field(default=1)
    groups: int = tp.static_field(default=1)

    @classmethod
    def init(
        cls,
        key: KeyLike,
        inputs: int,
        outputs: int,
        window: Sequence[int],
        *,
        stride: Sizes = 1,
        padding: Padding = "valid",
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        weight_init: Initializer = initializers.glorot_uniform,
        bias_init: Initializer = initializers.zeros,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a layer with new weights, drawn with ``key``.

        ``inputs``, ``outputs``: channels of x and of the result; ``window``: taps along each
        spatial axis, whose number it decides; ``bias``: whether there is one; ``weight_init``:
        draws the weight, ``[*window, inputs / groups, outputs]``, and ``bias_init`` the bias;
        ``dtype``: of both, None for float32. The rest: see the class.

        Raises:
            ArgumentError: ``groups`` does not divide the channels, or ``window`` is no sequence.

        """
        if not isinstance(window, list | tuple) or not window:
            raise ArgumentError(
                f"{cls.__name__}: window must have a number for each spatial axis, as (3, 3), got "
                f"{window!r}"
            )
        if groups < 1 or inputs % groups or outputs % groups:
            raise ArgumentError(
                f"{cls.__name__}: {groups} groups do not divide {inputs} and {outputs}"
            )
        of_weight, of_bias = tp.random.split(key)
        weight = weight_init(of_weight, (*window, inputs // groups, outputs), dtype)
        drawn = bias_init(of_bias, (outputs,), dtype) if bias else None
        return cls(cls._arranged(weight, groups), drawn, stride, padding, dilation, groups)

    @staticmethod
    def _arranged(weight: Tensor, groups: int) -> Tensor:  # noqa: ARG004  # of the transpose
        """Return the weight of a layer, for ``[*window, inputs / groups, outputs]``."""
        return weight

    def __call__(self, x: ArrayLike) -> Tensor:
        """Return the result plus bias, of shape [batch, *positions, outputs].

        ``x``: ``[batch, *spatial, inputs]``; the batch axis may be missing.

        Raises:
            LayerError: x has other channels, or another number of axes.

        """
        axes = self.weight.ndim - 2
        tensor = fitting(self, x, self._inputs, "channels", (axes + 1, axes + 2))
        batched = tensor if tensor.ndim == axes + 2 else tensor[None]
        strides, dilations = _each(self.stride, axes), _each(self.dilation, axes)
        y = self._spread(batched, strides, _pairs(self.padding, axes), dilations)
        y = y if tensor.ndim == axes + 2 else y[0]
        return y if self.bias is None else y + self.bias

    @property
    @abstractmethod
    def _inputs(self) -> int: ...

    @abstractmethod
    def _spread(self, x: Tensor, strides: Ints, padding: Any, dilations: Ints) -> Tensor:
        """Return the result without bias; ``padding``: text, or a pair for each axis."""


@dataclass(frozen=True, eq=False)
class Conv(_Filters):
    """A convolution with learnt filters.

    Args:
        weight: ``[*window, inputs / groups, outputs]``.
        bias: [outputs], or None.
        stride: steps between positions, one for all spatial axes or one for each.
        padding: "valid", "same", or numbers of zeros: one for all sides, or for each spatial axis
            one or a pair (before, after).
        dilation: distances between taps, as ``stride``.
        groups: groups of neighbouring channels that do not mix; see ``tp.nn.conv2d``.

    Examples:
        >>> layer = tp.train.layers.Conv.init(tp.random.key(0), 3, 8, (3, 3), padding="same")
        >>> layer(tp.ones((2, 32, 32, 3))).shape
        (2, 32, 32, 8)

    """

    @property
    def _inputs(self) -> int:
        return self.weight.shape[-2] * self.groups

    def _spread(self, x: Tensor, strides: Ints, padding: Any, dilations: Ints) -> Tensor:
        return _convolution(x, self.weight, strides, padding, dilations, self.groups)


@dataclass(frozen=True, eq=False)
class ConvTranspose(_Filters):
    """The transpose of a convolution with learnt filters: each element is spread over its window.

    One to three spatial axes.

    Args:
        weight: ``[*window, outputs / groups, inputs]``.
        bias: [outputs], or None.
        stride: steps between the elements of x in the result, as for ``Conv``.
        padding: of the convolution whose transpose it is, as for ``Conv``; it makes the result
            smaller. With "same", the result is ``stride`` times as large as x.
        dilation: distances between taps.
        groups: as for ``Conv``.

    Examples:
        >>> layer = tp.train.layers.ConvTranspose.init(
        ...     tp.random.key(0), 8, 3, (2, 2), stride=2
        ... )
        >>> layer(tp.ones((1, 16, 16, 8))).shape
        (1, 32, 32, 3)

    """

    @staticmethod
    def _arranged(weight: Tensor, groups: int) -> Tensor:
        *window, inputs, outputs = weight.shape
        if len(window) > 3:
            raise ArgumentError(f"ConvTranspose: at most 3 spatial axes, got window {window}")
        parts = tp.reshape(weight, (*window, inputs, groups, outputs // groups))
        return tp.reshape(tp.swapaxes(parts, -1, -3), (*window, outputs // groups, -1))

    @property
    def _inputs(self) -> int:
        return self.weight.shape[-1]

    def _spread(self, x: Tensor, strides: Ints, padding: Any, dilations: Ints) -> Tensor:
        *window, outputs, _ = self.weight.shape
        axes, sizes, weight = len(window), [], self.weight
        for at, size in enumerate(x.shape[1:-1]):
            length = (size - 1) * strides[at] + (window[at] - 1) * dilations[at] + 1
            cut = 0 if isinstance(padding, str) else sum(padding[at])
            sizes.append(size * strides[at] if padding == "same" else length - cut)
        if axes == 1:  # of height 1
            x, weight, sizes = x[:, None], weight[None], [1, *sizes]
            strides, dilations = (1, *strides), (1, *dilations)
            padding = padding if isinstance(padding, str) else ((0, 0), *padding)
        function: Any = tp.nn.conv3d_transpose if axes == 3 else tp.nn.conv2d_transpose
        shape, pad = (x.shape[0], *sizes, outputs * self.groups), _around(padding)
        y: Tensor = function(
            x, weight, shape, strides, pad, dilations=dilations, groups=self.groups
        )
        return y[:, 0] if axes == 1 else y


def _convolution(
    x: Tensor,
    weight: Tensor,
    strides: Ints,
    padding: Any,
    dilations: Ints,
    groups: int,
) -> Tensor:
    axes, pad = len(strides), _around(padding)
    if axes == 1:
        return tp.nn.conv1d(x, weight, strides[0], pad, dilation=dilations[0], groups=groups)
    if axes == 2:
        return tp.nn.conv2d(x, weight, strides, pad, dilations=dilations, groups=groups)
    if axes == 3:
        return tp.nn.conv3d(x, weight, strides, pad, dilations=dilations, groups=groups)
    # The sum over the taps of the first axis, whose positions join the batch.
    taps, stride, dilation = weight.shape[0], strides[0], dilations[0]
    reach, size = (taps - 1) * dilation + 1, x.shape[1]
    before, after = (0, 0) if isinstance(padding, str) else padding[0]
    if padding == "same":
        missing = max(0, (math.ceil(size / stride) - 1) * stride + reach - size)
        before, after = missing // 2, missing - missing // 2
    x = tp.pad(x, [(0, 0), (before, after), *[(0, 0)] * axes])
    positions = (size + before + after - reach) // stride + 1
    rest = padding if isinstance(padding, str) else padding[1:]
    sums: list[Tensor] = []
    for tap in range(taps):
        first = tap * dilation
        part = x[:, first : first + (positions - 1) * stride + 1 : stride]
        folded = tp.reshape(part, (-1, *part.shape[2:]))
        y = _convolution(folded, weight[tap], strides[1:], rest, dilations[1:], groups)
        sums.append(tp.reshape(y, (*part.shape[:2], *y.shape[1:])))
    return tp.add_n(sums)


def _each(sizes: Sizes, axes: int) -> Ints:
    return tuple(sizes) if isinstance(sizes, list | tuple) else (sizes,) * axes


def _pairs(padding: Padding, axes: int) -> Any:
    if isinstance(padding, str):
        return padding
    listed = padding if isinstance(padding, list | tuple) else (padding,) * axes
    return tuple((each, each) if isinstance(each, int) else tuple(each) for each in listed)


def _around(pairs: Any) -> Any:
    """Return a padding of the spatial axes as one of all axes of x."""
    return pairs if isinstance(pairs, str) else ((0, 0), *pairs, (0, 0))

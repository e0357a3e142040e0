"""Convolutions over any number of spatial axes, and their transposes. Channels are last."""

from __future__ import annotations

import math
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

Sizes: TypeAlias = int | tuple[int, ...]
Padding: TypeAlias = str | int | tuple[int | tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Conv:
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
        """Return a layer with new weights.

        Args:
            key: a key of ``tensorplug.random``.
            inputs: channels of x.
            outputs: channels of the result.
            window: taps along each spatial axis, whose number it decides.
            stride: see the class; also ``padding``, ``dilation``, ``groups``.
            padding: see the class.
            dilation: see the class.
            groups: see the class; it divides ``inputs`` and ``outputs``.
            bias: whether there is a bias.
            weight_init: draws the weight.
            bias_init: draws the bias.
            dtype: of the weights; None for float32.

        Raises:
            ArgumentError: ``groups`` does not divide the channels, or ``window`` is no sequence.

        """
        sizes = _window("Conv", window)
        if groups < 1 or inputs % groups or outputs % groups:
            raise ArgumentError(f"Conv: {groups} groups do not divide {inputs} and {outputs}")
        of_weight, of_bias = tp.random.split(key)
        weight = weight_init(of_weight, (*sizes, inputs // groups, outputs), dtype)
        drawn = bias_init(of_bias, (outputs,), dtype) if bias else None
        return cls(weight, drawn, stride, padding, dilation, groups)

    def __call__(self, x: ArrayLike) -> Tensor:
        """Return the convolution plus bias, of shape [batch, *positions, outputs].

        ``x``: ``[batch, *spatial, inputs]``; the batch axis may be missing.

        Raises:
            LayerError: x has other channels, or another number of axes.

        """
        axes = self.weight.ndim - 2
        channels = self.weight.shape[-2] * self.groups
        tensor = fitting(self, x, channels, "channels", (axes + 1, axes + 2))
        batched = tensor if tensor.ndim == axes + 2 else tensor[None]
        pairs = _pairs(self.padding, axes)
        strides, dilations = _each(self.stride, axes), _each(self.dilation, axes)
        y = _convolution(batched, self.weight, strides, pairs, dilations, self.groups)
        y = y if tensor.ndim == axes + 2 else y[0]
        return y if self.bias is None else y + self.bias


def _convolution(
    x: Tensor,
    weight: Tensor,
    strides: tuple[int, ...],
    padding: Any,
    dilations: tuple[int, ...],
    groups: int,
) -> Tensor:
    axes = len(strides)
    pad: Any = padding if isinstance(padding, str) else ((0, 0), *padding, (0, 0))
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


@dataclass(frozen=True, eq=False)
class ConvTranspose:
    """The transpose of a convolution with learnt filters: each element is spread over its window.

    One to three spatial axes.

    Args:
        weight: ``[*window, outputs, inputs]``.
        bias: [outputs], or None.
        stride: steps between the elements of x in the result, as for ``Conv``.
        padding: of the convolution whose transpose it is, as for ``Conv``; it makes the result
            smaller. With "same", the result is ``stride`` times as large as x.
        dilation: distances between taps.

    Examples:
        >>> layer = tp.train.layers.ConvTranspose.init(
        ...     tp.random.key(0), 8, 3, (2, 2), stride=2
        ... )
        >>> layer(tp.ones((1, 16, 16, 8))).shape
        (1, 32, 32, 3)

    """

    weight: Tensor
    bias: Tensor | None = None
    stride: Sizes = tp.static_field(default=1)
    padding: Padding = tp.static_field(default="valid")
    dilation: Sizes = tp.static_field(default=1)

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
        bias: bool = True,
        weight_init: Initializer = initializers.glorot_uniform,
        bias_init: Initializer = initializers.zeros,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a layer with new weights; see ``Conv.init``.

        Args:
            key: a key of ``tensorplug.random``.
            inputs: channels of x.
            outputs: channels of the result.
            window: taps along each spatial axis, of which there are one to three.
            stride: see the class.
            padding: see the class.
            dilation: see the class.
            bias: whether there is a bias.
            weight_init: draws the weight, ``[*window, inputs, outputs]``, whose fans fit.
            bias_init: draws the bias.
            dtype: of the weights; None for float32.

        Raises:
            ArgumentError: ``window`` does not have one to three numbers.

        """
        sizes = _window("ConvTranspose", window)
        if len(sizes) > 3:
            raise ArgumentError(f"ConvTranspose: at most 3 spatial axes, got window {sizes}")
        of_weight, of_bias = tp.random.split(key)
        weight = tp.swapaxes(weight_init(of_weight, (*sizes, inputs, outputs), dtype), -1, -2)
        drawn = bias_init(of_bias, (outputs,), dtype) if bias else None
        return cls(weight, drawn, stride, padding, dilation)

    def __call__(self, x: ArrayLike) -> Tensor:
        """Return the transposed convolution plus bias, of shape [batch, *positions, outputs].

        ``x``: ``[batch, *spatial, inputs]``; the batch axis may be missing.

        Raises:
            LayerError: x has other channels, or another number of axes.

        """
        *window, outputs, inputs = self.weight.shape
        axes = len(window)
        tensor = fitting(self, x, inputs, "channels", (axes + 1, axes + 2))
        strides, dilations = _each(self.stride, axes), _each(self.dilation, axes)
        batched, weight = tensor if tensor.ndim == axes + 2 else tensor[None], self.weight
        pairs = _pairs(self.padding, axes)
        sizes = []
        for at, size in enumerate(batched.shape[1:-1]):
            length = (size - 1) * strides[at] + (window[at] - 1) * dilations[at] + 1
            cut = 0 if isinstance(pairs, str) else sum(pairs[at])
            sizes.append(size * strides[at] if pairs == "same" else length - cut)
        if axes == 1:  # of height 1
            batched, weight, sizes = batched[:, None], weight[None], [1, *sizes]
            strides, dilations = (1, *strides), (1, *dilations)
            pairs = pairs if isinstance(pairs, str) else ((0, 0), *pairs)
        pad = pairs if isinstance(pairs, str) else ((0, 0), *pairs, (0, 0))
        function: Any = tp.nn.conv3d_transpose if axes == 3 else tp.nn.conv2d_transpose
        shape = (batched.shape[0], *sizes, outputs)
        y: Tensor = function(batched, weight, shape, strides, pad, dilations=dilations)
        y = y[:, 0] if axes == 1 else y
        y = y if tensor.ndim == axes + 2 else y[0]
        return y if self.bias is None else y + self.bias


def _window(who: str, window: Any) -> tuple[int, ...]:
    if not isinstance(window, list | tuple) or not window:
        raise ArgumentError(
            f"{who}: window must have a number for each spatial axis, as (3, 3), got {window!r}"
        )
    return tuple(window)


def _each(sizes: Sizes, axes: int) -> tuple[int, ...]:
    return tuple(sizes) if isinstance(sizes, list | tuple) else (sizes,) * axes


def _pairs(padding: Padding, axes: int) -> Any:
    if isinstance(padding, str):
        return padding
    listed = padding if isinstance(padding, list | tuple) else (padding,) * axes
    return tuple((each, each) if isinstance(each, int) else tuple(each) for each in listed)

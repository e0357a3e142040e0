"""Convolution, pooling and image kernels, and the NumPy expression for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from expressions import Row, made, row, side
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expressions import Array, Inputs


DEPTH = 8  # channels


def images(*, channels: int = DEPTH, batch: int = 1) -> Inputs:
    """Return a function that makes one stack of square images, channels last."""

    def make(size: int, dtype: str) -> list[Array]:
        edge = max(side(size, channels * batch) // 4, 1) * 4
        return [made("unit", (batch, edge, edge, channels), dtype)]

    return make


def imagery() -> Iterator[Row]:
    """Yield the rows."""
    yield from _convolutions()
    yield from _volumes()
    yield from _dilations()
    yield from _pools()
    yield from _resized()
    yield from _warped()


def _beside(
    *shapes: tuple[int, ...] | None, channels: int = DEPTH, less: int = 0, volume: bool = False
) -> Inputs:
    """Return a function that makes images, narrower by ``less`` taps, and arrays of shapes."""

    def make(size: int, dtype: str) -> list[Any]:
        (x,) = images(channels=channels)(size, dtype)
        if volume:
            x = _cube(size, dtype)
        inner = (slice(None), *[slice(None, length - less) for length in x.shape[1:-1]])
        others = [None if shape is None else made("unit", shape, dtype) for shape in shapes]
        return [np.ascontiguousarray(x[inner]), *others]

    return make


def _cube(size: int, dtype: str) -> Array:
    edge = max(round((size // 4) ** (1 / 3)), 4)
    return made("unit", (1, edge, edge, edge, 4), dtype)


def _windows(x: Array, rank: int = 2) -> Array:
    return sliding_window_view(x, (3,) * rank, tuple(range(1, rank + 1)))


def _convolved(x: Array, taps: Array) -> Array:
    rank = x.ndim - 2
    inner = (rank + 1, *range(rank + 2, 2 * rank + 2))
    return np.tensordot(_windows(x, rank), taps, (inner, (rank, *range(rank))))


def _to_input(dy: Array, taps: Array) -> Array:
    rank = dy.ndim - 2
    padded = np.pad(dy, ((0, 0), *((2, 2),) * rank, (0, 0)))
    turned = np.flip(taps, tuple(range(rank))).swapaxes(-1, -2)
    return _convolved(padded, turned)


def _to_filter(x: Array, dy: Array) -> Array:
    rank = x.ndim - 2
    places = tuple(range(rank + 1))
    sums = np.tensordot(_windows(x, rank), dy, (places, places))
    return np.moveaxis(sums, 0, -2)


def _by_channel(x: Array, taps: Array) -> Array:
    return np.einsum("nhwckl,klcm->nhwcm", _windows(x), taps).reshape(*_inner(x), -1)


def _inner(x: Array) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1] - 2, x.shape[2] - 2


def _by_channel_to_input(dy: Array, taps: Array) -> Array:
    padded = np.pad(dy, ((0, 0), (2, 2), (2, 2), (0, 0)))
    return _by_channel(padded, taps[::-1, ::-1])


def _by_channel_to_filter(x: Array, dy: Array) -> Array:
    return np.einsum("nhwckl,nhwc->klc", _windows(x), dy)[..., None]


def _paired(first: Inputs, less: int) -> Inputs:
    """Return the arrays of ``first``, and one shaped as a valid convolution of the first one."""

    def make(size: int, dtype: str) -> list[Any]:
        arrays = first(size, dtype)
        x = arrays[0]
        shape = (x.shape[0], *[length - less for length in x.shape[1:-1]], x.shape[-1])
        return [*arrays, made("signed", shape, dtype)]

    return make


def _convolutions() -> Iterator[Row]:
    how: dict[str, Any] = {"strides": 1, "pad": "valid"}
    taps, bias = (3, 3, DEPTH, DEPTH), (DEPTH,)
    single = (3, 3, DEPTH, 1)
    x = images()
    yield row("Conv2D", _convolved, _beside(taps), **how)
    yield row(
        "FusedConv2D",
        lambda x, w, b, _: np.maximum(_convolved(x, w) + b, 0),
        _beside(taps, bias, None),
        activation="relu",
        **how,
    )
    yield row("Conv2DBackpropFilter", _to_filter, _paired(x, 2), filter_shape=taps, **how)
    yield row("DepthwiseConv2dNative", _by_channel, _beside(single), **how)
    yield row(
        "FusedDepthwiseConv2D",
        lambda x, w, b, _: np.maximum(_by_channel(x, w) + b, 0),
        _beside(single, bias, None),
        activation="relu",
        **how,
    )
    yield row(
        "DepthwiseConv2dNativeBackpropFilter",
        _by_channel_to_filter,
        _paired(x, 2),
        filter_shape=single,
        **how,
    )

    def shaped(size: int) -> dict[str, Any]:
        return {**how, "input_shape": x(size, "float32")[0].shape}

    yield Row("Conv2DBackpropInput", _to_input, _beside(taps, less=2), shaped)
    yield Row(
        "DepthwiseConv2dNativeBackpropInput", _by_channel_to_input, _beside(single, less=2), shaped
    )


def _volumes() -> Iterator[Row]:
    how: dict[str, Any] = {"strides": 1, "pad": "valid"}
    taps = (3, 3, 3, 4, 4)
    yield row("Conv3D", _convolved, _beside(taps, volume=True), **how)
    yield Row(
        "Conv3DBackpropInputV2",
        _to_input,
        _beside(taps, less=2, volume=True),
        lambda size: {**how, "input_shape": _cube(size, "float32").shape},
    )
    yield row(
        "Conv3DBackpropFilterV2",
        _to_filter,
        _paired(_beside(volume=True), 2),
        filter_shape=taps,
        **how,
    )


def _dilations() -> Iterator[Row]:
    how: dict[str, Any] = {"strides": 1, "pad": "valid"}
    taps = _beside((3, 3, DEPTH))

    def sums(x: Array, w: Array) -> Array:
        total = _windows(x) + w.transpose(2, 0, 1)
        return total.reshape(*total.shape[:4], 9)

    def both(size: int, dtype: str) -> list[Array]:
        x, w = taps(size, dtype)
        return [x, w, *_paired(lambda _n, _d: [x], 2)(size, dtype)[1:]]

    def to_filter(x: Array, w: Array, dy: Array) -> Array:
        at = sums(x, w).argmax(-1)
        per_tap = [(dy * (at == tap)).sum((0, 1, 2)) for tap in range(9)]
        return np.stack(per_tap).reshape(3, 3, -1)

    def to_input(x: Array, w: Array, dy: Array) -> Array:
        at, result = sums(x, w).argmax(-1), np.zeros_like(x)
        for tap in range(9):
            down, right = divmod(tap, 3)
            result[:, down : down + dy.shape[1], right : right + dy.shape[2]] += dy * (at == tap)
        return result

    yield row("Dilation2D", lambda x, w: sums(x, w).max(-1), taps, **how)
    yield row("Dilation2DBackpropInput", to_input, both, **how)
    yield row("Dilation2DBackpropFilter", to_filter, both, **how)


def _blocks(x: Array) -> Array:
    """Return windows of 2, with the positions in the last axis."""
    if x.ndim == 4:
        n, h, w, c = x.shape
        return x.reshape(n, h // 2, 2, w // 2, 2, c)
    n, d, h, w, c = x.shape
    return x.reshape(n, d // 2, 2, h // 2, 2, w // 2, 2, c)


def _within(x: Array) -> tuple[int, ...]:
    return (2, 4) if x.ndim == 4 else (2, 4, 6)


def _spread(dy: Array) -> Array:
    for axis in range(1, dy.ndim - 1):
        dy = np.repeat(dy, 2, axis)
    return dy


def _to_first(dy: Array, x: Array, y: Array) -> Array:
    """Give dy to the first element of each window that is its largest, as a kernel must."""
    result, found = np.zeros_like(x), np.zeros(y.shape, bool)
    for tap in np.ndindex(*[2] * (x.ndim - 2)):
        at = (slice(None), *(slice(start, None, 2) for start in tap))
        wins = (x[at] == y) & ~found
        result[at] = np.where(wins, dy, 0)
        found |= wins
    return result


def _pools() -> Iterator[Row]:
    how: dict[str, Any] = {"filter_size": 2, "strides": 2, "pad": "valid"}

    def volumes(size: int, dtype: str) -> list[Array]:
        edge = _cube(size, dtype).shape[1] // 2 * 2
        return [made("unit", (1, edge, edge, edge, 4), dtype)]

    def mean(x: Array) -> Array:
        return _blocks(x).mean(_within(x))

    def largest(x: Array) -> Array:
        return _blocks(x).max(_within(x))

    def places(x: Array) -> tuple[Array, Array]:
        blocks = np.moveaxis(_blocks(x), 4, 3).reshape(*_half(x), 4, x.shape[-1])
        return blocks.max(-2), blocks.argmax(-2)

    for name, inputs in (("", images()), ("3D", volumes)):
        half = lambda n, d, inputs=inputs: largest(inputs(n, d)[0])  # noqa: E731
        yield row(f"AvgPool{name}", mean, inputs, **how)
        yield row(f"MaxPool{name}", largest, inputs, **how)
        yield row(
            f"AvgPool{name}Grad",
            lambda dy, x: _spread(dy) / 2 ** (x.ndim - 2),
            lambda n, d, inputs=inputs, half=half: [half(n, d), *inputs(n, d)],
            **how,
        )
        yield row(
            f"MaxPool{name}Grad",
            _to_first,
            lambda n, d, inputs=inputs: _pooled(inputs(n, d)[0], largest),
            **how,
        )
    yield row("MaxPoolWithArgmax", places, images(), **how)
    yield row(
        "Pool", largest, images(), window_shape=2, pooling_type="max", pad="valid", strides=2
    )


def _half(x: Array) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1] // 2, x.shape[2] // 2


def _pooled(x: Array, largest: Any) -> list[Array]:
    y = largest(x)
    return [made("signed", y.shape, x.dtype.name), x, y]


def _bilinear(x: Array, down: Array, right: Array) -> Array:
    """Return images at rows and columns, which may be fractions."""
    top, left = down.astype(int), right.astype(int)
    below, beside = np.minimum(top + 1, x.shape[1] - 1), np.minimum(left + 1, x.shape[2] - 1)
    v, u = (down - top)[:, None, None], (right - left)[:, None]
    upper = x[:, top][:, :, left] * (1 - u) + x[:, top][:, :, beside] * u
    lower = x[:, below][:, :, left] * (1 - u) + x[:, below][:, :, beside] * u
    return upper * (1 - v) + lower * v


def _doubled(x: Array) -> Array:
    return np.arange(2 * x.shape[1], dtype=np.float32) / 2


def _gathered_back(x: Array, dy: Array) -> Array:
    """Add up what bilinear doubling spreads: each row and column, and the mean of neighbours."""
    for axis in (1, 2):
        dy = np.moveaxis(dy, axis, 0)
        even, odd = dy[::2].copy(), dy[1::2] / 2
        even += odd
        even[1:] += odd[:-1]
        even[-1] += odd[-1]
        dy = np.moveaxis(even, 0, axis)
    return dy


def _resized() -> Iterator[Row]:
    def doubled(size: int) -> dict[str, Any]:
        edge = images()(size // 4, "float32")[0].shape[1]
        return {"size": (2 * edge, 2 * edge)}

    small = lambda n, d: images()(n // 4, d)  # noqa: E731

    def backward(size: int, dtype: str) -> list[Array]:
        (x,) = small(size, dtype)
        return [x, made("signed", (1, 2 * x.shape[1], 2 * x.shape[2], DEPTH), dtype)]

    yield Row("ResizeBilinear", lambda x: _bilinear(x, _doubled(x), _doubled(x)), small, doubled)
    yield row("ResizeBilinearGrad", _gathered_back, backward)
    yield Row("ResizeNearestNeighbor", _spread, small, doubled)
    yield row("ResizeNearestNeighborGrad", lambda _x, dy: _blocks(dy).sum((2, 4)), backward)
    yield row(
        "CropAndResize",
        lambda x, *_: _bilinear(x, *[np.linspace(0, x.shape[1] - 1, 32)] * 2),
        lambda n, d: [*images()(n, d), np.array([[0, 0, 1, 1]], d), np.zeros(1, np.int32)],
        crop_size=(32, 32),
    )


def _warped() -> Iterator[Row]:
    x = images()
    yield row("FlipLeftRight", lambda x: x[:, :, ::-1], x)
    yield row("RotateWithOffset", _turned, images(channels=4), radians=0.3)
    yield row(
        "Transform",
        _moved,
        lambda n, d: [*x(n, d), np.array([[1, 0, 2, 0, 1, 3, 0, 0]], np.float32)],
    )
    yield row(
        "FusedBatchNorm",
        lambda x, s, o, m, v: (x - m) / np.sqrt(v + 0.001) * s + o,
        lambda n, d: _normalized(*x(n, d)),
        "f",
    )
    yield row("LRN", lambda x: x / np.sqrt(1 + _squares(x)), x)
    yield row(
        "LRNGrad",
        lambda x, y, dy: dy / np.sqrt(1 + _squares(x)) - x * _squares(dy * y),
        lambda n, d: x(n, d) * 3,
    )
    pixels = lambda n, _d: images(channels=4)(n, "uint8")[0][0]  # noqa: E731
    yield row("FromPixels", lambda x: x[..., :3].astype(np.int32), lambda n, d: [pixels(n, d)])
    yield row("Draw", _drawn, lambda n, d: [images(channels=3)(n, d)[0][0]])


def _normalized(x: Array) -> list[Array]:
    return [x, *[made("unit", x.shape[-1], x.dtype.name) for _ in range(4)]]


def _squares(x: Array) -> Array:
    padded = np.pad(np.square(x), ((0, 0), (0, 0), (0, 0), (5, 5)))
    return sliding_window_view(padded, 11, 3).sum(-1)


def _places(x: Array) -> tuple[Array, Array]:
    down, right = np.indices(x.shape[1:3])
    return down, right


def _picked(x: Array, down: Array, right: Array) -> Array:
    top, left = np.rint(down).astype(int), np.rint(right).astype(int)
    inside = (top >= 0) & (top < x.shape[1]) & (left >= 0) & (left < x.shape[2])
    taken = x[:, top.clip(0, x.shape[1] - 1), left.clip(0, x.shape[2] - 1)]
    return np.where(inside[:, :, None], taken, 0)


def _turned(x: Array) -> Array:
    down, right = _places(x)
    middle = x.shape[1] / 2
    down, right = down - middle, right - middle
    sine, cosine = np.sin(0.3), np.cos(0.3)
    return _picked(x, right * sine + down * cosine + middle, right * cosine - down * sine + middle)


def _moved(x: Array, how: Array) -> Array:
    down, right = _places(x)
    a0, a1, a2, b0, b1, b2 = how[0, :6]
    return _picked(x, b0 * right + b1 * down + b2, a0 * right + a1 * down + a2)


def _drawn(x: Array) -> Array:
    result = np.full((*x.shape[:2], 4), 255, np.uint8)
    result[..., :3] = np.rint(np.clip(x, 0, 1) * 255)
    return result

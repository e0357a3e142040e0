"""What we mean to be ahead in: workloads with a target, as a ratio to the best of the peers.

Each row is written once for each library, as a function of its arrays. Ours runs in eager mode and
compiled, on each backend; the best of both counts. The peers are NumPy, PyTorch, and JAX compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import loops
import models
import numpy as np
from rows import PEERS, Row, normal, numbered

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness import Measurement, Workload

    Function = Callable[..., Any]


@dataclass(frozen=True)
class Target:
    """A workload, and at most how many times the best peer's time ours is to take.

    ``unit``: microseconds in one unit of the table: 1000 for milliseconds. ``peers``: with which
    it is compared.
    """

    name: str
    ratio: float
    make: Callable[[], Workload]
    unit: float = 1000.0
    peers: tuple[str, ...] = PEERS


_LARGE = (1 << 24,)
_ROWS = (2048, 4096)
_SQUARE = (4096, 4096)
_IMAGES = (16, 32, 32, 64)
_SMALL_IMAGES = (8, 28, 28, 16)
_ROOT = math.sqrt(2 / math.pi)


def _gelu_of(tanh: Function) -> Function:
    return lambda x: 0.5 * x * (1 + tanh(_ROOT * (x + 0.044715 * x * x * x)))


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _layer_norm(x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def _jax_layer_norm(jax: Any, x: Any) -> Any:
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5)


def _convolution(jax: Any, x: Any, filters: Any, groups: int) -> Any:
    return jax.lax.conv_general_dilated(
        x,
        filters,
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def _channels_first(array: Any) -> Any:
    """Images to NCHW; filters HWIO to OIHW."""
    axes = (0, 3, 1, 2) if array.shape[1] > 3 else (3, 2, 0, 1)
    return np.ascontiguousarray(np.transpose(array, axes))


def _depthwise_first(array: Any) -> Any:
    """Images to NCHW; filters HWC1 to C1HW."""
    axes = (0, 3, 1, 2) if array.shape[0] == _IMAGES[0] else (2, 3, 0, 1)
    return np.ascontiguousarray(np.transpose(array, axes))


def _pooled(x: Any) -> Any:
    return tp.nn.max_pool(x, 2, 2, "valid")


_ELEMENTWISE: Final = (
    (
        Row(
            "gelu (tanh), 2^24",
            normal(_LARGE),
            lambda x: tp.nn.gelu(x, approximate=True),
            _gelu_of(np.tanh),
            lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
            lambda jax, x: jax.nn.gelu(x, approximate=True),
        ),
        0.35,
    ),
    (
        Row(
            "tanh(ab + c)d - e, 2^24",
            normal(*[_LARGE] * 5),
            lambda a, b, c, d, e: tp.tanh(a * b + c) * d - e,
            lambda a, b, c, d, e: np.tanh(a * b + c) * d - e,
            lambda torch, a, b, c, d, e: torch.tanh(a * b + c) * d - e,
            lambda jax, a, b, c, d, e: jax.numpy.tanh(a * b + c) * d - e,
        ),
        0.9,
    ),
)

_REDUCED: Final = (
    Row(
        "softmax, 2048 x 4096",
        normal(_ROWS),
        tp.nn.softmax,
        _softmax,
        lambda torch, x: torch.softmax(x, -1),
        lambda jax, x: jax.nn.softmax(x),
    ),
    Row(
        "layer norm, 2048 x 4096",
        normal(_ROWS),
        lambda x: tp.nn.layer_norm(x, epsilon=1e-5),
        _layer_norm,
        lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
        _jax_layer_norm,
    ),
    Row(
        "sum of rows, 4096^2",
        normal(_SQUARE),
        lambda x: tp.sum(x, axis=1),
        lambda x: x.sum(axis=1),
        lambda _, x: x.sum(1),
        lambda _, x: x.sum(axis=1),
    ),
    Row(
        "sum of columns, 4096^2",
        normal(_SQUARE),
        lambda x: tp.sum(x, axis=0),
        lambda x: x.sum(axis=0),
        lambda _, x: x.sum(0),
        lambda _, x: x.sum(axis=0),
    ),
    Row(
        "mean of all, 4096^2",
        normal(_SQUARE),
        tp.mean,
        np.mean,
        lambda _, x: x.mean(),
        lambda _, x: x.mean(),
    ),
    Row(
        "cumulative sum, 2048 x 4096",
        normal(_ROWS),
        lambda x: tp.cumulative_sum(x, axis=1),
        lambda x: np.cumsum(x, axis=1),
        lambda torch, x: torch.cumsum(x, 1),
        lambda jax, x: jax.numpy.cumsum(x, axis=1),
    ),
)

_PRODUCTS: Final = (
    *(
        Row(
            name,
            normal(*shapes),
            lambda a, b: a @ b,
            lambda a, b: a @ b,
            lambda _, a, b: a @ b,
            lambda _, a, b: a @ b,
        )
        for name, *shapes in (
            ("product of 2048^2", (2048, 2048), (2048, 2048)),
            ("64 products of 128^2", (64, 128, 128), (64, 128, 128)),
        )
    ),
    Row(
        "convolution 3x3, 8 x 28 x 28",
        normal(_SMALL_IMAGES, (3, 3, 16, 32)),
        lambda x, f: tp.nn.conv2d(x, f, 1, "same"),
        None,
        lambda torch, x, f: torch.nn.functional.conv2d(x, f, padding=1),
        lambda jax, x, f: _convolution(jax, x, f, 1),
        for_torch=_channels_first,
    ),
    Row(
        "embedding and back, 4096 of 10,000 x 128",
        numbered((10000, 128), 4096),
        lambda table, rows: tp.take(table, rows, axis=0),
        None,
        lambda torch, table, rows: torch.nn.functional.embedding(rows, table),
        lambda jax, table, rows: jax.numpy.take(table, rows, axis=0),
        wrt=1,
    ),
    Row(
        "largest of rows, 4096^2",
        normal(_SQUARE),
        lambda x: tp.max(x, axis=1),
        lambda x: x.max(axis=1),
        lambda _, x: x.amax(1),
        lambda _, x: x.max(axis=1),
    ),
)

_ORDERED: Final = (
    Row(
        "top 10 of 1024 rows of 4096",
        normal((1024, 4096)),
        lambda x: tp.topk(x, 10),
        None,
        lambda torch, x: torch.topk(x, 10),
        lambda jax, x: jax.lax.top_k(x, 10),
    ),
    Row(
        "sort, 1024 rows of 4096",
        normal((1024, 4096)),
        lambda x: tp.sort(x, axis=1),
        lambda x: np.sort(x, axis=1),
        lambda torch, x: torch.sort(x, 1)[0],
        lambda jax, x: jax.numpy.sort(x, axis=1),
    ),
    Row(
        "embedding, 65,536 of 32,000 x 256",
        numbered((32000, 256), 1 << 16),
        lambda table, rows: tp.take(table, rows, axis=0),
        lambda table, rows: np.take(table, rows, axis=0),
        lambda torch, table, rows: torch.nn.functional.embedding(rows, table),
        lambda jax, table, rows: jax.numpy.take(table, rows, axis=0),
    ),
)


def _windows() -> Iterator[tuple[Row, float]]:
    for wrt, what in ((0, ""), (2, " and back")):
        yield (
            Row(
                f"depthwise 3x3{what}",
                normal(_IMAGES, (3, 3, 64, 1)),
                lambda x, f: tp.nn.depthwise_conv2d(x, f, 1, "same"),
                None,
                lambda torch, x, f: torch.nn.functional.conv2d(x, f, padding=1, groups=64),
                lambda jax, x, f: _convolution(jax, x, f.reshape(3, 3, 1, 64), 64),
                wrt=wrt,
                for_torch=_depthwise_first,
            ),
            0.9,
        )
        yield (
            Row(
                f"convolution 3x3, 64 to 64{what}",
                normal(_IMAGES, (3, 3, 64, 64)),
                lambda x, f: tp.nn.conv2d(x, f, 1, "same"),
                None,
                lambda torch, x, f: torch.nn.functional.conv2d(x, f, padding=1),
                lambda jax, x, f: _convolution(jax, x, f, 1),
                wrt=wrt,
                for_torch=_channels_first,
            ),
            1.0,
        )
    yield (
        Row(
            "max pool 2x2 and back",
            normal(_IMAGES),
            _pooled,
            None,
            lambda torch, x: torch.nn.functional.max_pool2d(x, 2),
            lambda jax, x: jax.lax.reduce_window(
                x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            ),
            wrt=1,
            for_torch=_channels_first,
        ),
        0.9,
    )


def targets() -> Iterator[Target]:
    """Yield every target, in the order of the table."""
    for row, ratio in _ELEMENTWISE:
        yield Target(row.name, ratio, row.workload)
    for row in _REDUCED:
        yield Target(row.name, 0.9, row.workload)
    for row, ratio in _windows():
        yield Target(row.name, ratio, row.workload)
    for row in _ORDERED:
        yield Target(row.name, 0.9, row.workload)
    for row in _PRODUCTS:
        yield Target(row.name, 1.0, row.workload)
    yield Target("MLP step", 1.0, models.mlp)
    yield Target("CNN step", 1.0, models.cnn)
    yield Target("transformer block and back", 1.0, models.transformer_block)
    yield Target("GRU by scan, 1000 steps", 1.2, loops.gru_forward, peers=("jax jit",))
    yield Target("GRU by scan, 1000 steps, and back", 1.2, loops.gru, peers=("jax jit",))
    eager, compiled = (lambda mode=mode: _ten_ops(mode) for mode in ("", " compiled"))
    yield Target(f"{_TEN} eager", 1.0, eager, unit=1.0, peers=("torch",))
    # 1.5 microseconds an op, where jax.jit takes 0.92.
    yield Target(f"{_TEN} compiled", 1.6, compiled, unit=1.0)


_TEN: Final = "ten ops and back, 16 elements,"


def _ten_ops(mode: str) -> Workload:
    """Forward and backward of ten operations on 16 elements, in eager mode or compiled."""

    def chain(a: Any, b: Any, tanh: Function) -> Any:
        y = a
        for _ in range(2):
            y = tanh(y * b + a) - b
            y = y * y
        return y

    row = Row(
        f"{_TEN}{mode or ' eager'}",
        normal((16,), (16,)),
        lambda a, b: chain(a, b, tp.tanh),
        None,
        lambda torch, a, b: chain(a, b, torch.tanh),
        lambda jax, a, b: chain(a, b, jax.numpy.tanh),
        wrt=2,
    )
    workload = row.workload()
    taken = {
        name: call
        for name, call in workload.contenders.items()
        if not name.startswith("tensorplug") or name.endswith(" compiled") == bool(mode)
    }
    return replace(workload, contenders=taken)


def find_best(figures: Measurement, names: Sequence[str]) -> str | None:
    """Return the fastest of these contenders by the median; None if none took part."""
    present = [name for name in names if name in figures.seconds]
    return min(present, key=figures.median, default=None)

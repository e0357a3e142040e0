"""Workloads of moving elements: padding, tiles, joins, strided gradients, pixel shuffles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

IMAGES = (8, 128, 128, 64)  # 32 MB of float32
RIM = ((0, 0), (1, 1), (1, 1), (0, 0))


def _compare(
    name: str,
    numpy_op: Callable[[Any], object],
    ours: Callable[[Any], object],
    torch_op: Callable[[Any], Callable[[Any], object]],
    jax_op: Callable[[Any], object],
) -> Workload:
    """One op of float32 images. ``torch_op`` takes the module and returns the call."""
    x = np.random.default_rng(0).random(IMAGES, dtype=np.float32)
    contenders: dict[str, Call] = {"numpy": lambda: numpy_op(x)}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _op(ours, x))
    if available("torch"):
        import torch

        theirs, tensor = torch_op(torch), torch_tensor(x)
        contenders["torch"] = lambda: theirs(tensor)
    if available("jax"):
        import jax

        passed, compiled = jax.numpy.asarray(x), jax.jit(jax_op)
        contenders["jax jit"] = lambda: compiled(passed).block_until_ready()
    return Workload(name, "numpy", contenders)


def _op(ours: Callable[[Any], object], x: Any) -> Call:
    tensor = tp.asarray(x)
    return lambda: ours(tensor)


def _shuffled(x: Any) -> Any:
    """Return x after DepthToSpace with blocks of 2, for any array with NumPy's methods."""
    n, height, width, channels = x.shape
    cells = x.reshape(n, height, width, 2, 2, channels // 4).transpose(0, 1, 3, 2, 4, 5)
    return cells.reshape(n, 2 * height, 2 * width, channels // 4)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    yield (
        "pad",
        lambda: _compare(
            "pad 32 MB of images",
            lambda x: np.pad(x, RIM),
            lambda x: tp.pad(x, RIM),
            lambda torch: lambda x: torch.nn.functional.pad(x, (0, 0, 1, 1, 1, 1)),
            lambda x: _jax().pad(x, RIM),
        ),
    )
    yield (
        "mirror_pad",
        lambda: _compare(
            "mirror 32 MB of images",
            lambda x: np.pad(x, RIM, mode="reflect"),
            lambda x: tp.mirror_pad(x, RIM, "reflect"),
            lambda torch: lambda x: torch.nn.functional.pad(x, (0, 0, 1, 1, 1, 1), "reflect"),
            lambda x: _jax().pad(x, RIM, mode="reflect"),
        ),
    )
    yield (
        "concat",
        lambda: _compare(
            "concat twice 32 MB, channels",
            lambda x: np.concatenate([x, x], axis=-1),
            lambda x: tp.concat([x, x], axis=-1),
            lambda torch: lambda x: torch.cat([x, x], dim=-1),
            lambda x: _jax().concatenate([x, x], axis=-1),
        ),
    )
    yield (
        "tile",
        lambda: _compare(
            "tile 32 MB twice, rows",
            lambda x: np.tile(x, (1, 2, 1, 1)),
            lambda x: tp.tile(x, (1, 2, 1, 1)),
            lambda torch: lambda x: torch.tile(x, (1, 2, 1, 1)),
            lambda x: _jax().tile(x, (1, 2, 1, 1)),
        ),
    )
    yield (
        "depth_to_space",
        lambda: _compare(
            "depth to space, 32 MB",
            _shuffled,
            lambda x: tp.depth_to_space(x, 2),
            lambda _torch: (
                lambda x: (
                    x.reshape(8, 128, 128, 2, 2, 16)
                    .permute(0, 1, 3, 2, 4, 5)
                    .reshape(8, 256, 256, 16)
                )
            ),
            _shuffled,
        ),
    )


def _jax() -> Any:
    import jax

    return jax.numpy

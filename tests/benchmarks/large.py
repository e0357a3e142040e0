"""Workloads that fill a GPU: large arrays, large matrices, models of a common size."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from harness import Workload
from peers import available, backends, logarithm, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

WIDTH: Final = 1024  # of rows


def _compared(
    name: str,
    arrays: list[Any],
    ours: Callable[..., Any],
    numpy: Callable[..., Any] | None,
    torch_of: Callable[[Any], Callable[..., Any]],
    for_torch: Callable[[Any], Any] = lambda x: x,
) -> Workload:
    """One function of the same arrays; ``torch_of`` returns PyTorch's function."""

    def prepared() -> Call:
        tensors = [tp.asarray(array) for array in arrays]
        return lambda: ours(*tensors)

    contenders = {f"tensorplug {backend}": on(backend, prepared) for backend in backends()}
    if numpy is not None:
        contenders["numpy"] = lambda: numpy(*arrays)
    baseline = "numpy" if numpy is not None else next(iter(contenders))
    if available("torch"):
        import torch

        theirs, tensors = torch_of(torch), [torch_tensor(for_torch(array)) for array in arrays]
        contenders["torch"] = lambda: theirs(*tensors)
        baseline = "torch"
    return Workload(name, baseline, contenders)


def _random(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(0).random(shape, dtype=np.float32).astype(dtype) + 0.5


def _softmax(x: Any) -> Any:
    y = np.exp(x - x.max(1, keepdims=True))
    return y / y.sum(1, keepdims=True)


def _convolution() -> Workload:
    """Images of 56 by 56 with 64 channels, as in the first blocks of a ResNet."""
    count = 1 << max(logarithm() - 21, 0)

    def channels_first(x: Any) -> Any:
        order = (0, 3, 1, 2) if x.shape[1] == 56 else (3, 2, 0, 1)
        return np.ascontiguousarray(x.transpose(order))

    return _compared(
        f"conv {count}x56x56x64->64",
        [_random(count, 56, 56, 64), _random(3, 3, 64, 64)],
        lambda x, taps: tp.nn.conv2d(x, taps, 1, "same"),
        None,
        lambda torch: lambda x, taps: torch.nn.functional.conv2d(x, taps, padding=1),
        channels_first,
    )


def _matmul(dtype: str) -> Workload:
    """A product of two square matrices, each a quarter of a flat array."""
    side = 1 << (logarithm() - 2) // 2
    matrices = [_random(side, side, dtype=dtype) for _ in range(2)]
    numpy = (
        np.matmul if dtype == "float32" else None
    )  # BLAS has no half precision, and double takes too long
    name = f"matmul {side} {dtype}"
    return _compared(name, matrices, tp.matmul, numpy, lambda torch: torch.matmul)


def _flat(name: str, count: int, fewer: int = 0) -> Workload:
    """A function of large flat arrays, with the same name in all libraries."""
    log = logarithm() - fewer
    arrays = [_random(1 << log) for _ in range(count)]
    of_torch = {"sort": lambda torch: lambda x: torch.sort(x).values}
    return _compared(
        f"{name}, 2^{log}",
        arrays,
        getattr(tp, name),
        getattr(np, name),
        of_torch.get(name, lambda torch: getattr(torch, name)),
    )


def _rows(name: str) -> Workload:
    """A function of a matrix, whose rows have 1024 elements."""
    x = _random((1 << logarithm()) // WIDTH, WIDTH)
    functions: dict[str, tuple[Any, Any, Any]] = {
        "softmax": (tp.nn.softmax, _softmax, lambda torch: lambda x: torch.softmax(x, 1)),
        "sum of columns": (
            lambda x: tp.sum(x, axis=0),
            lambda x: np.sum(x, axis=0),
            lambda torch: lambda x: torch.sum(x, 0),
        ),
        "cumsum of rows": (
            lambda x: tp.cumsum(x, axis=1),
            lambda x: np.cumsum(x, axis=1),
            lambda torch: lambda x: torch.cumsum(x, 1),
        ),
        "transpose": (
            lambda x: tp.permute_dims(x, (1, 0)),
            lambda x: np.ascontiguousarray(x.T),
            lambda _torch: lambda x: x.T.contiguous(),
        ),
    }
    return _compared(f"{name}, 2^{logarithm()}", [x], *functions[name])


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    for name, count in (("add", 2), ("exp", 1), ("sum", 1)):
        yield f"large_{name}", partial(_flat, name, count)
    yield "large_sort", partial(_flat, "sort", 1, 4)
    for name in ("softmax", "sum of columns", "cumsum of rows", "transpose"):
        yield f"large_{name.replace(' ', '_')}", partial(_rows, name)
    for dtype in ("float32", "float64", "float16"):
        yield f"large_matmul_{dtype}", partial(_matmul, dtype)
    yield "large_conv", _convolution

"""Workloads of pooling, activation functions and normalization."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

IMAGES = (16, 32, 32, 64)
SIZE = 1 << 20

# NumPy's plain expressions; those that overflow would not be fair contenders.
CURVES: dict[str, Callable[[Any], Any]] = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: np.where(x > 0, 1.0507 * x, 1.7581 * np.expm1(np.minimum(x, 0))),
    "softplus": lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x > 0, x, x * np.float32(0.2)),
    "relu6": lambda x: np.minimum(np.maximum(x, 0), 6),
    "step": lambda x: np.where(x > 0, np.float32(1), np.float32(0)),
}


def curve(name: str) -> Workload:
    """An activation function of a million float32."""
    x = np.random.default_rng(0).standard_normal(SIZE, dtype=np.float32)
    plain, ours = CURVES[name], getattr(tp.nn, name)
    contenders: dict[str, Call] = {"numpy": lambda: plain(x)}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _applied(ours, x))
    if available("torch") and name != "step":
        import torch

        theirs, tensor = getattr(torch.nn.functional, name), torch_tensor(x)
        contenders["torch"] = lambda: theirs(tensor)
    return Workload(f"{name} 4 MB", "numpy", contenders)


def _applied(ours: Callable[..., object], x: Any) -> Call:
    tensor = tp.asarray(x)
    return lambda: ours(tensor)


def pooling(op: str, window: int, *, both: bool, channels_last: bool) -> Workload:
    """Pooling with strides of 2, forward or with its gradient; PyTorch in either layout."""
    x = np.random.default_rng(0).standard_normal(IMAGES, dtype=np.float32)
    pad = window // 2 if window % 2 else 0
    ours = getattr(tp.nn, op)

    def pooled(x: Any) -> Any:
        return ours(x, window, 2, pad)

    call = tp.grad(lambda x: tp.sum(pooled(x))) if both else pooled
    contenders = {
        f"tensorplug {backend}": on(backend, lambda: _applied(call, x)) for backend in backends()
    }
    layout = "NHWC" if channels_last else "NCHW"
    name = f"{op} {window}x{window}{' and gradient' if both else ''}, torch {layout}"
    if not available("torch"):
        return Workload(name, "tensorplug cpu", contenders)
    import torch

    function = getattr(torch.nn.functional, f"{op}2d")
    options = {"count_include_pad": False} if op == "avg_pool" else {}
    image = torch_tensor(x).permute(0, 3, 1, 2)
    image = image if channels_last else image.contiguous()
    if both:
        image.requires_grad_()
        contenders["torch"] = lambda: torch.autograd.grad(
            function(image, window, 2, pad, **options).sum(), image
        )
    else:
        contenders["torch"] = lambda: function(image, window, 2, pad, **options)
    return Workload(name, "torch", contenders)


def batch_norm() -> Workload:
    """Batch normalization with given statistics, scale and offset."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(IMAGES, dtype=np.float32)
    mean, offset = rng.standard_normal((2, IMAGES[-1]), dtype=np.float32)
    variance, scale = rng.random((2, IMAGES[-1]), dtype=np.float32) + 0.5
    epsilon = np.float32(1e-3)
    contenders: dict[str, Call] = {
        "numpy": lambda: (x - mean) / np.sqrt(variance + epsilon) * scale + offset
    }
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(
            backend, lambda: _batch_norm(x, mean, variance, offset, scale)
        )
    if available("torch"):
        import torch

        image = torch_tensor(x).permute(0, 3, 1, 2)
        m, v, w, b = (torch_tensor(array) for array in (mean, variance, scale, offset))
        contenders["torch"] = lambda: torch.nn.functional.batch_norm(
            image, m, v, w, b, training=False, eps=1e-3
        )
    return Workload("batch norm", "numpy", contenders)


def _batch_norm(*arrays: Any) -> Call:
    x, mean, variance, offset, scale = (tp.asarray(array) for array in arrays)
    return lambda: tp.nn.batch_norm(x, mean, variance, offset, scale)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    for name in CURVES:
        yield name, partial(curve, name)
    for op, window, both, last in product(
        ("max_pool", "avg_pool"), (2, 3), (False, True), (True, False)
    ):
        parts = (op, str(window), "both" if both else "fwd", "nhwc" if last else "nchw")
        yield "_".join(parts), partial(pooling, op, window, both=both, channels_last=last)
    yield "batch_norm", batch_norm

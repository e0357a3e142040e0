"""Workloads of convolution: plain, depthwise, in 3-D, with bias and ReLU; dilation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]
    Shape = tuple[int, ...]


@dataclass(frozen=True)
class Convolution:
    """A convolution of odd taps with strides of 1 and padding "same"."""

    name: str
    x: Shape  # channels last
    filter: Shape
    ours: Callable[..., Any]
    depthwise: bool = False

    def theirs(self) -> tuple[Callable[..., Any], Any, Any]:
        """Return PyTorch's function, and the image and the filter in its layout."""
        import torch

        x, taps = self.operands()
        rank = len(self.x) - 2
        if self.depthwise:
            taps = taps.reshape(*taps.shape[:2], 1, -1)
        image = torch_tensor(np.ascontiguousarray(np.moveaxis(x, -1, 1)))
        weights = torch_tensor(np.ascontiguousarray(np.moveaxis(taps, (-1, -2), (0, 1))))
        function = {2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}[rank]
        pads = [length // 2 for length in self.filter[:rank]]
        groups = self.x[-1] if self.depthwise else 1
        return (lambda p, q: function(p, q, padding=pads, groups=groups)), image, weights

    def operands(self) -> tuple[Any, Any]:
        """Return the image and the filter, channels last."""
        rng = np.random.default_rng(0)
        return (
            rng.standard_normal(self.x, dtype=np.float32),
            rng.standard_normal(self.filter, dtype=np.float32),
        )

    def forward(self) -> Workload:
        """The convolution alone."""
        contenders = {
            f"tensorplug {backend}": on(backend, self._prepared) for backend in backends()
        }
        baseline = "tensorplug cpu"
        if available("torch"):
            function, image, weights = self.theirs()
            contenders["torch"] = lambda: function(image, weights)
            baseline = "torch"
        return Workload(f"{self.name} fwd", baseline, contenders)

    def both(self) -> Workload:
        """Forward and backward with respect to image and filter."""
        contenders = {
            f"tensorplug {backend}": on(backend, self._gradient) for backend in backends()
        }
        baseline = "tensorplug cpu"
        if available("torch"):
            import torch

            function, image, weights = self.theirs()
            both = (image.requires_grad_(), weights.requires_grad_())
            contenders["torch"] = lambda: torch.autograd.grad(function(*both).sum(), both)
            baseline = "torch"
        return Workload(self.name, baseline, contenders)

    def _prepared(self) -> Call:
        image, taps = (tp.asarray(operand) for operand in self.operands())
        return lambda: self.ours(image, taps, 1, "same")

    def _gradient(self) -> Call:
        image, taps = (tp.asarray(operand) for operand in self.operands())
        gradient = tp.grad(lambda i, t: self.ours(i, t, 1, "same").sum(), argnums=(0, 1))
        return lambda: gradient(image, taps)


SMALL = Convolution("conv 64x8x8x1->16", (64, 8, 8, 1), (3, 3, 1, 16), tp.nn.conv2d)
MEDIUM = Convolution("conv 32x28x28x1->32", (32, 28, 28, 1), (3, 3, 1, 32), tp.nn.conv2d)
LARGE = Convolution("conv 16x32x32x64->64", (16, 32, 32, 64), (3, 3, 64, 64), tp.nn.conv2d)
DEPTHWISE = Convolution(
    "depthwise 16x32x32x64", (16, 32, 32, 64), (3, 3, 64, 1), tp.nn.depthwise_conv2d, True
)
VOLUME = Convolution(
    "conv3d 2x16x16x16x16->32", (2, 16, 16, 16, 16), (3, 3, 3, 16, 32), tp.nn.conv3d
)


def fused() -> Workload:
    """Convolution, bias and ReLU as one kernel, and as three ops."""
    x, taps = LARGE.operands()
    bias = np.linspace(-1, 1, 64, dtype=np.float32)
    tp.set_backend("cpu")
    image, weights, offsets = (tp.asarray(array) for array in (x, taps, bias))
    contenders: dict[str, Call] = {
        "tensorplug cpu": lambda: tp.nn.fused_conv2d(
            image, weights, 1, "same", bias=offsets, activation="relu"
        ),
        "tensorplug cpu, three ops": lambda: tp.nn.relu(
            tp.nn.conv2d(image, weights, 1, "same") + offsets
        ),
    }
    baseline = "tensorplug cpu, three ops"
    if available("torch"):
        import torch

        function, p, q = LARGE.theirs()
        b = torch_tensor(bias).reshape(1, -1, 1, 1)
        contenders["torch"] = lambda: torch.relu(function(p, q) + b)
    return Workload("conv, bias, relu 16x32x32x64", baseline, contenders)


def dilation() -> Workload:
    """Grayscale dilation, against the plain NumPy expression."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 32, 32, 64), dtype=np.float32)
    taps = rng.standard_normal((3, 3, 64), dtype=np.float32)
    tp.set_backend("cpu")
    image, weights = tp.asarray(x), tp.asarray(taps)

    def numpy() -> Any:
        windows = [x[:, i : i + 30, j : j + 30] + taps[i, j] for i in range(3) for j in range(3)]
        return np.maximum.reduce(windows)

    contenders: dict[str, Call] = {
        "numpy": numpy,
        "tensorplug cpu": lambda: tp.nn.dilation2d(image, weights),
    }
    return Workload("dilation 16x32x32x64", "numpy", contenders)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    yield "conv_small", SMALL.both
    yield "conv_medium", MEDIUM.both
    yield "conv_medium_forward", MEDIUM.forward
    yield "conv_large", LARGE.both
    yield "conv_large_forward", LARGE.forward
    yield "conv_fused", fused
    yield "depthwise", DEPTHWISE.both
    yield "depthwise_forward", DEPTHWISE.forward
    yield "conv3d", VOLUME.both
    yield "conv3d_forward", VOLUME.forward
    yield "dilation", dilation

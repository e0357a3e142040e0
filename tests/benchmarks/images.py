"""Workloads of images: resizing and its gradient, warping, crops, suppression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_device, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

SHAPE = (8, 256, 256, 3)


def _images() -> Any:
    return np.random.default_rng(0).random(SHAPE, dtype=np.float32)


def _ours(prepare: Callable[[], Call]) -> dict[str, Call]:
    return {f"tensorplug {backend}": on(backend, prepare) for backend in backends()}


def _channels_first(images: Any) -> Any:
    """Return a PyTorch view of images, in its channels-last layout."""

    return torch_tensor(images).permute(0, 3, 1, 2)


def resize(mode: str, size: int) -> Workload:
    """Images of 256 by 256 to another size, half pixels."""
    images = _images()
    function = tp.image.resize_bilinear if mode == "bilinear" else tp.image.resize_nearest_neighbor

    def ours() -> Call:
        x = tp.asarray(images)
        return lambda: function(x, (size, size), half_pixel_centers=True)

    contenders = _ours(ours)
    if available("torch"):
        import torch

        p = _channels_first(images)
        name = mode if mode == "bilinear" else "nearest-exact"
        contenders["torch"] = lambda: torch.nn.functional.interpolate(p, (size, size), mode=name)
    baseline = "torch" if "torch" in contenders else "tensorplug cpu"
    return Workload(f"{mode} to {size}", baseline, contenders)


def resize_gradient(size: int) -> Workload:
    """Bilinear resizing and its gradient."""
    images = _images()

    def ours() -> Call:
        x = tp.asarray(images)
        weights = tp.ones((SHAPE[0], size, size, SHAPE[3]))

        def value(x: Any) -> Any:
            return tp.image.resize_bilinear(x, (size, size), half_pixel_centers=True)

        return lambda: tp.vjp(value, x)[1](weights)

    contenders = _ours(ours)
    if available("torch"):
        import torch

        p = _channels_first(images).requires_grad_()
        q = torch.ones((SHAPE[0], SHAPE[3], size, size), device=torch_device()).contiguous(
            memory_format=torch.channels_last
        )

        def theirs() -> object:
            grown = torch.nn.functional.interpolate(p, (size, size), mode="bilinear")
            return torch.autograd.grad(grown, p, q)

        contenders["torch"] = theirs
    baseline = "torch" if "torch" in contenders else "tensorplug cpu"
    return Workload(f"bilinear to {size} and back", baseline, contenders)


def warp() -> Workload:
    """One affine transform for each image, bilinear."""
    images = _images()
    rows = np.float32([[0.9, 0.1, 5, -0.1, 0.9, 20, 0, 0]] * SHAPE[0])

    def ours() -> Call:
        x, transforms = tp.asarray(images), tp.asarray(rows)
        return lambda: tp.image.transform(x, transforms, "bilinear")

    contenders = _ours(ours)
    if available("torch"):
        import torch

        p = _channels_first(images)
        theta = torch_tensor(rows[:, :6].reshape(-1, 2, 3).copy())
        theta[:, :, 2] /= SHAPE[1] / 2

        def theirs() -> object:
            grid = torch.nn.functional.affine_grid(theta, p.shape, align_corners=True)
            return torch.nn.functional.grid_sample(p, grid, align_corners=True)

        contenders["torch"] = theirs
    baseline = "torch" if "torch" in contenders else "tensorplug cpu"
    return Workload("affine warp", baseline, contenders)


def crops() -> Workload:
    """A hundred crops of 32 by 32."""
    images, rng = _images(), np.random.default_rng(1)
    corners = np.sort(rng.random((100, 2, 2), dtype=np.float32), axis=1).reshape(100, 4)
    which = rng.integers(0, SHAPE[0], 100).astype(np.int32)

    def ours() -> Call:
        x, boxes, box_ind = tp.asarray(images), tp.asarray(corners), tp.asarray(which)
        return lambda: tp.image.crop_and_resize(x, boxes, box_ind, (32, 32))

    return Workload("100 crops", "tensorplug cpu", _ours(ours))


def suppression(count: int) -> Workload:
    """The best 100 of many boxes, compared with plain NumPy."""
    rng = np.random.default_rng(2)
    low = rng.random((count, 2), dtype=np.float32)
    boxes = np.concatenate([low, low + rng.random((count, 2), dtype=np.float32) / 5], axis=1)
    scores = rng.random(count, dtype=np.float32)

    def ours() -> Call:
        x, y = tp.asarray(boxes), tp.asarray(scores)
        return lambda: tp.image.non_max_suppression(x, y, 100)

    contenders = {"numpy": lambda: _greedy(boxes, scores), **_ours(ours)}
    return Workload(f"best 100 of {count} boxes", "numpy", contenders)


def _greedy(boxes: Any, scores: Any) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    taken: list[int] = []
    while order.size and len(taken) < 100:
        best, order = order[0], order[1:]
        taken.append(int(best))
        high = np.minimum(boxes[best, 2:], boxes[order, 2:])
        shared = np.prod(
            np.maximum(high - np.maximum(boxes[best, :2], boxes[order, :2]), 0), axis=1
        )
        order = order[shared / (areas[best] + areas[order] - shared) < 0.5]
    return taken


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    for mode in ("bilinear", "nearest"):
        for size in (128, 512):
            yield f"resize_{mode}{size}", lambda mode=mode, size=size: resize(mode, size)
    for size in (128, 512):
        yield f"resize_gradient{size}", lambda size=size: resize_gradient(size)
    yield "warp", warp
    yield "crops", crops
    yield "suppression", lambda: suppression(5000)

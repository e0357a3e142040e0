"""Workloads of linear algebra: Einstein sums, factorizations, Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]
    Shape = tuple[int, ...]

SUMS: dict[str, tuple[str, tuple[Shape, ...]]] = {
    "einsum matrices": ("ij,jk->ik", ((128, 128), (128, 128))),
    "einsum small": ("ij,jk->ik", ((4, 4), (4, 4))),
    "einsum attention": ("bqhd,bkhd->bhqk", ((16, 64, 4, 32), (16, 64, 4, 32))),
    "einsum chain": ("ab,bc,cd,de->ae", ((10, 1000), (1000, 5), (5, 500), (500, 20))),
    "einsum rows": ("ij,ij->i", ((1000, 64), (1000, 64))),
    "einsum outer": ("i,j->ij", ((1000,), (1000,))),
    "einsum bilinear": ("bi,ijk,bk->bj", ((64, 32), (32, 32, 32), (64, 32))),
}


def _floats(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _ours(function: Callable[..., Any], arrays: list[Any]) -> Callable[[], Call]:
    def prepared() -> Call:
        tensors = [tp.asarray(array) for array in arrays]
        return lambda: function(*tensors)

    return prepared


def compared(
    name: str,
    arrays: list[Any],
    ours: Callable[..., Any],
    numpy: Callable[..., Any],
    torch_of: Callable[[Any], Callable[..., Any]],
) -> Workload:
    """One function of the same arrays, in all libraries."""
    contenders: dict[str, Call] = {"numpy": lambda: numpy(*arrays)}
    for backend in backends():
        if backend == "cpu":  # other backends run LAPACK and FFT on the host
            contenders[f"tensorplug {backend}"] = on(backend, _ours(ours, arrays))
    if available("torch"):
        import torch

        theirs, tensors = torch_of(torch), [torch_tensor(array) for array in arrays]
        contenders["torch"] = lambda: theirs(*tensors)
    return Workload(name, "numpy", contenders)


def einsum(name: str) -> Workload:
    """One Einstein sum; NumPy's with its optimizer."""
    equation, shapes = SUMS[name]
    return compared(
        name,
        [_floats(*shape) for shape in shapes],
        lambda *xs: tp.einsum(equation, *xs),
        lambda *xs: np.einsum(equation, *xs, optimize=True),
        lambda torch: lambda *xs: torch.einsum(equation, *xs),
    )


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    for name in SUMS:
        yield name.replace(" ", "_"), lambda name=name: einsum(name)
    matrix, vector = _floats(256, 256) + 16 * np.eye(256, dtype=np.float32), _floats(256, 1)
    definite = matrix @ matrix.T
    for name, arrays in (
        ("inv", [matrix]),
        ("det", [matrix]),
        ("qr", [matrix]),
        ("svdvals", [matrix]),
        ("eigh", [definite]),
        ("cholesky", [definite]),
        ("solve", [matrix, vector]),
    ):
        yield (
            name,
            lambda name=name, arrays=arrays: compared(
                f"{name} 256",
                arrays,
                getattr(tp.linalg, name),
                getattr(np.linalg, name),
                lambda torch: getattr(torch.linalg, name),
            ),
        )
    for name, arrays in (
        ("fft", [_floats(64, 4096).astype(np.complex64)]),
        ("rfft", [_floats(64, 4096)]),
        ("fftn", [_floats(256, 256).astype(np.complex64)]),
    ):
        yield (
            name,
            lambda name=name, arrays=arrays: compared(
                f"{name} of {'x'.join(map(str, arrays[0].shape))}",
                arrays,
                getattr(tp.fft, name),
                getattr(np.fft, name),
                lambda torch: getattr(torch.fft, name),
            ),
        )

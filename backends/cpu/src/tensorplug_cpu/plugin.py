"""The hooks through which the core finds this backend and its kernels."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.hooks import hookimpl
from tensorplug.errors import BackendUnavailableError
from tensorplug_cpu.backend import CpuBackend
from tensorplug_cpu.kernels import (
    accumulation,
    activation,
    arrangement,
    bitwise,
    blocks,
    broadcasting,
    comparison,
    complexes,
    contraction,
    convolution,
    coordinates,
    counting,
    creation,
    cropping,
    cross_entropy,
    cumulative,
    depthwise,
    diagonals,
    elementwise,
    factorization,
    fused,
    gaussian_error,
    indexing,
    layer_normalization,
    linalg,
    morphology,
    movement,
    normalization,
    pixels,
    pooling,
    powers,
    ragged,
    random,
    reduction,
    resizing,
    rounding,
    searching,
    sets,
    setting,
    sigmoid_linear,
    slicing,
    sorting,
    sparse,
    spectral,
    strings,
    suppression,
    trigonometry,
    warping,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.tables import KernelTable

TABLES: tuple[KernelTable, ...] = (
    accumulation.kernels,
    activation.kernels,
    arrangement.kernels,
    bitwise.kernels,
    blocks.kernels,
    broadcasting.kernels,
    comparison.kernels,
    complexes.kernels,
    contraction.kernels,
    convolution.kernels,
    coordinates.kernels,
    counting.kernels,
    creation.kernels,
    cropping.kernels,
    cross_entropy.kernels,
    cumulative.kernels,
    depthwise.kernels,
    diagonals.kernels,
    elementwise.kernels,
    factorization.kernels,
    fused.kernels,
    gaussian_error.kernels,
    indexing.kernels,
    layer_normalization.kernels,
    linalg.kernels,
    morphology.kernels,
    movement.kernels,
    normalization.kernels,
    pixels.kernels,
    pooling.kernels,
    powers.kernels,
    ragged.kernels,
    random.kernels,
    reduction.kernels,
    resizing.kernels,
    rounding.kernels,
    searching.kernels,
    sets.kernels,
    sigmoid_linear.kernels,
    setting.kernels,
    slicing.kernels,
    sorting.kernels,
    sparse.kernels,
    spectral.kernels,
    strings.kernels,
    suppression.kernels,
    trigonometry.kernels,
    warping.kernels,
)


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open the CPU.

    Raises:
        BackendUnavailableError: for a device number other than 0.

    """
    if device not in (None, "0"):
        raise BackendUnavailableError(
            f"backend 'cpu' has one device, number 0, and no device {device!r}; "
            "all cores belong to it"
        )
    return CpuBackend()


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels of the CPU backend; none for any other."""
    return TABLES if backend.name == "cpu" else ()


@hookimpl
def tensorplug_diagnostics() -> Mapping[str, str]:
    """Return the versions of NumPy and its BLAS, and the machine."""
    configuration: Any = np.show_config(mode="dicts")
    blas = configuration.get("Build Dependencies", {}).get("blas", {})
    return {
        "numpy": np.__version__,
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip(),
        "machine": platform.machine() or "unknown",
    }

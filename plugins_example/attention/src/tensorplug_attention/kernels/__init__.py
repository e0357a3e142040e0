"""Kernels, in one module per backend, which is imported when that backend is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import KernelRefusedError

if TYPE_CHECKING:
    from tensorplug.plugin import TensorType


def refuse_lengths(
    q: TensorType, k: TensorType, v: TensorType, lengths: TensorType | None
) -> None:
    """Decline calls with lengths, and those in which heads share keys."""
    if lengths is not None or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise KernelRefusedError("lengths, and keys that heads share, are not supported")

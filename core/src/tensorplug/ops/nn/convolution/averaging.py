"""Averages over windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.dispatch.calls import as_tensor
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from tensorplug.contract.windows import Window, Windows
    from tensorplug.dispatch.tensor import Tensor


def sum_pairwise(parts: list[Tensor]) -> Tensor:
    """Return the sum of tensors of the same shape, added in pairs to keep errors small."""
    while len(parts) > 1:
        pairs = [a + b for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else pairs
    return parts[0]


def count_elements(window: Window) -> list[int]:
    """Return for each position the number of taps that are not on padding."""
    return [
        sum(
            0 <= at * window.stride + tap * window.dilation - window.before < window.size
            for tap in range(window.filter)
        )
        for at in range(window.out)
    ]


def divide_by_counts(x: Tensor, windows: Windows) -> Tensor:
    """Return ``x``, [batch, positions, channels], divided by each window's number of elements."""
    whole = 1
    number: Tensor | None = None
    for axis, window in enumerate(windows, start=1):
        along = count_elements(window)
        if all(count == window.filter for count in along):
            whole *= window.filter
            continue
        shape = [1] * x.ndim
        shape[axis] = window.out
        factor = reshape(as_tensor([float(count) for count in along], x.dtype), shape)
        number = factor if number is None else number * factor
    if number is None:
        return x / float(whole)
    return x / (number * float(whole))

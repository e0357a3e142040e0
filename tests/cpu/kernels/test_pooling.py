"""Gradients of pooling by blocks of tiles."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.ops.nn.convolution import pooling as ops
from tensorplug_cpu.windows import tiles


@pytest.mark.parametrize("block", [1, 40, 150])
def test_gradients_by_blocks_of_tiles(monkeypatch, block):
    """Blocks are rows of one image, one image, several; what no window covers gets nothing."""
    at = ops.geometry((5, 7, 9, 3), filter_size=(2, 3), strides=(2, 3), pad="valid")
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, (5, 7, 9, 3)).astype("float32")
    parts = x[:, :6].reshape(5, 3, 2, 3, 3, 3).transpose(0, 1, 3, 5, 2, 4).reshape(5, 3, 3, 3, 6)
    dy = rng.normal(size=(5, 3, 3, 3)).astype("float32")
    monkeypatch.setattr(tiles, "_BLOCK", block)
    steps = tiles.Tiles(5, at, 3)

    def whole(windows):
        apart = windows.reshape(5, 3, 3, 3, 2, 3).transpose(0, 1, 4, 2, 5, 3)
        return np.pad(apart.reshape(5, 6, 9, 3), ((0, 0), (0, 1), (0, 0), (0, 0)))

    first = np.arange(6) == parts.argmax(-1)[..., None]
    result = steps.to_first_equal(dy, x, parts.max(-1))
    np.testing.assert_array_equal(result, whole(np.where(first, dy[..., None], 0)))
    everywhere = whole(np.broadcast_to(dy[..., None], parts.shape))
    np.testing.assert_array_equal(steps.spread(dy, x.shape), everywhere)

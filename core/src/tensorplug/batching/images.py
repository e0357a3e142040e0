"""Batching of operations on images: the examples join the batch."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops import blocks
from tensorplug.ops.image import resizing, warping

batching: BatchingTable = BatchingTable()

batching.folded(resizing.RESIZE_BILINEAR, "images")
batching.folded(resizing.RESIZE_BILINEAR_GRAD, "images", "dy")
batching.folded(resizing.RESIZE_NEAREST_NEIGHBOR, "images")
batching.folded(resizing.RESIZE_NEAREST_NEIGHBOR_GRAD, "images", "dy")
batching.folded(warping.FLIP_LEFT_RIGHT, "image")
batching.folded(warping.ROTATE_WITH_OFFSET, "image")
batching.folded(blocks.DEPTH_TO_SPACE, "x")
batching.folded(blocks.SPACE_TO_DEPTH, "x")

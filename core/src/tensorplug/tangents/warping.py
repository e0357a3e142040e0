"""Tangents of rotated, mirrored and projected images, along the images."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.image import warping as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.FLIP_LEFT_RIGHT, "image")
tangents.linear(ops.ROTATE_WITH_OFFSET, "image", fill_value=0)
tangents.linear(ops.TRANSFORM, "image", fill_value=0)

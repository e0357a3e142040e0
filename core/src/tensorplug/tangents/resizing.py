"""Tangents of resizing."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.image import resizing as ops

tangents: TangentTable = TangentTable()
for _spec in (ops.RESIZE_BILINEAR, ops.RESIZE_NEAREST_NEIGHBOR):
    tangents.linear(_spec, "images")
for _spec in (ops.RESIZE_BILINEAR_GRAD, ops.RESIZE_NEAREST_NEIGHBOR_GRAD):
    tangents.linear(_spec, "dy")

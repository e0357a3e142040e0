"""Tangents of crops, along their images."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.image import cropping as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.CROP_AND_RESIZE, "image", extrapolation_value=0.0)

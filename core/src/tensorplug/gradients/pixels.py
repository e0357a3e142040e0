"""Images are whole numbers: nothing is differentiable."""

from __future__ import annotations

from tensorplug.ops import pixels as ops
from tensorplug.tables import GradientTable

gradients = GradientTable()
gradients.stop(ops.FROM_PIXELS, because="gives whole numbers")
gradients.stop(ops.DRAW, because="gives pixels: whole numbers")

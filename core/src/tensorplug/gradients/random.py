"""What is drawn does not depend smoothly on a key; keys pass through gradients as constants."""

from __future__ import annotations

from tensorplug.ops import random as ops
from tensorplug.tables import GradientTable

gradients = GradientTable()
gradients.stop(ops.MULTINOMIAL)
gradients.stop(ops.RANDOM_BITS)
gradients.stop(ops.RANDOM_EXPONENTIAL)
gradients.stop(ops.RANDOM_INTEGERS)
gradients.stop(ops.RANDOM_NORMAL)
gradients.stop(ops.RANDOM_UNIFORM)

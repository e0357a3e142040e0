"""Random draws are not differentiable in the key."""

from __future__ import annotations

from tensorplug.contract.tables import GradientTable
from tensorplug.ops.random import random as ops

gradients: GradientTable = GradientTable()
gradients.stop(ops.MULTINOMIAL, because="gives the classes drawn: whole numbers")
gradients.stop(ops.RANDOM_BITS, because="gives whole numbers")
gradients.stop(ops.RANDOM_EXPONENTIAL, because="draws do not follow a key smoothly")
gradients.stop(ops.RANDOM_INTEGERS, because="gives whole numbers")
gradients.stop(ops.RANDOM_NORMAL, because="draws do not follow a key smoothly")
gradients.stop(ops.RANDOM_UNIFORM, because="draws do not follow a key smoothly")

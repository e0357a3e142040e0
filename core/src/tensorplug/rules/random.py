"""Random draws are not differentiable in the key."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.random import random as ops

rules: RuleTable = RuleTable()
rules.stop(ops.MULTINOMIAL, because="gives the classes drawn: whole numbers")
rules.stop(ops.RANDOM_BITS, because="gives whole numbers")
rules.stop(ops.RANDOM_EXPONENTIAL, because="draws do not follow a key smoothly")
rules.stop(ops.RANDOM_INTEGERS, because="gives whole numbers")
rules.stop(ops.RANDOM_NORMAL, because="draws do not follow a key smoothly")
rules.stop(ops.RANDOM_UNIFORM, because="draws do not follow a key smoothly")

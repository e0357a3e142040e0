"""The gradient of the complement of the error function."""

from __future__ import annotations

from math import pi, sqrt

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise.unary import exp, square
from tensorplug.ops.special.error_functions import ERFC

rules: RuleTable = RuleTable()

rules.formulas(ERFC, x=lambda dy, x: dy * (-2.0 / sqrt(pi) * exp(-square(x))))

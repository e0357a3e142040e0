"""The complement of the error function from primitives: its formula, on tensors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.unary import abs as abs_
from tensorplug.ops.elementwise.unary import exp
from tensorplug.ops.special import complement_formulas, error_functions

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())

_FUNCTIONS: Final = SimpleNamespace(abs=abs_, exp=exp, where=where)


@decompositions.of(error_functions.ERFC)
def erfc(x: Tensor) -> Tensor:
    result: Tensor = complement_formulas.erfc(_FUNCTIONS, x)
    return result

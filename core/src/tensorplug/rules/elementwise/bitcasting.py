"""Gradients of reading bits as another dtype, where the bits are the parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops.creation import zeros
from tensorplug.ops.elementwise import bitcasting as ops
from tensorplug.ops.elementwise.complexes import conj

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.BITCAST, "input")
def bitcast(dy: Tensor, input_type: TensorType, dtype: DType) -> Tensor:
    own = input_type.dtype
    if dt.real_part(own) is not dt.real_part(dtype):
        return zeros(input_type.shape, dtype=own)  # the pieces of a float are not continuous
    # The imaginary part of a cotangent is minus the derivative (see ``gradients.complexes``).
    parts = conj(dy) if dtype in dt.COMPLEX and own not in dt.COMPLEX else dy
    moved = ops.bitcast(parts, own)
    return conj(moved) if own in dt.COMPLEX and dtype not in dt.COMPLEX else moved

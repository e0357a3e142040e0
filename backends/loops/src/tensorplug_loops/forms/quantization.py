"""Products of small integers, added up in 32 bits."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import DType, KernelRefusedError, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.matrix_products import product
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

_FACTORS: Final = frozenset({dt.int8, dt.uint8})


@forms.form(specs.QUANTIZED_MAT_MUL)
def quantized_mat_mul(
    a: Operand,
    b: Operand,
    a_scale: Operand | None,
    b_scale: Operand | None,
    a_zero_point: Operand | None,
    b_zero_point: Operand | None,
    *,
    transpose_b: bool,
    b_packed: DType | None,
    out: TensorType,
) -> Form:
    """Multiply matrices of integers; the decomposition scales the result."""
    rest = (a_scale, b_scale, a_zero_point, b_zero_point)
    if not {a.dtype, b.dtype} <= _FACTORS or rest != (None,) * len(rest) or b_packed is not None:
        raise KernelRefusedError("it multiplies int8 or uint8, and nothing else")
    return product(a, b, out, lambda x: expressions.cast(x, dt.int32), transpose_b=transpose_b)

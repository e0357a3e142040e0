"""Products of matrices: sums of products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops, broadcast, widened
from tensorplug_loops.forms.nn import epilogues
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Callable

    End = Callable[[Expression], Expression]

forms = FormTable()


def product(
    a: Operand,
    b: Operand,
    out: TensorType,
    factor: Callable[[Expression], Expression] = lambda x: x,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    end: Callable[[Loops], End] = lambda _: lambda total: total,
) -> Form:
    """Return the product of ``factor`` of matrices: loops over [*batch, row, column, inner].

    Narrow floats are multiplied in the dtype that they are computed in.
    ``end``: returns, for the loops, a function of the sums.
    """
    loops = Loops((*out.shape, a.shape[-2 if transpose_a else -1]))
    *batch, row, column, inner = loops.axes

    def read(x: Operand, *place: Expression) -> Expression:
        lead = broadcast(x.shape[:-2], batch, out.shape[:-2])
        return widened(factor(loops.read(x, *lead, *place)))

    left = read(a, inner, row) if transpose_a else read(a, row, inner)
    right = read(b, column, inner) if transpose_b else read(b, inner, column)
    finish = end(loops)
    total = loops.reduce("sum", left * right, [out.rank])
    return loops.write(out, expressions.cast(finish(total), out.dtype))


@forms.form(specs.BATCH_MAT_MUL)
def batch_mat_mul(
    a: Operand, b: Operand, *, transpose_a: bool, transpose_b: bool, out: TensorType
) -> Form:
    """Multiply the last two axes; the leading ones broadcast."""
    return product(a, b, out, transpose_a=transpose_a, transpose_b=transpose_b)


@forms.form(specs.FUSED_MAT_MUL)
def fused_mat_mul(
    a: Operand,
    b: Operand,
    bias: Operand | None,
    prelu_activation_weights: Operand | None,
    *,
    attributes: dict[str, Any],
    out: TensorType,
) -> Form:
    """Multiply, add a bias and apply an activation."""
    return product(
        a,
        b,
        out,
        transpose_a=attributes["transpose_a"],
        transpose_b=attributes["transpose_b"],
        end=lambda loops: epilogues.prepare(
            loops,
            out,
            bias,
            prelu_activation_weights,
            activation=attributes["activation"],
            leakyrelu_alpha=attributes["leakyrelu_alpha"],
        ),
    )

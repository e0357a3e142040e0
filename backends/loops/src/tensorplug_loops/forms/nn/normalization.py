"""Local response normalization: sums over neighbouring channels."""

from __future__ import annotations

from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


def _norm(total: Expression, bias: float, alpha: float) -> Expression:
    return total * alpha + bias


def _neighbours(out: TensorType, radius: int) -> tuple[Loops, list[Expression]]:
    """Return loops over [*out, neighbour], and the index of the neighbour."""
    loops = Loops((*out.shape, 2 * radius + 1))
    *lead, channel, step = loops.axes
    return loops, [*lead, channel + step - radius]


@forms.form(specs.LRN)
def lrn(
    x: Operand, *, depth_radius: int, bias: float, alpha: float, beta: float, out: TensorType
) -> Form:
    """Divide by a power of the sum of squares."""
    loops, index = _neighbours(out, depth_radius)
    wide = out.dtype.compute  # nothing is rounded before the result
    own = expressions.cast(loops.read(x, *loops.axes[:-1]), wide)
    near = expressions.cast(loops.read(x, *index, outside=0), wide)
    total = loops.reduce("sum", near * near, (out.rank,))
    value = own * _power(_norm(total, bias, alpha), -beta)
    return loops.write(out, expressions.cast(value, out.dtype))


def _power(base: Expression, exponent: float) -> Expression:
    return expressions.function("pow", base, exponent)


@forms.form(specs.LRN_GRAD)
def lrn_grad(
    x: Operand,
    y: Operand,
    dy: Operand,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
    out: TensorType,
) -> list[Form]:
    """Compute the norms first, then add up what the neighbours share."""
    first, index = _neighbours(out, depth_radius)
    wide = out.dtype.compute  # nothing is rounded before the result
    near = expressions.cast(first.read(x, *index, outside=0), wide)
    total = first.reduce("sum", near * near, (out.rank,))
    made = TensorType(wide, out.shape)
    norms = Operand(made, 3)
    loops, index = _neighbours(out, depth_radius)
    own, slope, norm = (
        expressions.cast(loops.read(each, *loops.axes[:-1]), wide) for each in (x, dy, norms)
    )
    terms = [expressions.cast(loops.read(each, *index, outside=0), wide) for each in (dy, y)]
    divisor = loops.read(norms, *index, outside=1)
    shared = loops.reduce("sum", terms[0] * terms[1] / divisor, (out.rank,))
    value = slope * _power(norm, -beta) - own * shared * (2.0 * alpha * beta)
    return [
        first.write(made, _norm(total, bias, alpha)),
        loops.write(out, expressions.cast(value, out.dtype)),
    ]

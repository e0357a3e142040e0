"""Reading at indices, and writing indices out as one-hot rows.

A device cannot raise: an index that is out of range reads the nearest element.
"""

from __future__ import annotations

from tensorplug.plugin import Scalar, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops, clamped, from_end, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.GATHER_V2)
def gather_v2(
    x: Operand, indices: Operand, *, axis: int, batch_dims: int, out: TensorType
) -> Form:
    """Read at an index that is read itself."""
    loops = Loops(out.shape)
    behind = axis + indices.rank - batch_dims
    at = loops.read(indices, *loops.axes[:batch_dims], *loops.axes[axis:behind])
    row = clamped(from_end(at, x.shape[axis]), x.shape[axis])
    return loops.write(out, loops.read(x, *loops.axes[:axis], row, *loops.axes[behind:]))


@forms.form(specs.GATHER_ND)
def gather_nd(params: Operand, indices: Operand, *, out: TensorType) -> Form:
    """Read at rows of indices."""
    loops = Loops(out.shape)
    lead = loops.axes[: indices.rank - 1]
    at = [
        clamped(from_end(loops.read(indices, *lead, number), length), length)
        for number, length in enumerate(params.shape[: indices.shape[-1]])
    ]
    return loops.write(out, loops.read(params, *at, *loops.axes[len(lead) :]))


@forms.form(specs.ONE_HOT)
def one_hot(indices: Operand, *, on_value: Scalar, off_value: Scalar, out: TensorType) -> Form:
    """Compare the index with the position along the last axis."""
    loops = Loops(out.shape)
    hot = whole(loops.read(indices, *loops.axes[:-1]))
    on, off = (expressions.constant(value, out.dtype) for value in (on_value, off_value))
    is_hot = expressions.apply("equal", hot, loops.axes[-1])
    return loops.write(out, expressions.where(is_hot, on, off))

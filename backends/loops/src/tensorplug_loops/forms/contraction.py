"""Einstein sums of one or two operands."""

from __future__ import annotations

from tensorplug.plugin import KernelRefusedError, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops, widened
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.EINSUM)
def einsum(xs: list[Operand], *, equation: str, out: TensorType) -> Form:
    """Loop over the labels of the result, then over those that are summed.

    Narrow floats are multiplied in the dtype that they are computed in.
    """
    if len(xs) > 2:
        raise KernelRefusedError("products of more than two operands are taken in pairs")
    left, _, kept = equation.partition("->")
    terms = left.split(",")
    labels = kept + "".join(sorted(set("".join(terms)) - set(kept)))
    sizes: dict[str, int] = {}
    for term, x in zip(terms, xs, strict=True):
        for label, size in zip(term, x.shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 0)) if size != 1 else sizes.get(label, 1)
    loops = Loops([sizes[label] for label in labels])
    values = [
        widened(
            loops.read(
                x,
                *(
                    loops.axes[labels.index(label)] if size == sizes[label] else 0
                    for label, size in zip(term, x.shape, strict=True)
                ),
            )
        )
        for term, x in zip(terms, xs, strict=True)
    ]
    value = values[0] * values[1] if len(xs) == 2 else values[0]
    summed = range(len(kept), len(labels))
    total = loops.reduce("sum", value, summed) if summed else value
    return loops.write(out, expressions.cast(total, out.dtype))

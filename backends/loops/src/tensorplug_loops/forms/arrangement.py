"""Repeating and reordering along axes."""

from __future__ import annotations

from tensorplug.algorithms import match_ranks
from tensorplug.plugin import Shape, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.TILE)
def tile(x: Operand, *, reps: tuple[int, ...], out: TensorType) -> Form:
    """Repeat along an axis before each axis."""
    sizes, counts = match_ranks(x.shape, reps)
    loops = Loops([length for pair in zip(counts, sizes, strict=True) for length in pair])
    return loops.write(out, loops.read(x.reshaped(sizes), *loops.axes[1::2]))


@forms.form(specs.REPEAT)
def repeat(x: Operand, *, repeats: int, axis: int, out: TensorType) -> Form:
    """Repeat along an axis behind the axis."""
    after = axis + 1
    loops = Loops((*x.shape[:after], repeats, *x.shape[after:]))
    return loops.write(out, loops.read(x, *loops.axes[:after], *loops.axes[after + 1 :]))


@forms.form(specs.REVERSE)
def reverse(x: Operand, *, dims: Shape, out: TensorType) -> Form:
    """Read from the end."""
    loops = Loops(out.shape)
    index = [
        length - 1 - axis if at in dims else axis
        for at, (axis, length) in enumerate(zip(loops.axes, x.shape, strict=True))
    ]
    return loops.write(out, loops.read(x, *index))


@forms.form(specs.MIRROR_PAD)
def mirror_pad(
    x: Operand, *, paddings: tuple[tuple[int, int], ...], mode: str, out: TensorType
) -> Form:
    """Reflect indices at both ends."""
    loops = Loops(out.shape)
    skipped = mode == "reflect"
    index = []
    for axis, (before, after), length in zip(loops.axes, paddings, x.shape, strict=True):
        at = axis - before if before else axis
        if before:
            at = expressions.where(at < 0, (0 if skipped else -1) - at, at)
        if after:
            last = length - 1
            at = expressions.where(at > last, (2 * last + (0 if skipped else 1)) - at, at)
        index.append(at)
    return loops.write(out, loops.read(x, *index))

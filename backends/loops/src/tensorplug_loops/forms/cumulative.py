"""Running sums and products; from the end, they are written backwards."""

from __future__ import annotations

from tensorplug.plugin import KernelSpec, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


def _register(spec: KernelSpec, op: str, neutral: int) -> None:
    @forms.form(spec)
    def form(x: Operand, *, axis: int, exclusive: bool, reverse: bool, out: TensorType) -> Form:
        """Scan along an axis; without the element itself, one element later."""
        loops = Loops(out.shape)
        source, target = loops.axes.copy(), loops.axes.copy()
        if reverse:
            source[axis] = target[axis] = out.shape[axis] - 1 - loops.axes[axis]
        if exclusive:
            source[axis] = source[axis] + (1 if reverse else -1)
        value = loops.read(x, *source, outside=neutral if exclusive else None)
        scanned = loops.reduce(op, expressions.cast(value, out.dtype), (axis,), running=True)
        if reverse:
            return loops.write_at(out, target, scanned, "last", neutral)
        return loops.write(out, scanned)


_register(specs.CUMSUM, "sum", 0)
_register(specs.CUMPROD, "prod", 1)

"""Loops: the calls of a group as expressions over the axes of one shape."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from tensorplug.compile.fusion.arguments import make_count
from tensorplug.compile.fusion.steps import Composite, Reduce, Reshape, count_calls
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract import dtypes as dt
from tensorplug.contract.expressions import FUNCTIONS, Expression, cast, constant, order, parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug.compile.fusion.steps import Elementwise, Step
    from tensorplug.compile.tracing.calls import Call
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device


MOST_STEPS: Final = 512
MOST_INPUTS: Final = 48
_ROUNDED: Final = {"parameter", "constant", "cast", "bitcast", *FUNCTIONS}
_ROUNDING: Final = {
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fma", "sqrt"),
}

Axes: TypeAlias = tuple[int, ...]
"""For each axis of a value, the axis of the loops along which it lies; -1 if its length is 1."""

Source: TypeAlias = Value | Constant


class Element(NamedTuple):
    """One element of a value that is computed in the loops."""

    expression: Expression
    axes: Axes


@dataclass(frozen=True, eq=False, slots=True)
class _Floating:
    """A value of the given shape that does not depend on values computed in the loops.

    ``place``: gives its element for the axes of the loops along which its axes lie.
    """

    shape: Shape
    place: Callable[[Axes], Expression]


class Reduced(NamedTuple):
    """A reduction in the loops, of ``expression`` along ``axes`` of the loops."""

    op: Literal["sum", "prod", "max", "min"]
    expression: Expression
    axes: frozenset[int]


class Leaves:
    """The parameters in the expressions of one program: what does not come from the same element.

    ``arguments``: as ``find_arguments`` returns them. ``sources``: where the parameters with these
    numbers come from, and the axes of the loops along which they vary. Those of reductions are not
    among them. ``counts``: the sizes whose product a constant is.
    """

    def __init__(self, arguments: Mapping[Constant, Constant]) -> None:
        self.sources: dict[int, tuple[Source, Axes]] = {}
        self.counts: dict[Constant, Shape] = {}
        self._arguments: Mapping[Any, Constant] = arguments
        self._found: dict[tuple[Source, Axes], Expression] = {}
        self._counted: dict[tuple[Shape, DType], Constant] = {}
        self._count = 0

    def of(self, source: Source, axes: Axes) -> Expression:
        """Return the parameter, or the constant, for a source that varies along ``axes``."""
        element = self._arguments.get(source)
        if element is not None:
            source, axes = element, ()
        type_ = source.placement.type
        known = self._found.get((source, axes))
        if known is None:
            # Numbers go into the expression, where compilers see them. They are read from the
            # device here, once for all runs.
            is_argument = element is not None or source in self.counts
            number = source.number() if isinstance(source, Constant) and not is_argument else None
            if number is not None:
                known = constant(number, type_.dtype)
            else:
                known = self.new(type_.dtype)
                self.sources[self._count - 1] = (source, axes)
            self._found[source, axes] = known
        return known

    def count(self, device: Device, sizes: Shape, dtype: DType) -> Constant:
        """Return the source of a number of elements, which is a parameter."""
        known = self._counted.get((sizes, dtype))
        if known is None:
            known = self._counted[sizes, dtype] = make_count(device, sizes, dtype)
            self.counts[known] = sizes
        return known

    def new(self, dtype: DType) -> Expression:
        """Return a parameter of its own, for the result of a reduction."""
        self._count += 1
        return parameter(self._count - 1, dtype)


@dataclass(eq=False)
class Loops:
    """Loops over ``shape``, with what they compute.

    ``elements``: of the values of the calls. ``reductions``: by the numbers of their parameters,
    in an order in which they can be computed. ``reduced``: the axes of all reductions; None
    without any. ``inputs``: the numbers of parameters that are read from outside.
    """

    leaves: Leaves
    shape: Shape
    reduced: frozenset[int] | None = None
    steps: int = 0
    elements: dict[Value, Element] = field(default_factory=dict)
    reductions: dict[int, Reduced] = field(default_factory=dict)
    inputs: set[int] = field(default_factory=set)

    def merge(self, other: Loops) -> Loops | None:
        """Return loops that compute both; None if that is not possible."""
        if self.shape != other.shape or self.steps + other.steps > MOST_STEPS:
            return None
        if self.reductions and other.reductions and self.reduced != other.reduced:
            return None
        return Loops(
            self.leaves,
            self.shape,
            other.reduced if self.reduced is None else self.reduced,
            self.steps + other.steps,
            {**self.elements, **other.elements},
            {**self.reductions, **other.reductions},
            self.inputs | other.inputs,
        )

    def add(self, call: Call, step: Step) -> bool:
        """Also compute ``call``; return False, and change nothing, if that is not possible."""
        count = count_calls(step)
        if self.steps + count > MOST_STEPS:
            return False
        # On copies: what a call that does not fit has added must not stay.
        trial = _Trial(self)
        try:
            return self._adopt(trial, call, step, count)
        finally:
            trial.close()

    def _adopt(self, trial: _Trial, call: Call, step: Step, count: int) -> bool:
        if not trial.add(call, step):
            return False
        adopted: dict[Value, Element] = {}
        for value in call.outputs:
            element = trial.output(value)
            if element is None:
                return False
            adopted[value] = element
        if len(trial.inputs) > MOST_INPUTS:
            return False
        self.steps += count
        self.elements.update(adopted)
        self.reductions, self.reduced, self.inputs = trial.reductions, trial.reduced, trial.inputs
        return True


class _Trial:
    """What loops would compute with one more call."""

    def __init__(self, loops: Loops) -> None:
        self.leaves, self.shape = loops.leaves, loops.shape
        self.reductions, self.reduced = dict(loops.reductions), loops.reduced
        self.inputs = set(loops.inputs)
        older: Any = loops.elements  # only read
        self.found: ChainMap[Source, Element | _Floating] = ChainMap({}, older)

    def close(self) -> None:
        """Forget what was found: values of unknown place refer to this object."""
        self.found.maps[0].clear()

    def add(self, call: Call, step: Step, *, inside: bool = False) -> bool:
        """Compute ``call``; return whether that is possible.

        ``inside``: it is part of a composite, which declares the sizes that it reads.
        """
        if isinstance(step, Composite):
            for own, operand in zip(step.inputs, call.operands(), strict=True):
                self.found[own] = self._operand(operand)
            if not all(self.add(inner, kind, inside=True) for inner, kind in step.calls):
                return False
            for value, output in zip(call.outputs, step.outputs, strict=True):
                self.found[value] = self._operand(output)
            return True
        operands: list[Any] = [
            [self._operand(member) for member in operand]
            if isinstance(operand, list)
            else operand and self._operand(operand)
            for operand in call.inputs
        ]
        out = call.outputs[0].placement.type
        element: Element | _Floating | None
        if isinstance(step, Reduce):
            element = self._reduce(step, operands[0], call, inside=inside)
        elif isinstance(step, Reshape):
            element = _reshape(operands[0], call.operands()[0].placement.type.shape, out.shape)
        else:
            element = self._compute(call, step, operands, out)
        if element is None:
            return False
        self.found[call.outputs[0]] = element
        return True

    def output(self, value: Value) -> Element | None:
        """Return the element of a result; None if the loops cannot fill it."""
        return self._placed(self.found[value])

    def _operand(self, operand: Source) -> Element | _Floating:
        element = self.found.get(operand)
        if element is not None:
            return element
        return _Floating(operand.placement.type.shape, partial(self._leaf, operand))

    def _leaf(self, source: Source, axes: Axes) -> Expression:
        leaf = self.leaves.of(source, tuple(axis for axis in axes if axis >= 0))
        if leaf.op == "parameter":
            self.inputs.add(int(leaf.value))  # type: ignore[arg-type]  # its number
        return leaf

    def _placed(self, value: Element | _Floating) -> Element | None:
        """Return the element of a value that is computed, or has all elements of the loops."""
        if isinstance(value, Element):
            return value
        if value.shape != self.shape:
            return None
        axes = _mask(range(len(self.shape)), self.shape)
        return Element(value.place(axes), axes)

    def _compute(
        self, call: Call, step: Elementwise, operands: Sequence[Any], out: TensorType
    ) -> Element | _Floating | None:
        @cache  # one object for one result
        def place(axes: Axes) -> Any:
            values = [_read(operand, axes) for operand in operands]
            value = step.rule(values, call.plan.attributes, out)
            return _rounded(value) if value and _rounds(value) else value

        flat = [
            member
            for operand in operands
            for member in (operand if isinstance(operand, list) else [operand])
        ]
        computed = [operand.axes for operand in flat if isinstance(operand, Element)]
        if not computed and out.shape != self.shape:
            return _Floating(out.shape, place)
        axes = self._align(out.shape, computed)
        return None if axes is None else Element(place(axes), axes)

    def _align(self, shape: Shape, operands: Sequence[Axes]) -> Axes | None:
        """Return the axes of a result that these operands broadcast to; None if they differ."""
        axes_of_result = (
            list(_mask(range(len(shape)), shape)) if shape == self.shape else [-1] * len(shape)
        )
        for axes in operands:
            for at, axis in enumerate(axes, len(shape) - len(axes)):
                if axis >= 0:
                    if axes_of_result[at] not in (-1, axis):
                        return None
                    axes_of_result[at] = axis
        if any(size != 1 and axis < 0 for size, axis in zip(shape, axes_of_result, strict=True)):
            return None
        lying = [axis for axis in axes_of_result if axis >= 0]
        return tuple(axes_of_result) if all(a < b for a, b in pairwise(lying)) else None

    def _reduce(
        self, step: Reduce, operand: Element | _Floating, call: Call, *, inside: bool
    ) -> Element | None:
        out = call.outputs[0].placement.type
        x = self._placed(operand)
        if x is None:
            return None
        everything = {axis for axis, size in enumerate(self.shape) if size != 1}
        if set(x.axes) - {-1} != everything:
            return None  # it would be computed as often as the loops go along the other axes
        along = frozenset(x.axes[axis] for axis in step.axes) - {-1}
        value = x.expression
        if along:
            if self.reductions and along != self.reduced:
                return None
            self.reduced = along
            if value.dtype is dt.bool_:  # as numbers
                value = cast(value, out.dtype if out.dtype in dt.INTEGER else dt.int32)
            result = self.leaves.new(value.dtype)
            self.reductions[int(result.value)] = Reduced(step.op, value, along)  # type: ignore[arg-type]  # its number
            value = _rounded(result) if step.op in {"sum", "prod"} else result
            if step.divides:
                shape = call.operands()[0].placement.type.shape
                sizes = tuple([shape[axis] for axis in step.axes if shape[axis] != 1])
                value = value / self._count(call, sizes, value.dtype, inside=inside)
        axes = [
            -1 if at in step.axes else axis
            for at, axis in enumerate(x.axes)
            if step.keeps_axes or at not in step.axes
        ]
        return Element(cast(value, out.dtype), tuple(axes))

    def _count(self, call: Call, sizes: Shape, dtype: DType, *, inside: bool) -> Expression:
        """Return a number of elements: an input, where other programs may have another number."""
        if inside:
            return constant(float(prod(sizes)), dtype)
        return self._leaf(self.leaves.count(call.plan.device, sizes, dtype), ())


def _rounded(x: Expression) -> Expression:
    """Return a number as it is where a kernel has written it to memory: rounded to its dtype.

    A renderer may compute narrow floats in a wider dtype, and keep what fits there. This is a
    cast to the own dtype, which rounds; a renderer that rounds each operation leaves it out.
    """
    return x if x.dtype.compute is x.dtype else Expression("cast", x.dtype, (x,))


def _rounds(x: Expression) -> bool:
    """Return whether a narrow float comes from operations whose results may need more digits."""
    if x.dtype.compute is x.dtype:
        return False

    def has_its_dtype(node: Expression) -> bool:
        return node.op in _ROUNDED

    return any(node.op in _ROUNDING for node in order([x], has_its_dtype))


def _mask(axes: Iterable[int], shape: Shape) -> Axes:
    """Return the axes with -1 for those of length 1."""
    return tuple(axis if size != 1 else -1 for axis, size in zip(axes, shape, strict=True))


def _read(operand: Any, axes: Axes) -> Any:
    """Return the expression of an operand at these axes of a result; a list of a list."""
    if isinstance(operand, list):
        return [_read(member, axes) for member in operand]
    if isinstance(operand, _Floating):
        own = axes[len(axes) - len(operand.shape) :]
        return operand.place(_mask(own, operand.shape))
    return operand and operand.expression


def _reshape(operand: Element | _Floating, old: Shape, new: Shape) -> Element | _Floating:
    """Return a value with axes of length 1 put in or left out."""
    if isinstance(operand, Element):
        return Element(operand.expression, _spread(operand.axes, old, new))
    return _Floating(new, lambda axes: operand.place(_spread(axes, new, old)))


def _spread(axes: Axes, old: Shape, new: Shape) -> Axes:
    """Return the axes of shape ``new`` for those of ``old``, which differ in axes of length 1."""
    long = iter([axis for axis, size in zip(axes, old, strict=True) if size != 1])
    return tuple(-1 if size == 1 else next(long) for size in new)

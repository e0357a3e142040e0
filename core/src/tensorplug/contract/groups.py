"""Groups: the language of loops in which kernels are described once, for every backend.

A group is loops over one shape. In each element, expressions are computed of inputs, of the
loops' indices and of the results of reductions. The core finds the groups of a program
(``compile.fusion``) and asks the backend for each of them (``Backend``'s optional capability
``CompilesGroups``); these are *plain* (``Group.is_plain``). Whoever writes kernels describes them
by groups that use the whole language: inputs and outputs at indices that are computed, reductions
with several states, and scans.

``docs/guides/loops.md`` defines the language by an interpreter on NumPy.

A narrow float may be computed in a wider dtype, but elementary functions round their results, and
so does a cast: also one to the own dtype, which stands where a call ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from tensorplug.contract import dtypes as dt
from tensorplug.contract.expressions import (
    Expression,
    axis,
    linearize,
    order,
    unify,
)
from tensorplug.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.contract.dtypes import Scalar
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType

__all__ = [
    "Affine",
    "Fold",
    "Group",
    "GroupInput",
    "GroupOutput",
    "Reduction",
    "Span",
    "affine",
    "axis",
    "mapped",
]

Span: TypeAlias = tuple[bool, ...]
Index: TypeAlias = tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class GroupInput:
    """An input of a group.

    ``type``: of its buffer, whose shape may have other axes than the group. ``spans``: for each
    axis of the group's shape, whether the input varies along it; it is repeated along the others.
    Without ``index``, its elements, in row-major order, are those along the axes that it spans.

    ``index``: for each axis of the buffer, which of its elements is read: an int64 expression of
    the loops' indices and of inputs with smaller numbers. ``outside``: the value where an index
    lies outside the buffer; None if none does (``mapped`` makes such inputs).
    """

    type: TensorType
    spans: Span
    index: Index | None = None
    outside: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of an expression along some axes of the group's shape.

    ``op``: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``. The last two are NaN if an element is,
    and either of 0.0 and -0.0. Sums of float16 are taken in float32; a sum is as accurate as one
    in pairs, or in blocks. ``expression`` refers to inputs, and to earlier reductions.
    ``axes``: for each axis of the group's shape, whether it is reduced.

    ``running``: a scan along one axis, whose result at each element combines those up to it.
    """

    op: Literal["sum", "prod", "max", "min"]
    expression: Expression
    axes: Span
    running: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction whose state is several numbers, such as the largest one and its position.

    ``elements``: the state of one element, as ``Reduction.expression``. ``initial``: the state of
    no element, constants. ``combine``: the state of some elements followed, in row-major order,
    by others, which is associative; with n numbers in a state, parameters 0 to n - 1 are the
    state of the former, and n to 2 n - 1 that of the latter. Each number of the state is a result.
    ``axes``, ``running``: as in ``Reduction``.
    """

    elements: tuple[Expression, ...]
    initial: tuple[Expression, ...]
    combine: tuple[Expression, ...]
    axes: Span
    running: bool = False


@dataclass(frozen=True, slots=True)
class GroupOutput:
    """An output of a group: an expression in each element that it spans.

    ``type``: of the buffer to return, dense. The expression does not vary along the axes that the
    output does not span. ``into``: the number of an input of the same type that nothing reads
    afterwards, and which spans all axes as the output does: the function may write the output into
    its buffer, and return that. None for new memory. Groups with reductions have none.

    ``index``: where each element is written, as in ``GroupInput``; what would lie outside is not
    written. ``combine``: what becomes of elements that meet: their sum, product, extremum (in any
    order), or the ``"last"`` in row-major order. ``initial``: what they meet first, and what is
    where nothing is written: a constant, or a parameter, an input of the output's type that has
    neither spans nor an index, and serves for nothing else. Outputs without ``index`` have
    neither.
    """

    expression: Expression
    type: TensorType
    spans: Span
    into: int | None = None
    index: Index | None = None
    combine: Literal["sum", "prod", "max", "min", "last"] | None = None
    initial: Expression | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Loops over ``shape`` that read each input, and write each output, once.

    The expressions' parameters are numbered: first the inputs, then the results of the
    reductions, then those of the folds. Folds may use the results of reductions and of earlier
    folds. All reductions and folds are along the same axes, and either all are running or none.
    ``name``: of the calls, for messages.
    """

    name: str
    shape: Shape
    inputs: tuple[GroupInput, ...]
    reductions: tuple[Reduction, ...]
    outputs: tuple[GroupOutput, ...]
    folds: tuple[Fold, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether nothing is computed of indices, and no reduction has states or is a scan."""
        return not (
            self.folds
            or any(index is not None for index in self._indices())
            or any(each.running for each in self.reductions)
            or any(node.op == "axis" for node in linearize(self.expressions()))
        )

    def unified(self) -> Group:
        """Return the group with each distinct operation as one object."""
        return self.rewritten(unify(self.expressions()))

    def expressions(self) -> list[Expression]:
        """Return the expressions: of reductions, outputs, folds, inputs' and outputs' indices.

        Constants that start a fold or an
        output, and how states combine, are not among them.
        """
        roots = [
            *[reduction.expression for reduction in self.reductions],
            *[output.expression for output in self.outputs],
        ]
        for fold in self.folds:
            roots += fold.elements
        for index in self._indices():
            roots += index or ()
        return roots

    def _indices(self) -> list[Index | None]:
        return [*[each.index for each in self.inputs], *[each.index for each in self.outputs]]

    def rewritten(self, expressions: Sequence[Expression]) -> Group:
        """Return the group with others in the place of its ``expressions()``, in their order.

        The outputs' ``initial`` stays.
        """
        rest = iter(expressions)

        def take(count: int) -> tuple[Expression, ...]:
            return tuple(next(rest) for _ in range(count))

        reductions = take(len(self.reductions))
        results = take(len(self.outputs))
        folds = tuple(replace(fold, elements=take(len(fold.elements))) for fold in self.folds)
        taken = [None if index is None else take(len(index)) for index in self._indices()]
        read, written = taken[: len(self.inputs)], taken[len(self.inputs) :]
        return Group(
            self.name,
            self.shape,
            tuple(replace(each, index=at) for each, at in zip(self.inputs, read, strict=True)),
            tuple(
                replace(each, expression=root)
                for each, root in zip(self.reductions, reductions, strict=True)
            ),
            tuple(
                replace(each, expression=root, index=at)
                for each, root, at in zip(self.outputs, results, written, strict=True)
            ),
            folds,
        )

    def key(self) -> Hashable:
        """Return what the computation depends on, but for the lengths of the axes.

        Strides and distances in indices are constants, which a compiler takes for numbers, so that
        one program serves all sizes.
        """
        group = self.unified()
        roots = group.expressions()
        operations = linearize(roots)
        number = {id(operation): at for at, operation in enumerate(operations)}
        return (
            len(group.shape),
            tuple(
                (each.type.dtype, each.spans, each.index and each.type.rank, repr(each.outside))
                for each in group.inputs
            ),
            tuple((each.op, each.axes, each.running) for each in group.reductions),
            tuple(
                (*map(str, (*each.initial, *each.combine)), each.axes, each.running)
                for each in group.folds
            ),
            tuple(
                (
                    each.type.dtype,
                    each.spans,
                    each.into,
                    each.index and (each.type.rank, each.combine),
                    str(each.initial),
                )
                for each in group.outputs
            ),
            tuple(number[id(root)] for root in roots),
            tuple(
                (
                    operation.op,
                    operation.dtype,
                    repr(operation.value),
                    *(number[id(operand)] for operand in operation.operands),
                )
                for operation in operations
            ),
        )


def mapped(
    type_: TensorType,
    index: Sequence[Expression],
    shape: Shape,
    before: Sequence[GroupInput] = (),
    *,
    outside: Scalar | None = None,
) -> GroupInput:
    """Return an input that is read at an index.

    Args:
        type_: of the buffer.
        index: for each axis of the buffer, an int64 expression of ``axis(number)``, and of the
            inputs ``before`` as parameters.
        shape: of the group, whose axes ``index`` counts along.
        before: the group's inputs so far.
        outside: the value where the index lies outside the buffer; None if it never does.

    Raises:
        DTypeError: an index is no int64.

    Example:
        Every window of three neighbours of a vector, 0 beyond its ends::

            mapped(x, [axis(0) + axis(1) - 1], (x.size, 3), outside=0)

    """
    spans = [False] * len(shape)
    for node in order(index, lambda _: False):
        if node.op == "axis":
            spans[int(node.value)] = True  # type: ignore[arg-type]  # a number
        elif node.op == "parameter":
            at = before[int(node.value)].spans  # type: ignore[arg-type]  # a number
            spans = [own or other for own, other in zip(spans, at, strict=True)]
    for each in index:
        if each.dtype is not dt.int64:
            raise DTypeError(f"mapped: an index is {each.dtype}, not int64")
    return GroupInput(type_, tuple(spans), tuple(index), outside)


@dataclass(frozen=True, slots=True)
class Affine:
    """An index ``constant + sum(steps[k] * axis(k))``, and further terms that are not affine.

    ``steps``: one integer for each axis of the group. ``rest``: the sum of the other terms, such
    as an index that is read from an input; None if there is none.
    """

    steps: tuple[int, ...]
    constant: int
    rest: Expression | None = None


def affine(index: Expression, rank: int) -> Affine:
    """Return an index of a group with ``rank`` axes as a sum of multiples of axes and the rest."""
    if index.op == "axis":
        return Affine(tuple(int(at == index.value) for at in range(rank)), 0)
    if index.op == "constant":
        return Affine((0,) * rank, index.value)  # type: ignore[arg-type]  # an integer
    if index.op in {"add", "subtract"}:
        a, b = (affine(operand, rank) for operand in index.operands)
        sign = 1 if index.op == "add" else -1
        rest = a.rest
        if b.rest is not None:
            term = b.rest if sign == 1 else -b.rest
            rest = term if rest is None else rest + term
        steps = tuple(x + sign * y for x, y in zip(a.steps, b.steps, strict=True))
        return Affine(steps, a.constant + sign * b.constant, rest)
    if index.op == "negative":
        return affine(0 - index.operands[0], rank)
    if index.op == "multiply":
        a, b = (affine(operand, rank) for operand in index.operands)
        if any(a.steps) or a.rest is not None:
            a, b = b, a
        if not any(a.steps) and a.rest is None:
            by = a.constant
            rest = None if b.rest is None else b.rest * by
            return Affine(tuple(by * step for step in b.steps), by * b.constant, rest)
    return Affine((0,) * rank, 0, index)

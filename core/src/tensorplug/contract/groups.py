"""Groups: calls of a program that a backend runs together, such as softmax or a chain.

The core finds the groups of a program (``compile.fusion``) and asks the backend for each of them
(``Backend``'s optional capability ``CompilesGroups``). A group is loops over one shape. In each
element, expressions are computed of the inputs and of the results of reductions.

A narrow float may be computed in a wider dtype, but for a cast: also one to the own dtype, which
stands where a call ends, rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tensorplug.contract.expressions import Expression, linearize, parameter, unify
from tensorplug.contract.spec import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.contract.shapes import Shape


Span = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class GroupInput:
    """An input of a group.

    ``type``: of its buffer, whose shape may have other axes than the group. ``spans``: for each
    axis of the group's shape, whether the input varies along it; it is repeated along the others.
    Its elements, in row-major order, are those along the axes that it spans.
    """

    type: TensorType
    spans: Span


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of an expression along some axes of the group's shape.

    ``op``: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``. The last two are NaN if an element is,
    and either of 0.0 and -0.0. Sums of float16 are taken in float32; a sum is as accurate as one
    in pairs, or in blocks. ``expression`` refers to inputs, and to earlier reductions.
    ``axes``: for each axis of the group's shape, whether it is reduced.
    """

    op: Literal["sum", "prod", "max", "min"]
    expression: Expression
    axes: Span


@dataclass(frozen=True, slots=True)
class GroupOutput:
    """An output of a group: an expression in each element that it spans.

    ``type``: of the buffer to return, dense. The expression does not vary along the axes that the
    output does not span. ``into``: the number of an input of the same type that nothing reads
    afterwards, and which spans all axes as the output does: the function may write the output into
    its buffer, and return that. None for new memory. Groups with reductions have none.
    """

    expression: Expression
    type: TensorType
    spans: Span
    into: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Loops over ``shape`` that read each input, and write each output, once.

    The expressions' parameters are numbered: first the inputs, then the results of the
    reductions. All reductions are along the same axes. ``name``: of the calls, for messages.
    """

    name: str
    shape: Shape
    inputs: tuple[GroupInput, ...]
    reductions: tuple[Reduction, ...]
    outputs: tuple[GroupOutput, ...]

    def unified(self) -> Group:
        """Return the group with each distinct operation as one object."""
        count = len(self.reductions)
        roots = unify(self.expressions())
        return Group(
            self.name,
            self.shape,
            self.inputs,
            tuple(
                Reduction(reduction.op, root, reduction.axes)
                for reduction, root in zip(self.reductions, roots[:count], strict=True)
            ),
            tuple(
                replace(output, expression=root)
                for output, root in zip(self.outputs, roots[count:], strict=True)
            ),
        )

    def expressions(self) -> list[Expression]:
        """Return the expressions of the reductions, then those of the outputs."""
        return [
            *(reduction.expression for reduction in self.reductions),
            *(output.expression for output in self.outputs),
        ]

    def key(self) -> Hashable:
        """Return what the computation depends on, but for the lengths of the axes."""
        group = self.unified()
        operations = linearize(group.expressions())
        number = {id(operation): at for at, operation in enumerate(operations)}
        return (
            len(group.shape),
            tuple((operand.type.dtype, operand.spans) for operand in group.inputs),
            tuple(
                (reduction.op, number[id(reduction.expression)], reduction.axes)
                for reduction in group.reductions
            ),
            tuple(
                (number[id(output.expression)], output.type.dtype, output.spans, output.into)
                for output in group.outputs
            ),
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


def lift_constants(
    group: Group, choose: Callable[[Sequence[Expression]], Sequence[Expression]]
) -> tuple[Group, Sequence[Expression]]:
    """Return the group with further inputs for some of its constants, and these constants.

    One compiled program then serves all bounds, slopes and lengths. The inputs have rank 0, and
    come after the others.

    Args:
        group: with constants in its expressions.
        choose: returns the constants to lift, given all nodes of the group's expressions.

    """
    roots = unify(group.expressions())
    nodes = linearize(roots)
    chosen = choose(nodes)
    if not chosen:
        return group, chosen
    first = len(group.inputs)
    new = {id(node): parameter(first + at, node.dtype) for at, node in enumerate(chosen)}
    for node in nodes:
        number = int(node.value) if node.op == "parameter" else -1  # type: ignore[arg-type]
        if number >= first:  # the result of a reduction
            new[id(node)] = parameter(number + len(chosen), node.dtype)
        elif id(node) not in new:
            operands = tuple(new[id(operand)] for operand in node.operands)
            new[id(node)] = (
                Expression(node.op, node.dtype, operands, node.value) if operands else node
            )
    made = [new[id(root)] for root in roots]
    count = len(group.reductions)
    nowhere = (False,) * len(group.shape)
    lifted = Group(
        group.name,
        group.shape,
        (*group.inputs, *(GroupInput(TensorType(node.dtype, ()), nowhere) for node in chosen)),
        tuple(
            replace(each, expression=root)
            for each, root in zip(group.reductions, made[:count], strict=True)
        ),
        tuple(
            replace(each, expression=root)
            for each, root in zip(group.outputs, made[count:], strict=True)
        ),
    )
    return lifted, chosen

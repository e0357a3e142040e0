"""The gradient of an Einstein sum is an Einstein sum of dy with all other operands."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import contraction as ops
from tensorplug.ops import movement
from tensorplug.ops.contraction_order import label_sizes, terms
from tensorplug.ops.creation import zeros_like
from tensorplug.ops.elementwise.arithmetic import add_n
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.EINSUM, "xs")
def einsum(dy: Tensor, xs: list[Tensor], equation: str) -> list[Tensor]:
    labelled, out = terms(equation)
    sizes = label_sizes(labelled, [x.shape for x in xs])
    result = []
    for at, (x, labels) in enumerate(zip(xs, labelled, strict=True)):
        others = [(xs[k], labelled[k]) for k in range(len(xs)) if k != at]
        # An axis of length 1 that was broadcast is summed over.
        own = [label for label, n in zip(labels, x.shape, strict=True) if n == sizes[label]]
        known = label_sizes(
            [out, *(other for _, other in others)],
            [dy.shape, *(other.shape for other, _ in others)],
        )
        kept = "".join(label for label in dict.fromkeys(own) if known.get(label) == sizes[label])
        inputs = ",".join([out, *(other for _, other in others)])
        partial = ops.einsum(f"{inputs}->{kept}", dy, *(other for other, _ in others))
        result.append(_place(partial, kept, labels, x.shape, sizes))
    return result


def _place(
    partial: Tensor, wanted: str, labels: str, shape: Shape, sizes: dict[str, int]
) -> Tensor:
    """Return ``partial``, which has the labels ``wanted``, in the shape of the operand.

    It is broadcast along labels that it lacks. A repeated label puts it on the diagonal.
    """
    first: dict[str, int] = {}
    for axis, label in enumerate(labels):
        if shape[axis] == sizes[label]:
            first.setdefault(label, axis)
    axes = [first[label] for label in wanted]
    ordered = movement.permute_dims(partial, sorted(range(len(axes)), key=axes.__getitem__))
    kept = tuple(shape[axis] if axis in axes else 1 for axis in range(len(shape)))
    spread = movement.broadcast_to(movement.reshape(ordered, kept), shape)
    for axis, label in enumerate(labels):
        if shape[axis] == sizes[label] and first[label] != axis:
            on_diagonal = equal(_find_positions(shape, first[label]), _find_positions(shape, axis))
            spread = where(on_diagonal, spread, zeros_like(spread))
    return spread


def _find_positions(shape: Shape, axis: int) -> Tensor:
    aligned = tuple(n if at == axis else 1 for at, n in enumerate(shape))
    return movement.reshape(arange(shape[axis]), aligned)


@rules.jvp(ops.EINSUM, "xs")
def einsum_jvp(xs_dot: list[Tensor | None], xs: list[Tensor], equation: str) -> Tensor:
    parts = [
        ops.einsum(equation, *xs[:at], tangent, *xs[at + 1 :])
        for at, tangent in enumerate(xs_dot)
        if tangent is not None
    ]
    return add_n(parts) if len(parts) > 1 else parts[0]


@rules.batch(ops.EINSUM)
def einsum_batch(xs: list[Tensor], *, equation: str) -> Any:
    letter = next((letter for letter in ascii_letters if letter not in equation), None)
    if letter is None:
        return NotImplemented
    left, right = equation.split("->")
    terms = [letter + term for term in left.split(",")]
    return ops.einsum(f"{','.join(terms)}->{letter}{right}", *xs)

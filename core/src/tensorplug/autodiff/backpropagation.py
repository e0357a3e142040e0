"""Backpropagation over the tape, from the nodes of results to the requested leaves.

It calls ops in the caller's context. If that context records, the gradients can be
differentiated again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.tape import CallNode, Node, OutputNode
from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.calls import to_device
from tensorplug.dispatch.context import current_context, engine_of, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import GradientError
from tensorplug.ops import creation, movement, reduction
from tensorplug.ops.elementwise import arithmetic, casting, complexes

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Iterable, Sequence

    from tensorplug.autodiff.recipes import Step
    from tensorplug.dispatch.device import Placement


class FunctionNode(Node, ABC):
    """A call of a Python function with a gradient of its own."""

    __slots__ = ()

    @property
    def repeats(self) -> Hashable:
        """What the node does, if other tapes may have nodes that do the same; else None.

        Such a node has the methods ``values``, of ``CallNode``, and ``stand_in``.
        """
        return None

    def values(self) -> Iterable[tuple[Any, Placement]]:
        """Return the saved buffers with their placements."""
        return ()

    def stand_in(self, parents: tuple[Node | None, ...], saved: Sequence[Tensor]) -> FunctionNode:
        """Return a node that does the same with other saved tensors, for a trace."""
        raise NotImplementedError

    @abstractmethod
    def vjp(self, cotangent: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Return the cotangents of the parents on ``path``.

        ``cotangent``: that of the output; for multiple outputs a list, with None for outputs
        without one.
        """


def backpropagate(
    starts: Sequence[tuple[Node | None, Tensor]], leaves: Sequence[Node]
) -> dict[Node, Tensor]:
    """Return the cotangents of ``leaves``, given those of ``starts``."""
    on_tape = [(node, dy) for node, dy in starts if node is not None]
    if not on_tape or not leaves:
        return {}
    context = current_context()
    if context.autocast is not None:  # the backward pass has the dtypes of the forward pass
        with use_context(context.replace(autocast=None)):
            return backpropagate(on_tape, leaves)
    cotangents: dict[Node, Tensor] = engine_of(context).handlers.backward(walk, on_tape, leaves)
    return cotangents


def walk(starts: Sequence[tuple[Node, Tensor]], leaves: Sequence[Node]) -> dict[Node, Tensor]:
    """Return the cotangents of ``leaves``, from one gradient rule to the next."""
    path = find_path([node for node, _ in starts], leaves)
    pending: dict[Node, Any] = {}
    for node, dy in starts:
        if node in path:
            pending[node] = _added(pending.get(node), dy)
    targets = set(leaves)
    for node in reversed(path):
        if node in targets or node not in pending:
            continue
        cotangent = pending.pop(node)
        if isinstance(node, OutputNode):
            call = node.parents[0]
            assert call is not None
            dys = pending.setdefault(call, [None] * call.count)
            # An output that a rule has used has a second node, besides the user's.
            dys[node.index] = _added(dys[node.index], cotangent)
            continue
        for parent, gradient in _apply_vjp(node, cotangent, path):
            if parent in path:
                pending[parent] = _added(pending.get(parent), gradient)
    return pending


def _added(old: Tensor | None, new: Tensor) -> Tensor:
    """Return the sum of two cotangents of one node, on the device of the first.

    They come from different devices if the program has placed other inputs of its uses there.
    """
    if old is None:
        return new
    a, b = old._placement, new._placement
    if a.committed and b.committed and a.device is not b.device:
        new = to_device(new, old.device)
    return arithmetic.add(old, new)


def _apply_vjp(node: Node, cotangent: Any, path: dict[Node, None]) -> list[tuple[Node, Tensor]]:
    """Return the cotangents of the parents of ``node``."""
    if isinstance(node, CallNode):
        return _call_vjp(node, cotangent, path)
    if isinstance(node, FunctionNode):
        return node.vjp(cotangent, path)
    # The leaf of an inner tape has the value of its parent.
    return [(parent, cotangent) for parent in node.parents if parent is not None]


_age = attrgetter("order")


def find_path(roots: Sequence[Node], leaves: Sequence[Node]) -> dict[Node, None]:
    """Return the nodes on paths from ``roots`` back to ``leaves``, oldest first."""
    oldest = min(leaf.order for leaf in leaves)
    targets = set(leaves)
    seen = set(roots)
    stack = list(seen)
    while stack:
        node = stack.pop()
        if node in targets:
            continue  # the parents of a leaf belong to an outer tape
        for parent in node.parents:
            if parent is not None and parent.order >= oldest and parent not in seen:
                seen.add(parent)
                stack.append(parent)
    path: dict[Node, None] = {}
    for node in sorted(seen, key=_age):
        if node in targets:
            path[node] = None
            continue
        for parent in node.parents:
            if parent in path:
                path[node] = None
                break
    return path


def _call_vjp(node: CallNode, cotangent: Any, path: dict[Node, None]) -> list[tuple[Node, Tensor]]:
    dys = cotangent if isinstance(cotangent, list) else [cotangent]
    if len(dys) > 1:  # the cotangents of unused outputs are zeros
        for index, (dy, placement) in enumerate(zip(dys, node.plan.outputs, strict=True)):
            if dy is None:
                dys[index] = creation.zeros(placement.type.shape, dtype=placement.type.dtype)
    result: list[tuple[Node, Tensor]] = []
    for step, gradient in node.vjp(dys, path):
        if step.count is None:
            parent = node.parents[step.first]
            assert parent is not None  # it is on the path
            if gradient.__class__ is Tensor and gradient._placement.type is step.type:
                result.append((parent, gradient))  # the most frequent case
            else:
                result.append((parent, fit(gradient, step.type, _what(node, step))))
        else:
            result += _split_list(node, step, gradient)
    return result


def _split_list(node: CallNode, step: Step, gradients: Any) -> list[tuple[Node, Tensor]]:
    """Return the gradients of a variadic input with their nodes."""
    if not isinstance(gradients, list | tuple):
        raise GradientError(
            f"the gradient of {_what(node, step)} is {type(gradients).__name__}, but must be a "
            "list of tensors"
        )
    if len(gradients) != step.count:
        raise GradientError(
            f"the gradient of {_what(node, step)} is {len(gradients)} tensors, but the input "
            f"has {step.count}"
        )
    return [
        (parent, fit(gradient, type_, _what(node, step)))
        for parent, gradient, type_ in zip(
            node.parents[step.first : step.first + step.count], gradients, step.type, strict=True
        )
        if parent is not None
    ]


def _what(node: CallNode, step: Step) -> str:
    return f"{node.plan.spec.name!r} with respect to {step.name!r}"


def fit(gradient: Any, type_: TensorType, what: str) -> Tensor:
    """Return a gradient summed over the axes along which its input was broadcast.

    The gradient of a real input is the real part of a complex gradient. That of a narrow float
    may be in the dtype to compute in.

    Raises:
        GradientError: it is not a tensor, or its dtype or shape does not fit the input.

    """
    if not isinstance(gradient, Tensor):
        raise GradientError(f"the gradient of {what} is {type(gradient).__name__}, not a tensor")
    if gradient.dtype in dt.COMPLEX and type_.dtype is dt.real_part(gradient.dtype):
        return fit(complexes.real(gradient), type_, what)
    if gradient.type == type_:
        return gradient
    if gradient.dtype is type_.dtype.compute is not type_.dtype:
        wide = fit(gradient, TensorType(gradient.dtype, type_.shape), what)
        return casting.astype(wide, type_.dtype)
    shape, target = gradient.type.sizes, type_.sizes
    fits = len(shape) >= len(target) and all(
        length in (1, shape[axis - len(target)]) for axis, length in enumerate(target)
    )
    if gradient.dtype is not type_.dtype or not fits:
        raise GradientError(f"the gradient of {what} is {gradient.type}, but must be {type_}")
    axes = shapes.broadcast_axes(target, shape)
    total = reduction.sum(gradient, axis=axes)
    return total if total.type.sizes == target else movement.reshape(total, target)

"""Backpropagation: from a result's node back over the tape to the leaves that were asked for.

Ops do the work in the caller's context. If that context records, what they do can be
differentiated in turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.tape import CallNode, Node, OutputNode, Step
from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import GradientError
from tensorplug.ops import complexes, creation, elementwise, movement, reduction

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from tensorplug.contract.spec import TensorType

__all__ = ["FunctionNode", "backpropagate", "fit"]


class FunctionNode(Node, ABC):
    """A call of a Python function whose gradient does not come from rules of kernels."""

    __slots__ = ()

    @abstractmethod
    def pull(self, arrived: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Return what flows on to those parents through which ``path`` goes on.

        ``arrived``: the gradient; if there are several outputs, a list of them with None for
        those to which nothing flowed.
        """


def backpropagate(
    starts: Sequence[tuple[Node | None, Tensor]], leaves: Sequence[Node]
) -> dict[Node, Tensor]:
    """Return the gradients that arrive at ``leaves`` when they arrive at ``starts``."""
    pending: dict[Node, Any] = {}
    roots = [node for node, _ in starts if node is not None]
    if not roots or not leaves:
        return pending
    path = _path(roots, leaves)
    for node, dy in starts:
        if node is not None and node in path:
            old = pending.get(node)
            pending[node] = dy if old is None else elementwise.add(old, dy)
    targets = set(leaves)
    for node in reversed(path):
        if node in targets or node not in pending:
            continue
        arrived = pending.pop(node)
        if isinstance(node, OutputNode):
            call = node.parents[0]
            assert call is not None
            dys = pending.setdefault(call, [None] * call.count)
            # An output that a rule asked for has a second node beside the user's.
            old = dys[node.index]
            dys[node.index] = arrived if old is None else elementwise.add(old, arrived)
            continue
        pulled = _pulled(node, arrived, path)
        for parent, gradient in pulled:
            if parent in path:
                old = pending.get(parent)
                pending[parent] = gradient if old is None else elementwise.add(old, gradient)
    return pending


def _pulled(node: Node, arrived: Any, path: dict[Node, None]) -> list[tuple[Node, Tensor]]:
    """Return what flows on to the parents of ``node`` when ``arrived`` reaches it."""
    if isinstance(node, CallNode):
        return _pull_call(node, arrived, path)
    if isinstance(node, FunctionNode):
        return node.pull(arrived, path)
    # The leaf of an inner tape: the same value entered there under another handle.
    return [(parent, arrived) for parent in node.parents if parent is not None]


_age = attrgetter("order")


def _path(roots: Sequence[Node], leaves: Sequence[Node]) -> dict[Node, None]:
    """Return the nodes on paths from ``roots`` back to ``leaves``, oldest first."""
    oldest = min(leaf.order for leaf in leaves)
    targets = set(leaves)
    seen = set(roots)
    stack = list(seen)
    while stack:
        node = stack.pop()
        if node in targets:
            continue  # what lies behind a leaf belongs to an outer tape
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


def _pull_call(node: CallNode, arrived: Any, path: dict[Node, None]) -> list[tuple[Node, Tensor]]:
    dys = arrived if isinstance(arrived, list) else [arrived]
    if len(dys) > 1:  # outputs that were not used: zeros arrive there
        for index, (dy, placement) in enumerate(zip(dys, node.plan.outputs, strict=True)):
            if dy is None:
                dys[index] = creation.zeros(placement.type.shape, dtype=placement.type.dtype)
    result: list[tuple[Node, Tensor]] = []
    for step, given in node.pull(dys, path):
        if step.count is None:
            parent = node.parents[step.first]
            assert parent is not None  # it is on the path
            if given.__class__ is Tensor and given._placement.type is step.type:
                result.append((parent, given))  # by far the commonest case
            else:
                result.append((parent, fit(given, step.type, _what(node, step))))
        else:
            result += _pull_list(node, step, given)
    return result


def _pull_list(node: CallNode, step: Step, given: Any) -> list[tuple[Node, Tensor]]:
    if not isinstance(given, list | tuple):
        raise GradientError(
            f"the gradient of {_what(node, step)} is {type(given).__name__}, but must be a list "
            "of tensors"
        )
    gradients = list(given)
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
    """Return a gradient summed back over the axes along which its input was broadcast.

    Of a complex one for a real input the real part counts: such an input cannot move otherwise.

    Raises:
        GradientError: when it is no tensor, or its dtype or shape cannot be the input's.

    """
    if not isinstance(gradient, Tensor):
        raise GradientError(f"the gradient of {what} is {type(gradient).__name__}, not a tensor")
    if gradient.dtype in dt.COMPLEX and type_.dtype is dt.real_part(gradient.dtype):
        return fit(complexes.real(gradient), type_, what)
    if gradient.type == type_:
        return gradient
    given, wanted = gradient.shape, type_.shape
    fits = len(given) >= len(wanted) and all(
        length in (1, given[axis - len(wanted)]) for axis, length in enumerate(wanted)
    )
    if gradient.dtype is not type_.dtype or not fits:
        raise GradientError(f"the gradient of {what} is {gradient.type}, but must be {type_}")
    axes = shapes.broadcast_axes(wanted, given)
    total = reduction.sum(gradient, axis=axes)
    return total if total.shape == wanted else movement.reshape(total, wanted)

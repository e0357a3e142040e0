"""Moves between devices on the tape: cotangents go back the way that the tensors came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.backpropagation import FunctionNode
from tensorplug.dispatch.calls import to_device
from tensorplug.dispatch.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Container

    from tensorplug.autodiff.tape import Node
    from tensorplug.dispatch.device import Placement


class MoveNode(FunctionNode):
    """A tensor that the program has placed on another device; ``origin``: where it was."""

    __slots__ = ("origin",)

    def __init__(self, tensor: Tensor) -> None:
        super().__init__((tensor._node,))
        self.origin: Placement = tensor._placement

    def vjp(self, cotangent: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Return the cotangent where the tensor was, committed only if that was."""
        (parent,) = self.parents
        if parent is None or parent not in path:
            return []
        device = self.origin.device
        moved = to_device(cotangent, device.name)
        if not self.origin.committed and moved._placement.device is device:
            moved = Tensor._of(moved._buffer, self.origin, moved._node)
        return [(parent, moved)]

"""Loops and branches on the tape."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.backpropagation import FunctionNode, backpropagate
from tensorplug.autodiff.recording import Recording
from tensorplug.autodiff.tape import Leaf, OutputNode
from tensorplug.contract.dtypes import INEXACT
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import GradientError
from tensorplug.ops import creation

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from tensorplug.autodiff.tape import Node
    from tensorplug.compile.control.calls import Flat
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType


class ControlNode(FunctionNode):
    """A loop or branch on the tape; its parents are the operands and what was captured.

    ``nodes``: of the captured tensors, with their types. ``recording``: of the first call, whose
    variables the functions read. ``autocast``: as there.
    """

    __slots__ = ("autocast", "nodes", "outputs", "recording")

    def __init__(
        self,
        operands: Sequence[Tensor],
        nodes: Mapping[Node, TensorType],
        outputs: Sequence[Tensor],
        recording: Recording,
    ) -> None:
        super().__init__((*[tensor._node for tensor in operands], *nodes))
        self.nodes: dict[Node, TensorType] = dict(nodes)
        self.outputs: list[TensorType] = [tensor.type for tensor in outputs]
        self.recording: Recording = recording
        self.autocast: DType | None = current_context().autocast

    @property
    def count(self) -> int:
        """The number of results."""
        return len(self.outputs)

    def attach(self, results: Sequence[Tensor]) -> list[Tensor]:
        """Return the results, on the tape if an operand or a captured tensor is."""
        if any(parent is not None for parent in self.parents):
            for at, tensor in enumerate(results):
                if tensor.dtype in INEXACT:
                    tensor._node = OutputNode(self, at)
        return list(results)

    def vjp(self, cotangent: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Return the gradients of the parents on ``path``."""
        pairs = zip(self.parents, self.gradients(cotangent), strict=True)
        return [
            (parent, gradient)
            for parent, gradient in pairs
            if parent is not None and gradient is not None and parent in path
        ]

    @abstractmethod
    def gradients(self, dys: list[Tensor | None]) -> list[Tensor | None]:
        """Return the gradients of all parents."""

    def pull(
        self, f: Flat, tensors: Sequence[Tensor], dys: Sequence[tuple[int, Tensor]]
    ) -> list[Tensor]:
        """Return the gradients of the inexact tensors among ``tensors``, then those of ``nodes``.

        ``dys``: cotangents of the results of ``f`` by position.
        """
        leaves = [Leaf((tensor._node,)) if tensor.dtype in INEXACT else None for tensor in tensors]
        entered = [
            Tensor._of(tensor._buffer, tensor._placement, leaf)
            for tensor, leaf in zip(tensors, leaves, strict=True)
        ]
        context = current_context().replace(
            recording=Recording(self.recording), autocast=self.autocast
        )
        with use_context(context):
            results = f(entered)
        present = [leaf for leaf in leaves if leaf is not None]
        cotangents = backpropagate(
            [(results[at]._node, dy) for at, dy in dys], [*present, *self.nodes]
        )
        types = [*_inexact(tensors), *self.nodes.values()]
        return [
            zeros_of(type_) if node not in cotangents else cotangents[node]
            for node, type_ in zip([*present, *self.nodes], types, strict=True)
        ]


class UnboundedNode(ControlNode):
    """A loop on the tape whose number of steps is not bounded."""

    __slots__ = ()

    def gradients(self, dys: list[Tensor | None]) -> list[Tensor | None]:  # noqa: ARG002  # of the base
        """Refuse.

        Raises:
            GradientError: always.

        """
        raise GradientError(
            "while_loop, fori_loop: a compiled loop has a gradient only if its number of steps is "
            "bounded; pass max_steps, or use scan or fori_loop with fixed bounds"
        )


def _inexact(tensors: Sequence[Tensor]) -> list[TensorType]:
    """Return the types of those tensors that have a derivative."""
    return [tensor.type for tensor in tensors if tensor.dtype in INEXACT]


def zeros_of(type_: TensorType) -> Tensor:
    """Return zeros of a type."""
    return creation.zeros(type_.shape, dtype=type_.dtype)

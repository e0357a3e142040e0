"""Checkpoints: recomputing a function's intermediates instead of storing them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from tensorplug.autodiff.backpropagation import FunctionNode, backpropagate
from tensorplug.autodiff.lifting import call_outside, is_taped_outside
from tensorplug.autodiff.tape import Node, OutputNode, find_boundary, mark, with_node
from tensorplug.autodiff.tracing import check_function
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import GradientError
from tensorplug.tensors.tree import flatten
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device


P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(f: Callable[P, R]) -> Callable[P, R]:
    """Return ``f`` with its intermediates recomputed in the backward pass, to save memory.

    The tape stores the arguments only. The backward pass calls ``f`` again with the same
    arguments, even if the caller has disposed of them. So ``f`` runs once more for each backward
    pass, and must do the same every time: draw random numbers from a key, not from a generator,
    and do not assign to variables.

    Gradients flow to the arguments and to the tensors that ``f`` captures, which must not be
    disposed of before the backward pass. ``f`` may take and return any objects; the tensors in
    trees of its result lose their graph. A derivative of the gradient stores the intermediates
    of the second call.

    Without a tape, the function is ``f`` itself.

    Raises:
        ArgumentError: ``f`` is not a function.
        GradientError: in the backward pass, if ``f`` did not do the same as in the first call.

    Examples:
        >>> @tp.checkpoint
        ... def block(x, w):
        ...     return tp.nn.relu(x @ w) ** 2
        >>> x = tp.asarray([[1.0, 2.0]])
        >>> tp.grad(lambda w: tp.sum(block(x, w)))(tp.asarray([[1.0, -1.0], [0.0, 0.0]]))
        Tensor([[2., 0.],
                [4., 0.]], dtype=float32, device='cpu')

    """
    check_function(f, "checkpoint")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        context = current_context()
        if context.recording is None:
            if is_taped_outside(context):
                return call_outside(context, checkpoint, f, args, kwargs)
            return f(*args, **kwargs)
        again = _Call.of(f, args, kwargs)
        since = mark()
        return _drop_graph(f(*args, **kwargs), again, since)

    return call


class _Call(NamedTuple):
    """A call that can be repeated, even if the caller disposes of the arguments.

    ``device``, ``recording`` and ``autocast`` are those of the context of the first call.
    """

    f: Callable[..., Any]
    leaves: list[Any]
    rebuild: Callable[[list[Any]], Any]
    device: Device | None
    recording: Any
    autocast: DType | None

    @classmethod
    def of(cls, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        context = current_context()
        leaves, rebuild = flatten((args, kwargs))
        copies = [_copy_leaf(leaf) for leaf in leaves]
        return cls(f, copies, rebuild, context.device, context.recording, context.autocast)

    def make(self) -> Any:
        """Call ``f`` again and record it."""
        context = current_context()
        device = context.device if self.device is None or self.device.closed else self.device
        # Copies, because f may dispose of its arguments, and change arrays.
        args, kwargs = self.rebuild([_copy_leaf(leaf) for leaf in self.leaves])
        again = context.replace(device=device, recording=self.recording, autocast=self.autocast)
        try:
            with use_context(again):
                return self.f(*args, **kwargs)
        except BaseException as error:
            error.add_note(f"while checkpoint called {_name(self.f)} again in a backward pass")
            raise


class _CheckpointNode(FunctionNode):
    """A call whose intermediates are not stored; ``dependencies`` are its parents.

    ``places``: the positions of the result's leaves on the tape, ``types`` their types.
    """

    __slots__ = ("again", "dependencies", "places", "types")

    def __init__(
        self, dependencies: list[Node], again: _Call, places: list[int], types: list[TensorType]
    ) -> None:
        super().__init__(tuple(dependencies))
        self.dependencies = dependencies
        self.again = again
        self.places = places
        self.types = types

    @property
    def count(self) -> int:
        """The number of tensors of the result on the tape."""
        return len(self.places)

    def vjp(self, cotangent: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Call the function again and backpropagate through that call."""
        dys = cotangent if isinstance(cotangent, list) else [cotangent]
        since = mark()
        nodes = self._nodes(self.again.make())
        dependencies = find_boundary([node for node in nodes if node is not None], since)
        if dependencies != self.dependencies:
            raise self._differs("depends on other tensors than before")
        starts = [(node, dy) for node, dy in zip(nodes, dys, strict=True) if dy is not None]
        on_path = [node for node in self.dependencies if node in path]
        return list(backpropagate(starts, on_path).items())

    def _nodes(self, result: Any) -> list[Node | None]:
        leaves = flatten(result)[0]
        chosen = [leaves[at] for at in self.places if at < len(leaves)]
        tensors = [leaf for leaf in chosen if isinstance(leaf, Tensor)]
        types = [tensor.type for tensor in tensors]
        if types != self.types:
            raise self._differs(f"has {_listed(types)} instead of {_listed(self.types)}")
        return [tensor._node for tensor in tensors]

    def _differs(self, how: str) -> GradientError:
        return GradientError(
            f"checkpoint: {_name(self.again.f)} was called again in a backward pass, and its "
            f"result {how}; it must do the same every time"
        )


def _drop_graph(result: Any, again: _Call, since: int) -> Any:
    """Return ``result`` with its graph replaced by a node that can recompute it."""
    leaves, rebuild = flatten(result)
    places = [at for at, leaf in enumerate(leaves) if _recorded(leaf, since)]
    if not places:
        return result
    parents = find_boundary([leaves[at]._node for at in places], since)
    node = _CheckpointNode(parents, again, places, [leaves[at].type for at in places])
    for index, at in enumerate(places):
        output_node = node if len(places) == 1 else OutputNode(node, index)
        leaves[at] = with_node(leaves[at], output_node if parents else None)
    return rebuild(leaves)


def _recorded(leaf: Any, since: int) -> bool:
    if not isinstance(leaf, Tensor) or leaf.is_disposed:
        return False
    return leaf._node is not None and leaf._node.order > since


def _copy_leaf(leaf: Any) -> Any:
    """Return an alias of a tensor, a copy of an array, or the leaf itself."""
    if isinstance(leaf, Tensor) and not leaf.is_disposed:
        return alias(leaf)
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _listed(types: Sequence[object]) -> str:
    return ", ".join(map(str, types)) or "no tensor"

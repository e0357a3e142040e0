"""Checkpoints: a function's intermediates are computed again instead of kept."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorplug.autodiff.backpropagation import FunctionNode, backpropagate
from tensorplug.autodiff.tape import Node, OutputNode, boundary, handle, mark
from tensorplug.autodiff.tracing import check_function
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import GradientError
from tensorplug.tensors.tree import flatten
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device

__all__ = ["checkpoint"]


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``f`` with less memory: its intermediates are not kept for the backward pass.

    Only the arguments are. The backward pass calls ``f`` again, at the arguments as they were,
    however the caller disposed of theirs meanwhile. So ``f`` runs once more for each backward
    pass, and must do the same every time: draw random numbers from a key, not from a generator,
    and assign to no variable.

    Gradients flow to the arguments and to the tensors that ``f`` takes from around it; these
    must still be there then. ``f`` takes and returns what it likes; tensors in trees of its
    result are those whose graph is dropped. A derivative of the gradient keeps the second
    call's intermediates.

    Where no tape is on, the function is ``f`` itself.

    Raises:
        ArgumentError: ``f`` is no function.
        GradientError: in the backward pass, when ``f`` did something else than the first time.

    """
    check_function(f, "checkpoint")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current_context().recording is None:
            return f(*args, **kwargs)
        again = _Call.of(f, args, kwargs)
        since = mark()
        return _dropping(f(*args, **kwargs), again, since)

    return call


class _Call(NamedTuple):
    """A call that can be made again, whatever becomes of the caller's arguments.

    ``device`` is the one that a ``use_backend`` named, ``recording`` that which was on.
    """

    f: Callable[..., Any]
    leaves: list[Any]
    rebuild: Callable[[list[Any]], Any]
    device: Device | None
    recording: Any

    @classmethod
    def of(cls, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        context = current_context()
        leaves, rebuild = flatten((args, kwargs))
        kept = [_kept(leaf) for leaf in leaves]
        return cls(f, kept, rebuild, context.device, context.recording)

    def make(self) -> Any:
        """Call ``f``, recording as the first time did."""
        context = current_context()
        device = context.device if self.device is None or self.device.closed else self.device
        # Again others: f may dispose of those that it gets, and change arrays.
        args, kwargs = self.rebuild([_kept(leaf) for leaf in self.leaves])
        try:
            with use_context(context.replace(device=device, recording=self.recording)):
                return self.f(*args, **kwargs)
        except BaseException as error:
            error.add_note(f"while checkpoint called {_name(self.f)} again in a backward pass")
            raise


class _CheckpointNode(FunctionNode):
    """A call of which only the arguments are kept; its parents are all that it hangs on.

    ``places``: which leaves of the result hang on the tape, ``types`` what they are.
    """

    __slots__ = ("again", "hangs_on", "places", "types")

    def __init__(
        self, hangs_on: list[Node], again: _Call, places: list[int], types: list[TensorType]
    ) -> None:
        super().__init__(tuple(hangs_on))
        self.hangs_on = hangs_on
        self.again = again
        self.places = places
        self.types = types

    @property
    def count(self) -> int:
        """How many tensors of the result hang on the tape."""
        return len(self.places)

    def pull(self, arrived: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Call the function again and pull what arrived back through that."""
        dys = arrived if isinstance(arrived, list) else [arrived]
        since = mark()
        nodes = self._nodes(self.again.make())
        if boundary([node for node in nodes if node is not None], since) != self.hangs_on:
            raise self._differs("depends on other tensors than before")
        starts = [(node, dy) for node, dy in zip(nodes, dys, strict=True) if dy is not None]
        wanted = [node for node in self.hangs_on if node in path]
        return list(backpropagate(starts, wanted).items())

    def _nodes(self, result: Any) -> list[Node | None]:
        leaves = flatten(result)[0]
        found = [leaves[at] for at in self.places if at < len(leaves)]
        tensors = [item for item in found if isinstance(item, Tensor)]
        types = [tensor.type for tensor in tensors]
        if types != self.types:
            raise self._differs(f"has {_listed(types)} instead of {_listed(self.types)}")
        return [tensor._node for tensor in tensors]

    def _differs(self, how: str) -> GradientError:
        return GradientError(
            f"checkpoint: {_name(self.again.f)} was called again in a backward pass, and its "
            f"result {how}; it must do the same every time"
        )


def _dropping(result: Any, again: _Call, since: int) -> Any:
    """Return ``result`` with a node that can make its graph again in the place of the graph."""
    leaves, rebuild = flatten(result)
    places = [at for at, leaf in enumerate(leaves) if _recorded(leaf, since)]
    if not places:
        return result
    parents = boundary([leaves[at]._node for at in places], since)
    node = _CheckpointNode(parents, again, places, [leaves[at].type for at in places])
    for index, at in enumerate(places):
        own = node if len(places) == 1 else OutputNode(node, index)
        leaves[at] = handle(leaves[at], own if parents else None)
    return rebuild(leaves)


def _recorded(leaf: Any, since: int) -> bool:
    if not isinstance(leaf, Tensor) or leaf.is_disposed:
        return False
    return leaf._node is not None and leaf._node.order > since


def _kept(leaf: Any) -> Any:
    """Return what stays as ``leaf`` is now, whatever a caller does to his."""
    if isinstance(leaf, Tensor) and not leaf.is_disposed:
        return alias(leaf)
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _listed(types: Sequence[object]) -> str:
    return ", ".join(map(str, types)) or "no tensor"

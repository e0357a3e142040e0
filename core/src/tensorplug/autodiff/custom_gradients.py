"""Functions whose gradient the user writes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.backpropagation import FunctionNode, fit
from tensorplug.autodiff.tape import Node, boundary, handle, mark
from tensorplug.autodiff.tracing import check_function
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, GradientError
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from tensorplug.dispatch.context import Context

__all__ = ["custom_grad"]


def custom_grad(f: Callable[..., tuple[Any, Callable[..., Any]]]) -> Callable[..., Tensor]:
    """Give a function a gradient of your own.

    ``f`` takes tensors and returns ``(value, backward)``; ``backward(dy)`` returns one gradient
    per argument (the tensor itself if there is one argument). ``backward`` saves what it needs
    by using it: the arguments that ``f`` got and what ``f`` computed live until the tape is
    gone, also where the caller disposes of the arguments or a ``tidy`` around ends. (A ``tidy``
    inside ``f`` frees as always.) Derivatives of ``backward`` itself are taken through its ops.

    Of complex numbers dy and what ``backward`` returns are of the form that rules see, that of
    ``vjp``: of a holomorphic f it returns ``dy * f'(z)``, as if z were real (docs/gradients.md).

    Pass every tensor that needs a gradient as an argument: nothing could flow back to one that
    ``f`` takes from around it.

    Raises, when called:
        ArgumentError: ``f`` returns something else, or the value depends on a tensor that is
            being differentiated and is no argument.
        GradientError: ``backward`` returns a wrong number of gradients or a wrong type.
    """
    check_function(f, "custom_grad")
    name = getattr(f, "__name__", "custom_grad")

    @functools.wraps(f)
    def call(*args: Any) -> Tensor:
        context = current_context()
        tensors = [as_tensor(arg, what=f"{name}: argument {at}") for at, arg in enumerate(args)]
        since = mark()
        value, backward = _value_and_backward(f, tensors, context, name)
        node = None
        if context.recording is not None and value.dtype in dt.INEXACT:
            _check_captured(value, tensors, since, name)
            if any(tensor._node for tensor in tensors):
                node = CustomNode(tensors, name, backward)
        return handle(value, node)

    return call


class CustomNode(FunctionNode):
    """A call whose gradient the user wrote."""

    __slots__ = ("backward", "name", "types")

    def __init__(self, tensors: Sequence[Tensor], name: str, backward: Callable[..., Any]) -> None:
        super().__init__(tuple(tensor._node for tensor in tensors))
        self.types = [tensor.type for tensor in tensors]
        self.name = name
        self.backward = backward

    def pull(self, arrived: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Return what the user's function gives for each argument that is on the path."""
        try:
            # A handle of its own: others may need the gradient that arrived here.
            given = self.backward(alias(arrived))
        except BaseException as error:
            error.add_note(f"in the backward function of {self.name}")
            raise
        gradients = given if isinstance(given, list | tuple) else (given,)
        if len(gradients) != len(self.types):
            raise GradientError(
                f"custom_grad: the backward function of {self.name} returned "
                f"{len(gradients)} gradients for {len(self.types)} arguments"
            )
        return [
            (parent, fit(gradient, type_, f"{self.name}, argument {at}"))
            for at, (parent, gradient, type_) in enumerate(
                zip(self.parents, gradients, self.types, strict=True)
            )
            if parent is not None and parent in path
        ]


def _value_and_backward(
    f: Callable[..., Any], tensors: Sequence[Tensor], context: Context, name: str
) -> tuple[Tensor, Callable[..., Any]]:
    """Call ``f`` so that what its backward function uses lives as long as that does."""
    own = [alias(tensor) for tensor in tensors]
    if context.recording is None or context.scope is None:
        result = f(*own)
    else:
        with use_context(context.replace(scope=None)):
            result = f(*own)
    if not (
        isinstance(result, tuple)
        and len(result) == 2
        and isinstance(result[0], Tensor)
        and callable(result[1])
    ):
        raise ArgumentError(f"custom_grad: {name} must return (tensor, backward function)")
    value, backward = result
    value._live()
    return value, backward


def _check_captured(value: Tensor, tensors: Sequence[Tensor], since: int, name: str) -> None:
    if value._node is None:
        return
    arguments = {tensor._node for tensor in tensors}
    captured = [node for node in boundary([value._node], since) if node not in arguments]
    if captured:
        one = len(captured) == 1
        number = "a tensor that is" if one else f"{len(captured)} tensors that are"
        raise ArgumentError(
            f"custom_grad: the value of {name} depends on {number} being differentiated and not "
            f"passed as an argument; no gradient could flow back there. Pass what it needs to "
            f"{name} and return a gradient for it, or apply stop_gradient to what is constant"
        )

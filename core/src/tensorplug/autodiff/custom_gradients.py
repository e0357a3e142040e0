"""Functions with a gradient that the user defines."""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVarTuple

from tensorplug.autodiff.backpropagation import FunctionNode, fit
from tensorplug.autodiff.forward import Pushed
from tensorplug.autodiff.lifting import is_taped_outside, value_outside
from tensorplug.autodiff.tape import Node, find_boundary, mark, with_node
from tensorplug.autodiff.tracing import check_function
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, GradientError
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.context import Context


Ts = TypeVarTuple("Ts")


def custom_grad(
    f: Callable[[*Ts], tuple[Tensor, Callable[[Tensor], Any]]],
) -> Callable[[*Ts], Tensor]:
    """Define the gradient of a function.

    ``f`` takes tensors and returns ``(value, backward)``; ``backward(dy)`` returns one gradient
    per argument (the tensor itself if there is one argument). ``backward`` may use the arguments
    and intermediates of ``f``: they live as long as the tape, even if the caller disposes of the
    arguments or an enclosing ``tidy`` ends. (A ``tidy`` inside ``f`` frees as usual.) Derivatives
    of ``backward`` itself are taken through its ops.

    Complex dy and gradients have the form of gradient rules and ``vjp``: for a holomorphic f,
    return ``dy * f'(z)``, as if z were real (docs/gradients.md).

    Pass every tensor that needs a gradient as an argument: no gradient flows to a tensor that
    ``f`` captures.

    The function raises when it is called.

    Raises:
        ArgumentError: ``f`` returns something else, or the value depends on a differentiated
            tensor that is not an argument.
        GradientError: ``backward`` returns a wrong number of gradients or a wrong type.

    Examples:
        >>> @tp.custom_grad
        ... def limited(x):
        ...     return x, lambda dy: tp.clip(dy, -1.0, 1.0)
        >>> tp.grad(lambda x: tp.sum(limited(x) * tp.asarray([5.0, 0.5])))(tp.asarray([1.0, 2.0]))
        Tensor([1. , 0.5], dtype=float32, device='cpu')

    """
    check_function(f, "custom_grad")
    name = getattr(f, "__name__", "custom_grad")

    @functools.wraps(f)
    def call(*args: *Ts) -> Tensor:
        context = current_context()
        listed: tuple[Any, ...] = args
        tensors = [as_tensor(arg, what=f"{name}: argument {at}") for at, arg in enumerate(listed)]
        lifts = is_taped_outside(context) and any(map(context.interpreter.holds, tensors))
        if lifts:
            compute = functools.partial(_compute, f, name)
            lifted = value_outside(context, custom_grad, compute, tensors, name)
            if context.recording is None:
                return with_node(lifted, None)
        forward = Pushed.of(tensors)
        since = mark()
        arguments = tensors if forward is None or context.recording else forward.constants
        value, backward = _value_and_backward(f, arguments, context, name)
        node = None
        if context.recording is not None and value.dtype in dt.INEXACT:
            _check_captured(value, tensors, since, name)
            if any(tensor._node for tensor in tensors):
                node = CustomNode(tensors, name, backward)
        if forward is not None and value.dtype in dt.INEXACT:
            if arguments is not tensors and forward.depends(value):
                raise _captures(name, "a tensor that is")
            types = [tensor.type for tensor in tensors]
            value = forward.along(value, partial(_pull_back, name, backward, types))
        return with_node(lifted if lifts else value, node)

    return call


class CustomNode(FunctionNode):
    """A call with a gradient that the user defined."""

    __slots__ = ("backward", "name", "types")

    def __init__(self, tensors: Sequence[Tensor], name: str, backward: Callable[..., Any]) -> None:
        super().__init__(tuple(tensor._node for tensor in tensors))
        self.types: list[TensorType] = [tensor.type for tensor in tensors]
        self.name: str = name
        self.backward: Callable[..., Any] = backward

    def vjp(self, cotangent: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Return the results of the user's function for the arguments on ``path``."""
        needed = [parent is not None and parent in path for parent in self.parents]
        gradients = _pull_back(self.name, self.backward, self.types, cotangent, needed)
        parents = [p for p, want in zip(self.parents, needed, strict=True) if want and p]
        return list(zip(parents, gradients, strict=True))


def _pull_back(
    name: str,
    backward: Callable[..., Any],
    types: Sequence[TensorType],
    cotangent: Tensor,
    needed: Sequence[bool],
) -> list[Tensor]:
    """Return the results of the user's function for the arguments that are ``needed``."""
    try:
        # An alias, because the user may dispose of it, but other nodes may need it.
        result = backward(alias(cotangent))
    except BaseException as error:
        error.add_note(f"in the backward function of {name}")
        raise
    gradients = result if isinstance(result, list | tuple) else (result,)
    if len(gradients) != len(types):
        raise GradientError(
            f"custom_grad: the backward function of {name} returned "
            f"{len(gradients)} gradients for {len(types)} arguments"
        )
    return [
        fit(gradient, type_, f"{name}, argument {at}")
        for at, (gradient, type_, want) in enumerate(zip(gradients, types, needed, strict=True))
        if want
    ]


def _compute(
    f: Callable[..., tuple[Any, Callable[..., Any]]], name: str, tensors: Sequence[Tensor]
) -> tuple[Tensor, Callable[[Tensor], list[Tensor | None]]]:
    """Return the value, and a function of dy that returns a gradient, or None, per argument."""
    value, backward = _value_and_backward(f, tensors, current_context(), name)
    types = [tensor.type for tensor in tensors]

    def gradients(dy: Tensor) -> list[Tensor | None]:
        result = backward(dy)
        parts = result if isinstance(result, list | tuple) else (result,)
        present = [isinstance(gradient, Tensor) for gradient in parts]
        cotangents = iter(_pull_back(name, lambda _: parts, types, dy, present))
        return [next(cotangents) if want else None for want in present]

    return value, gradients


def _value_and_backward(
    f: Callable[..., Any], tensors: Sequence[Tensor], context: Context, name: str
) -> tuple[Tensor, Callable[..., Any]]:
    """Call ``f`` so that no scope frees the tensors that its backward function uses."""
    aliases = [alias(tensor) for tensor in tensors]
    if context.recording is None or context.scope is None:
        result = f(*aliases)
    else:
        with use_context(context.replace(scope=None)):
            result = f(*aliases)
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
    captured = [node for node in find_boundary([value._node], since) if node not in arguments]
    if captured:
        single = len(captured) == 1
        raise _captures(
            name, "a tensor that is" if single else f"{len(captured)} tensors that are"
        )


def _captures(name: str, number: str) -> ArgumentError:
    return ArgumentError(
        f"custom_grad: the value of {name} depends on {number} being differentiated and not "
        f"passed as an argument, to which no gradient can flow. Pass them to {name} and "
        "return their gradients, or apply stop_gradient to constants"
    )

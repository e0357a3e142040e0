"""Functions with a backward pass of their own inside vmap: they are called outside it.

A tape outside vmap sees the ops on all examples. For it, a checkpoint, or a function with a
gradient that the user defined, must be a call of such a function on all examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.forward import ForwardMode
from tensorplug.dispatch.context import use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.lifted import Lifted
from tensorplug.mapping.examples import Examples
from tensorplug.tensors.tree import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.context import Context

    Backward = Callable[[Tensor], Sequence[Tensor | None]]


def is_taped_outside(context: Context) -> bool:
    """Return whether ops run in vmap, and are differentiated outside it."""
    if not isinstance(context.interpreter, Examples):
        return False
    outside = context.outside
    while outside is not None:
        if outside.recording is not None or isinstance(outside.interpreter, ForwardMode):
            return True
        outside = outside.outside if isinstance(outside.interpreter, Examples) else None
    return False


def call_outside(
    context: Context,
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]],
    f: Callable[..., Any],
    args: Any,
    kwargs: Any,
) -> Any:
    """Return ``wrap(f)(*args, **kwargs)`` for a ``wrap`` that keeps the meaning of a function.

    ``wrap`` gets a function of all examples, and is called outside vmap.
    """
    interpreter: Examples = context.interpreter
    leaves, rebuild = flatten((args, kwargs))
    places = [
        at
        for at, leaf in enumerate(leaves)
        if leaf.__class__ is Tensor and not leaf.is_disposed and interpreter.holds(leaf)
    ]
    arguments = [leaves[at] for at in places]
    interpreter.check_call(arguments, context.call)
    returned: list[Any] = []
    build: Any = None

    def flat(*tensors: Tensor) -> list[Tensor]:
        nonlocal returned, build
        inner = list(leaves)
        for at, tensor in zip(places, tensors, strict=True):
            inner[at] = tensor
        inner_args, inner_kwargs = rebuild(inner)
        returned, build = flatten(f(*inner_args, **inner_kwargs))
        return [leaf for leaf in returned if isinstance(leaf, Tensor)]

    lifted = Lifted(interpreter, flat, [tensor.type for tensor in arguments], context.call)
    assert context.outside is not None
    with use_context(context.outside):
        physical = wrap(lifted)(*interpreter.lower(arguments))
        results = iter(interpreter.lift(physical, lifted.results, context.call))
    return build([next(results) if isinstance(leaf, Tensor) else leaf for leaf in returned])


def value_outside(
    context: Context,
    wrap: Callable[[Callable[..., Any]], Callable[..., Tensor]],
    compute: Callable[[Sequence[Tensor]], tuple[Tensor, Backward]],
    tensors: Sequence[Tensor],
    name: str,
) -> Tensor:
    """Return the value of a function with a gradient of its own, for a tape outside vmap.

    Args:
        context: of the call, in vmap.
        wrap: ``custom_grad``, for a function of all examples.
        compute: returns the value and the backward function, which returns a gradient of each
            argument's type, or None.
        tensors: the arguments.
        name: of the function, for messages.

    """
    interpreter: Examples = context.interpreter
    interpreter.check_call(tensors, context.call)
    backward: Any = None
    present: list[int] = []

    def flat(*inner: Tensor) -> list[Tensor]:
        nonlocal backward
        value, backward = compute(inner)
        return [value]

    lifted = Lifted(interpreter, flat, [tensor.type for tensor in tensors], context.call)

    def of_all(*physical: Tensor) -> tuple[Tensor, Callable[[Tensor], list[Tensor | None]]]:
        (value,) = lifted(*physical)
        gradients = _without_absent(backward, present)
        pull = Lifted(interpreter, gradients, lifted.results, context.call)

        def pull_back(dy: Tensor) -> list[Tensor | None]:
            full: list[Tensor | None] = [None] * len(tensors)
            for gradient in pull(dy):
                full[present.pop(0)] = gradient
            return full

        return value, pull_back

    of_all.__name__ = name
    assert context.outside is not None
    with use_context(context.outside):
        value = wrap(of_all)(*interpreter.lower(tensors))
        return interpreter.lift([value], lifted.results, context.call)[0]


def _without_absent(backward: Backward, positions: list[int]) -> Callable[[Tensor], list[Tensor]]:
    """Return a function of the gradients that exist, whose ``positions`` it sets."""

    def gradients(dy: Tensor) -> list[Tensor]:
        everything = backward(dy)
        positions[:] = [at for at, gradient in enumerate(everything) if gradient is not None]
        return [gradient for gradient in everything if gradient is not None]

    return gradients

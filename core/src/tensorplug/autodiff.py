"""Gradients of Python functions of tensors, by backpropagation through the tape.

Backpropagation runs in the frame of whoever asks for it. Inside another ``grad`` that frame
records, so gradients of gradients need nothing more.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensorplug import dispatch as seam
from tensorplug import dtypes as dt
from tensorplug import shapes
from tensorplug.backpropagation import CustomNode, backpropagate
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError
from tensorplug.ops import creation
from tensorplug.recording import Recording
from tensorplug.tape import Leaf
from tensorplug.tensor import Tensor
from tensorplug.tree import flatten

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.tape import Node

__all__ = ["custom_grad", "grad", "stop_gradient", "value_and_grad", "vjp"]

Unconnected = Literal["error", "zeros"]


def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
) -> Callable[..., tuple[Tensor, Any]]:
    """Return a function that gives ``f``'s value and its gradient.

    Args:
        f: takes tensors, or nested dicts, lists, tuples and dataclasses of them, and returns
            one tensor y.
        argnums: position of the argument to differentiate, or several positions.
        unconnected: what an argument from which no path leads to y gets.

    Calls are recorded in the context of this thread or task. What a thread started by ``f``
    computes is a constant, unless it runs in a copy of that context, as
    ``asyncio.to_thread`` and ``contextvars.copy_context().run`` make one.

    Returns:
        A function of ``f``'s arguments and of ``dy``, keyword-only: the gradient arriving at y
        (of y's shape and dtype; ones by default, so that y need not be a scalar). It returns
        ``(y, gradient)``: the gradient has the argument's structure; for several ``argnums`` it
        is a tuple.

    Raises:
        ArgumentError: ``f`` is no function, its result is no tensor, dy or argnums do not fit.
        DTypeError: an argument to differentiate is not floating.
        NotConnectedError: no path leads from y to an argument.

    """
    _check_function(f, "value_and_grad")
    several = isinstance(argnums, Sequence)
    listed: Sequence[Any] = argnums if isinstance(argnums, Sequence) else [argnums]
    positions = [shapes.index(each, "argnums") for each in listed]

    @functools.wraps(f)
    def differentiated(*args: Any, dy: Any = None, **kwargs: Any) -> tuple[Tensor, Any]:
        for position in positions:
            if not -len(args) <= position < len(args):
                raise ArgumentError(
                    f"argnums {position} is out of range: {len(args)} arguments were given"
                )
        primals = [args[position] for position in positions]
        if len({position % len(args) for position in positions}) < len(positions):
            raise ArgumentError(f"argnums {tuple(positions)} names one argument twice")
        entries = [
            _enter(primal, f"argument {at}") for primal, at in zip(primals, positions, strict=True)
        ]
        full = list(args)
        for position, entry in zip(positions, entries, strict=True):
            full[position] = entry.tree
        y = _forward(f, full, kwargs)
        trees = _pull(y, dy, entries, unconnected)
        return _detached(y), trees if several else trees[0]

    return differentiated


def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
) -> Callable[..., Any]:
    """Return a function that gives the gradient of ``f``; see ``value_and_grad``."""
    _check_function(f, "grad")
    both = value_and_grad(f, argnums, unconnected=unconnected)

    @functools.wraps(f)
    def gradient(*args: Any, dy: Any = None, **kwargs: Any) -> Any:
        return both(*args, dy=dy, **kwargs)[1]

    return gradient


def vjp(
    f: Callable[..., Any], *primals: Any, unconnected: Unconnected = "error"
) -> tuple[Tensor, Callable[[Any], tuple[Any, ...]]]:
    """Return ``f(*primals)`` and the function that pulls a gradient back through it.

    The pull takes dy, of the result's shape and dtype, and returns a tuple with one gradient
    per primal. It may be called more than once.
    """
    _check_function(f, "vjp")
    entries = [_enter(primal, f"argument {at}") for at, primal in enumerate(primals)]
    y = _forward(f, [entry.tree for entry in entries], {})
    result = _detached(y)
    y = Tensor._of(y._buffer, y._placement, y._node)  # the user, or a tidy, may dispose of theirs

    def pull(dy: Any) -> tuple[Any, ...]:
        return _pull(y, dy, entries, unconnected)

    return result, pull


def stop_gradient(x: Any) -> Tensor:
    """Return ``x`` as a constant: no gradient flows through it."""
    return _handle(seam.as_tensor(x), None)


def custom_grad(f: Callable[..., tuple[Any, Callable[..., Any]]]) -> Callable[..., Tensor]:
    """Give a function a gradient of your own.

    ``f`` takes tensors and returns ``(value, backward)``; ``backward(dy)`` returns one gradient
    per argument (the tensor itself if there is one argument). ``backward`` saves what it needs
    by using it. Derivatives of ``backward`` itself are taken through its ops. Pass every tensor
    that needs a gradient as an argument: to ``value``, what ``f`` takes from around it is
    constant.

    Raises, when called:
        ArgumentError: ``f`` returns something else.
        GradientError: ``backward`` returns a wrong number of gradients or a wrong type.
    """
    _check_function(f, "custom_grad")
    name = getattr(f, "__name__", "custom_grad")

    @functools.wraps(f)
    def call(*args: Any) -> Tensor:
        tensors = [seam.as_tensor(arg) for arg in args]
        result: Any = f(*tensors)
        if not (
            isinstance(result, tuple)
            and len(result) == 2
            and isinstance(result[0], Tensor)
            and callable(result[1])
        ):
            raise ArgumentError(f"custom_grad: {name} must return (tensor, backward function)")
        value, backward = result
        value._live()
        node = None
        differentiable = value.dtype in dt.INEXACT and any(each._node for each in tensors)
        if differentiable and seam.current().recording is not None:
            node = CustomNode(tensors, name, backward)
        return _handle(value, node)

    return call


def _check_function(f: object, who: str) -> None:
    if not callable(f):
        raise ArgumentError(f"{who}: f must be a function, got {type(f).__name__}")


class _Entry(NamedTuple):
    """An argument on its way into a differentiated function.

    ``tree``: with every leaf replaced by a handle that starts a tape. ``twins``: other handles
    of the same, which stay whole whatever the function does to those that it gets.
    ``rebuild``: puts gradients where the leaves were.
    """

    tree: Any
    twins: list[Tensor]
    rebuild: Callable[[list[Any]], Any]


def _enter(tree: Any, what: str) -> _Entry:
    values, rebuild = flatten(tree)
    handles, twins = [], []
    for value in values:
        tensor = seam.as_tensor(value, what=what)
        if tensor.dtype not in dt.FLOATING:
            raise DTypeError(
                f"{what} is {tensor.type}; only floating tensors can be differentiated"
            )
        leaf = Leaf((tensor._node,))
        handles.append(Tensor._of(tensor._buffer, tensor._placement, leaf))
        twins.append(Tensor._of(tensor._buffer, tensor._placement, leaf))
    return _Entry(rebuild(handles), twins, rebuild)


def _forward(f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    frame = seam.current()
    with seam.entered(frame.replace(recording=Recording(parent=frame.recording))):
        y = f(*args, **kwargs)
    if not isinstance(y, Tensor):
        raise ArgumentError(
            f"the function to differentiate must return a tensor, got {type(y).__name__}"
        )
    y._live()
    return y


def _detached(y: Tensor) -> Tensor:
    """Return the value without its graph, unless an outer tape still needs it."""
    if seam.current().recording is None:
        return _handle(y, None)
    return y


def _handle(tensor: Tensor, node: Node | None) -> Tensor:
    """Return another tensor of the same data, at ``node`` and in the scope around."""
    handle = Tensor._of(tensor._buffer, tensor._placement, node)
    scope = seam.current().scope
    if scope is not None:
        scope.adopt(handle)
    return handle


def _pull(
    y: Tensor, dy: Any, entries: Sequence[_Entry], unconnected: Unconnected
) -> tuple[Any, ...]:
    """Return the gradients of y in the structure of each entry."""
    leaves = [twin for entry in entries for twin in entry.twins]
    gradients = iter(_gradients(y, dy, leaves, unconnected))
    return tuple(entry.rebuild([next(gradients) for _ in entry.twins]) for entry in entries)


def _gradients(
    y: Tensor, dy: Any, leaves: Sequence[Tensor], unconnected: Unconnected
) -> list[Tensor]:
    if dy is None:
        start = creation.ones_like(_detached(y))
    else:
        start = seam.as_tensor(dy, None if isinstance(dy, Tensor) else y.dtype)
        if start.type != y.type:
            raise ArgumentError(f"dy is {start.type}, but the result is {y.type}")
    nodes = [leaf._node for leaf in leaves]
    found = backpropagate(y._node, start, nodes)
    result: list[Tensor] = []
    handed_out = {id(dy)}
    for leaf, node in zip(leaves, nodes, strict=True):
        gradient = found.get(node)
        if gradient is None:
            if unconnected == "error":
                raise NotConnectedError(
                    f"no differentiable path leads from the result ({y.type}) back to an "
                    f"argument ({leaf.type}); is it used, and not only through comparisons, "
                    "indices or stop_gradient? unconnected='zeros' gives zeros instead"
                )
            gradient = creation.zeros_like(stop_gradient(leaf))
        elif id(gradient) in handed_out:
            # Rules may hand dy on, but who disposes of one result must not lose another.
            gradient = _handle(gradient, gradient._node)
        handed_out.add(id(gradient))
        result.append(gradient)
    return result

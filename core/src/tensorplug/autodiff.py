"""Gradients of Python functions of tensors, by backpropagation through the tape.

Backpropagation runs in the frame of whoever asks for it. Inside another ``grad`` that frame
records, so gradients of gradients need nothing more.
"""

from __future__ import annotations

import functools
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from tensorplug import dispatch as seam
from tensorplug import dtypes as dt
from tensorplug import shapes
from tensorplug.errors import ArgumentError, DTypeError, GradientError, NotConnectedError
from tensorplug.ops import creation, elementwise, movement, reduction
from tensorplug.tape import CallNode, Leaf, Node, OutputNode, Step
from tensorplug.tensor import Tensor
from tensorplug.tree import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.spec import TensorType

__all__ = ["custom_grad", "grad", "stop_gradient", "value_and_grad", "vjp"]

Unconnected = Literal["error", "zeros"]


class _Recording:
    """Marks a frame in which calls leave nodes behind."""

    __slots__ = ()


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

    Returns:
        A function of ``f``'s arguments and of ``dy``, keyword-only: the gradient arriving at y
        (of y's shape and dtype; ones by default, so that y need not be a scalar). It returns
        ``(y, gradient)``: the gradient has the argument's structure; for several ``argnums`` it
        is a tuple.

    Raises:
        ArgumentError: ``f`` is no function, its result is no tensor, dy does not fit.
        DTypeError: an argument to differentiate is not floating.
        NotConnectedError: no path leads from y to an argument.

    """
    _check_function(f, "value_and_grad")
    several = not isinstance(argnums, int)
    positions = [argnums] if isinstance(argnums, int) else list(argnums)

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
        entered = [
            _enter(primal, f"argument {at}") for primal, at in zip(primals, positions, strict=True)
        ]
        full = list(args)
        for position, (tree, _) in zip(positions, entered, strict=True):
            full[position] = tree
        leaves = [leaf for _, found in entered for leaf in found]
        y = _forward(f, full, kwargs)
        gradients = _pull(y, dy, leaves, unconnected)
        trees = []
        for primal, (_, found) in zip(primals, entered, strict=True):
            _, rebuild = flatten(primal)
            trees.append(rebuild([gradients.pop(0) for _ in found]))
        return _detached(y), tuple(trees) if several else trees[0]

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
    entered = [_enter(primal, f"argument {at}") for at, primal in enumerate(primals)]
    leaves = [leaf for _, found in entered for leaf in found]
    y = _forward(f, [tree for tree, _ in entered], {})

    def pull(dy: Any) -> tuple[Any, ...]:
        gradients = _pull(y, dy, leaves, unconnected)
        trees = []
        for primal, (_, found) in zip(primals, entered, strict=True):
            _, rebuild = flatten(primal)
            trees.append(rebuild([gradients.pop(0) for _ in found]))
        return tuple(trees)

    return _detached(y), pull


def stop_gradient(x: Any) -> Tensor:
    """Return ``x`` as a constant: no gradient flows through it."""
    return _handle(seam.as_tensor(x), None)


def custom_grad(f: Callable[..., tuple[Any, Callable[..., Any]]]) -> Callable[..., Tensor]:
    """Give a function a gradient of your own.

    ``f`` takes tensors and returns ``(value, backward)``; ``backward(dy)`` returns one gradient
    per argument (the tensor itself if there is one argument). ``backward`` saves what it needs
    by using it. Derivatives of ``backward`` itself are taken through its ops.

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
            node = _CustomNode(tensors, name, backward)
        return _handle(value, node)

    return call


class _CustomNode(Node):
    """A call whose gradient the user wrote."""

    __slots__ = ("backward", "name", "types")

    def __init__(self, tensors: Sequence[Tensor], name: str, backward: Callable[..., Any]) -> None:
        super().__init__(tuple(tensor._node for tensor in tensors))
        self.types = [tensor.type for tensor in tensors]
        self.name = name
        self.backward = backward

    def pull(self, dy: Tensor) -> list[tuple[Node, Tensor]]:
        given = self.backward(dy)
        gradients = given if isinstance(given, list | tuple) else (given,)
        if len(gradients) != len(self.types):
            raise GradientError(
                f"custom_grad: the backward function of {self.name} returned "
                f"{len(gradients)} gradients for {len(self.types)} arguments"
            )
        return [
            (parent, _fit(gradient, type_, f"{self.name}, argument {at}"))
            for at, (parent, gradient, type_) in enumerate(
                zip(self.parents, gradients, self.types, strict=True)
            )
            if parent is not None
        ]


def _check_function(f: object, who: str) -> None:
    if not callable(f):
        raise ArgumentError(f"{who}: f must be a function, got {type(f).__name__}")


def _enter(tree: Any, what: str) -> tuple[Any, list[Tensor]]:
    """Return ``tree`` with every leaf replaced by a handle that starts a tape, and those."""
    values, rebuild = flatten(tree)
    handles = []
    for value in values:
        tensor = seam.as_tensor(value)
        if tensor.dtype not in dt.FLOATING:
            raise DTypeError(
                f"{what} is {tensor.type}; only floating tensors can be differentiated"
            )
        leaf = Leaf((tensor._node,))
        handles.append(Tensor._of(tensor._buffer, tensor._placement, leaf))
    return rebuild(handles), handles


def _forward(f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    frame = seam.current().replace(recording=_Recording())
    with seam.entered(frame):
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


def _pull(y: Tensor, dy: Any, leaves: Sequence[Tensor], unconnected: Unconnected) -> list[Tensor]:
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


def backpropagate(start: Node | None, dy: Tensor, leaves: Sequence[Node]) -> dict[Node, Tensor]:
    """Return the gradients that arrive at ``leaves`` when ``dy`` arrives at ``start``."""
    pending: dict[Node, Any] = {}
    if start is None or not leaves:
        return pending
    path = _path(start, leaves)
    if start in path:
        pending[start] = dy
    targets = set(leaves)
    for node in reversed(path):
        if node in targets or node not in pending:
            continue
        arrived = pending.pop(node)
        if isinstance(node, OutputNode):
            call = node.parents[0]
            assert isinstance(call, CallNode)
            dys = pending.setdefault(call, [None] * len(call.plan.outputs))
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
    if isinstance(node, _CustomNode):
        return node.pull(arrived)
    # The leaf of an inner tape: the same value entered there under another handle.
    return [(parent, arrived) for parent in node.parents if parent is not None]


_age = attrgetter("order")


def _path(start: Node, leaves: Sequence[Node]) -> dict[Node, None]:
    """Return the nodes on paths from ``start`` back to ``leaves``, oldest first."""
    oldest = min(leaf.order for leaf in leaves)
    targets = set(leaves)
    seen = {start}
    stack = [start]
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
                result.append((parent, _fit(given, step.type, _what(node, step))))
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
        (parent, _fit(gradient, type_, _what(node, step)))
        for parent, gradient, type_ in zip(
            node.parents[step.first : step.first + step.count], gradients, step.type, strict=True
        )
        if parent is not None
    ]


def _what(node: CallNode, step: Step) -> str:
    return f"{node.plan.spec.name!r} with respect to {step.name!r}"


def _fit(gradient: Any, type_: TensorType, what: str) -> Tensor:
    """Return a gradient summed back over the axes along which its input was broadcast.

    Raises:
        GradientError: when it is no tensor, or its dtype or shape cannot be the input's.

    """
    if not isinstance(gradient, Tensor):
        raise GradientError(f"the gradient of {what} is {type(gradient).__name__}, not a tensor")
    if gradient.type == type_:
        return gradient
    given, wanted = gradient.shape, type_.shape
    fits = len(given) >= len(wanted) and all(
        length in (1, given[axis - len(wanted)]) for axis, length in enumerate(wanted)
    )
    if gradient.dtype is not type_.dtype or not fits:
        raise GradientError(f"the gradient of {what} is {gradient.type}, but must be {type_}")
    axes = shapes.broadcast_axes(wanted, given)
    return movement.reshape(reduction.sum(gradient, axis=axes), wanted)

"""``tensorplug.vmap``: a function of one example as a function of many."""

from __future__ import annotations

import functools
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, SupportsIndex, TypeAlias, TypeVar

from tensorplug.contract import shapes
from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.commitment import follow
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError
from tensorplug.mapping.examples import Batched, Examples
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.movement import broadcast_to
from tensorplug.tensors.tree import broadcast, flatten, paths
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


P = ParamSpec("P")
R = TypeVar("R")

Axes: TypeAlias = Any
"""An axis, None, or a tree of them of which each is for a whole subtree."""
InAxes: TypeAlias = "SupportsIndex | list[Any] | tuple[Any, ...] | None"
"""One axis for all arguments, or an entry for each."""


def vmap(
    f: Callable[P, R],
    in_axes: InAxes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
) -> Callable[P, R]:
    """Return a function that applies ``f`` to each example of its arguments, all at once.

    Write ``f`` for one example. It is called once, with tensors that lack the axis of the
    examples, and its ops run on all examples together: no loop, no change to ``f``. ``grad``,
    ``jvp``, ``jacobian``, ``compile``, ``custom_grad``, ``checkpoint`` and ``vmap`` itself work
    around it and inside it, in any order.

    Args:
        f: takes and returns tensors, or trees of them.
        in_axes: the axis of the examples: one int for all arguments, or a list or tuple with one
            entry per argument. An entry is an int (negative ones count from the end), None for
            an argument that is the same for all examples, or a tree of these, in which one entry
            may stand for a whole subtree. Keyword arguments have the examples in axis 0.
        out_axes: the axis of the examples in the result; also a tree of axes in the same way.
            None: the result is the same for all examples.
        axis_size: the number of examples; needed only if no argument has them.

    ``f`` cannot read the data of a tensor that differs from example to example; use ``where``
    for conditions. Values that it assigns to variables must not differ either. Its tensors are
    valid only during the call: return what you need. A ``Generator`` draws different numbers for
    each example. A kernel without a batching rule is batched by its
    decomposition; without either (a few on the host), it runs once per example (docs/vmap.md).

    Returns:
        A function of ``f``'s arguments. Its results have the examples in an axis of their own.

    Raises:
        ArgumentError: ``f`` is not a function, the axes do not fit the arguments or the result,
            ``f`` reads data that differs from example to example, or no argument has examples.
        ShapeError, OutOfRangeError: the numbers of examples differ, an axis is out of range, or a
            kernel's output shape depends on its data.

    Source: JAX's ``vmap``.

    Examples:
        >>> matrices, vector = tp.ones((3, 2, 2)), tp.asarray([1.0, 2.0])
        >>> tp.vmap(lambda m, v: m @ v, in_axes=(0, None))(matrices, vector).tolist()
        [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]

    """
    if not callable(f):
        raise ArgumentError(f"vmap: f must be a function, got {type(f).__name__}")
    if in_axes is not None and not isinstance(in_axes, Integral | list | tuple):
        raise ArgumentError(
            "vmap: in_axes must be an axis, None, or a list or tuple with one entry per argument, "
            f"got {quoted(in_axes)}"
        )
    declared = None if axis_size is None else shapes.index(axis_size, "vmap: axis_size")
    if declared is not None and declared < 0:
        raise ArgumentError(f"vmap: axis_size must not be negative, got {declared}")

    @functools.wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, rebuild = flatten((args, kwargs))
        entries = _read_axes(in_axes, args, kwargs)
        arguments = [
            _enter(leaf, entry) if entry.axis is not None else leaf
            for leaf, entry in zip(leaves, entries, strict=True)
        ]
        size = _count(arguments, entries, declared)
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        context = follow(current_context(), tensors, "vmap")
        interpreter, call = Examples.of(context, size), object()
        inside = [
            _logical(interpreter, argument, call)
            if entry.axis is not None
            else alias(argument)
            if argument.__class__ is Tensor
            else argument
            for argument, entry in zip(arguments, entries, strict=True)
        ]
        args, kwargs = rebuild(inside)
        with use_context(interpreter.context(context, call)):
            result = f(*args, **kwargs)
        return _leave(interpreter, call, result, out_axes)

    return mapped


class _Entry(NamedTuple):
    """The axis of the examples in one leaf, and the leaf's name for messages."""

    axis: int | None
    where: str


def _read_axes(in_axes: InAxes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[_Entry]:
    """Return an entry for each leaf of (args, kwargs)."""
    if isinstance(in_axes, list | tuple) and len(in_axes) != len(args):
        raise ArgumentError(
            f"vmap: in_axes has {len(in_axes)} entries, but the function got {len(args)} "
            "positional arguments"
        )
    read: list[_Entry] = []
    for at, arg in enumerate(args):
        axes = in_axes[at] if isinstance(in_axes, list | tuple) else in_axes
        names = [f"argument {at}{path}" for path in paths(arg)]
        read += map(_Entry, _spread(axes, arg, f"in_axes[{at}]", "argument"), names)
    for name, value in kwargs.items():
        read += [_Entry(0, f"argument {name}{path}") for path in paths(value)]
    return read


def _spread(axes: Axes, tree: Any, where: str, owner: str) -> list[int | None]:
    """Return the axis of each leaf of ``tree``."""
    try:
        return broadcast(axes, tree, _is_axis)
    except ArgumentError as error:
        raise ArgumentError(
            f"vmap: {where}{error}; axes are ints, None, or trees of them with the structure of "
            f"the {owner}"
        ) from None


def _is_axis(value: Any) -> bool:
    return value is None or (isinstance(value, Integral) and not isinstance(value, bool))


def _enter(leaf: Any, entry: _Entry) -> Tensor:
    """Return an argument as a tensor with the axis of the examples in front."""
    tensor = as_tensor(leaf, what=f"vmap: {entry.where}")
    assert entry.axis is not None
    if not -tensor.ndim <= entry.axis < tensor.ndim:
        hint = "" if tensor.ndim else "; in_axes=None leaves an argument as it is"
        raise OutOfRangeError(
            f"vmap: {entry.where} is {tensor.type}, which has no axis {entry.axis}{hint}"
        )
    return tensor if entry.axis in (0, -tensor.ndim) else moveaxis(tensor, entry.axis, 0)


def _count(arguments: Sequence[Any], entries: Sequence[_Entry], declared: int | None) -> int:
    """Return the number of examples.

    Raises:
        ShapeError: it differs from argument to argument.
        ArgumentError: nothing says it.

    """
    sizes: dict[int, list[str]] = {}
    for argument, entry in zip(arguments, entries, strict=True):
        if entry.axis is not None:
            text = f"{entry.where} ({argument.shape[0]} in axis {entry.axis})"
            sizes.setdefault(argument.shape[0], []).append(text)
    if declared is not None:
        sizes.setdefault(declared, []).append(f"axis_size={declared}")
    if not sizes:
        raise ArgumentError(
            "vmap: no argument has examples; pass axis_size, or set in_axes for an argument"
        )
    if len(sizes) > 1:
        listed = ", ".join(text for group in sizes.values() for text in group)
        raise ShapeError(f"vmap: the numbers of examples differ: {listed}")
    return next(iter(sizes))


def _logical(interpreter: Examples, tensor: Tensor, call: object) -> Tensor:
    buffer = Batched(alias(tensor), call)
    return interpreter.logical(buffer, interpreter.type_of(buffer))


def _leave(interpreter: Examples, call: object, result: Any, out_axes: Axes) -> Any:
    """Return the result of the function with the examples in ``out_axes``."""
    leaves, rebuild = flatten(result)
    interpreter.check_call([leaf for leaf in leaves if leaf.__class__ is Tensor], call)
    axes = _spread(out_axes, result, "out_axes", "result")
    scope = current_context().scope
    results: list[Any] = []
    for leaf, axis, path in zip(leaves, axes, paths(result), strict=True):
        if leaf is None:
            results.append(None)
            continue
        tensor = _stacked(interpreter, leaf, axis, f"vmap: the result{path}")
        if scope is not None:
            scope.adopt(tensor)
        results.append(tensor)
    return rebuild(results)


def _stacked(interpreter: Examples, leaf: Any, axis: int | None, what: str) -> Tensor:
    """Return a result with the examples in ``axis``."""
    if isinstance(leaf, Tensor):
        leaf._live()
    logical = isinstance(leaf, Tensor) and interpreter.holds(leaf)
    if axis is None:
        if logical:
            raise ArgumentError(
                f"{what} ({leaf.type}) depends on the example, so its axis must not be None"
            )
        return alias(as_tensor(leaf, what=what))
    if logical:
        tensor: Tensor = leaf._buffer.tensor
    else:
        constant = as_tensor(leaf, what=what)
        tensor = broadcast_to(constant, (interpreter.size, *constant.shape))
    if not -tensor.ndim <= axis < tensor.ndim:
        raise OutOfRangeError(
            f"{what} is {tensor.type} with the examples in front; it has no axis {axis}"
        )
    return alias(tensor) if axis in (0, -tensor.ndim) else moveaxis(tensor, 0, axis)

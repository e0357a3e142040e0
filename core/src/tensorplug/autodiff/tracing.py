"""Recording a call of a Python function, and computing vector-Jacobian products of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensorplug.autodiff.backpropagation import backpropagate
from tensorplug.autodiff.recording import Recording
from tensorplug.autodiff.tape import Leaf, with_node
from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import choice, flag
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, is_taped, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError, ShapeError
from tensorplug.ops import creation
from tensorplug.tensors.tree import flatten, matched, paths, rebuild_leaf
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tensorplug.autodiff.recording import Watched
    from tensorplug.dispatch.context import Context


Unconnected = Literal["error", "zeros"]


def check_function(f: object, who: str, unconnected: str = "error") -> None:
    """Check common arguments of the differentiating function called ``who``.

    Raises:
        ArgumentError: ``f`` is not callable, or ``unconnected`` is not "error" or "zeros".

    """
    if not callable(f):
        raise ArgumentError(f"{who}: f must be a function, got {type(f).__name__}")
    choice(unconnected, ("error", "zeros"), f"{who}: unconnected")


class Argnums:
    """The positions of the arguments to differentiate."""

    __slots__ = ("_fitting", "positions", "several")

    def __init__(self, argnums: Any) -> None:
        """Convert a position, or a sequence of them."""
        self.several: bool = isinstance(argnums, Sequence)
        positions: Sequence[Any] = argnums if isinstance(argnums, Sequence) else [argnums]
        self.positions: list[int] = [shapes.index(position, "argnums") for position in positions]
        self._fitting: int | None = None  # a number of arguments that have all positions

    def within(self, args: Sequence[Any]) -> list[int]:
        """Return the positions, checked against ``args``.

        Raises:
            ArgumentError: one is out of range, or two are the same.

        """
        if len(args) == self._fitting:
            return self.positions
        for position in self.positions:
            if not -len(args) <= position < len(args):
                raise ArgumentError(
                    f"argnums {position} is out of range: the function got {len(args)} arguments"
                )
        count = len(self.positions)
        if count > 1 and len({position % len(args) for position in self.positions}) < count:
            raise ArgumentError(f"argnums {tuple(self.positions)} contains an argument twice")
        self._fitting = len(args)
        return self.positions


class _Entry(NamedTuple):
    """An argument of a differentiated function.

    ``tree``: the argument with leaves that start a tape. ``aliases``:
    aliases of these leaves, which the function cannot dispose of. ``rebuild``: builds the
    argument's tree with other leaves.
    """

    position: int
    tree: Any
    aliases: list[Tensor]
    rebuild: Callable[[list[Any]], Any]


def check_differentiable(tensor: Tensor, what: str, *, holomorphic: bool = False) -> None:
    """Check that a tensor may be differentiated.

    Raises:
        DTypeError: it is neither floating nor complex, or not complex if ``holomorphic``.

    """
    if tensor.dtype not in dt.INEXACT:
        raise DTypeError(
            f"{what} is {tensor.type}; only floating and complex tensors can be differentiated"
        )
    if holomorphic and tensor.dtype not in dt.COMPLEX:
        raise DTypeError(
            f"{what} is {tensor.type}; with holomorphic=True it must be complex; convert it with "
            "astype"
        )


def _enter(tree: Any, position: int, *, holomorphic: bool) -> _Entry:
    values, rebuild = flatten(tree)
    leaves, aliases = [], []
    what = f"argument {position}"
    for at, value in enumerate(values):
        tensor = as_tensor(value, what=what)
        dtype = tensor._placement.type.dtype
        if dtype not in dt.INEXACT or (holomorphic and dtype not in dt.COMPLEX):
            check_differentiable(tensor, what + paths(tree)[at], holomorphic=holomorphic)
        leaf = Leaf((tensor._node,))
        leaves.append(Tensor._of(tensor._buffer, tensor._placement, leaf))
        aliases.append(Tensor._of(tensor._buffer, tensor._placement, leaf))
    return _Entry(position, rebuild(leaves), aliases, rebuild)


def _taped(context: Context, watched: Mapping[int, Watched] | None) -> Context:
    """Return the context like ``context`` in which a new tape records."""
    if watched is not None:
        return context.recorded_by(Recording(context.recording, watched))
    if context.taped is None:  # a recording without variables has no state: all may share it
        context.taped = context.recorded_by(Recording(context.recording))
    return context.taped


class Traced(NamedTuple):
    """A recorded call of a function.

    ``y``: the result, a tensor or a tree of them. ``entries``: the arguments to differentiate.
    """

    y: Any
    aux: Any
    entries: list[_Entry]

    @classmethod
    def of(
        cls,
        f: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        positions: Iterable[int],
        *,
        has_aux: bool = False,
        watched: Mapping[int, Watched] | None = None,
        holomorphic: bool = False,
    ) -> Traced:
        """Call ``f`` and record it, to differentiate the arguments at ``positions``.

        ``watched``: the variables to differentiate, as in ``Recording``. ``holomorphic``: the
        arguments must be complex.
        """
        flag(has_aux, "has_aux")
        full, entries = list(args), []
        for position in positions:
            entry = _enter(full[position], position, holomorphic=holomorphic)
            full[position] = entry.tree
            entries.append(entry)
        with use_context(_taped(current_context(), watched)):
            y, aux = f(*full, **kwargs), None
            if has_aux:
                if not isinstance(y, tuple) or len(y) != 2:
                    raise ArgumentError(
                        "with has_aux=True the function must return (y, aux), got "
                        + type(y).__name__
                    )
                y, aux = y
            y = check_result(y)
        return cls(y, detach(aux) if has_aux else None, entries)

    def vjp(
        self, starts: Sequence[tuple[Tensor, Tensor]], unconnected: Unconnected
    ) -> tuple[Any, ...]:
        """Return ``gradients`` in the structure of the arguments."""
        return self.regroup(self.gradients(starts, unconnected))

    def regroup(self, values: list[Tensor]) -> tuple[Any, ...]:
        """Return one value per leaf of the arguments, in their structure."""
        for entry in self.entries:
            if entry.rebuild is not rebuild_leaf:
                break
        else:
            return tuple(values)
        trees, start = [], 0
        for entry in self.entries:
            end = start + len(entry.aliases)
            trees.append(entry.rebuild(values[start:end]))
            start = end
        return tuple(trees)

    def gradients(
        self, starts: Sequence[tuple[Tensor, Tensor]], unconnected: Unconnected
    ) -> list[Tensor]:
        """Return the cotangents of all leaves of the arguments.

        ``starts``: tensors that ``f`` returned, with their cotangents. Complex cotangents are in
        the form on the tape (``complex_numbers``).
        """
        leaves: list[Tensor] = []
        for entry in self.entries:
            leaves += entry.aliases
        nodes = [leaf._node for leaf in leaves]
        cotangents = backpropagate([(y._node, dy) for y, dy in starts], nodes)
        scope = current_context().scope
        result: list[Tensor] = []
        for leaf, node in zip(leaves, nodes, strict=True):
            gradient = cotangents.get(node)
            if gradient is not None:
                # Not the tensor itself: rules may return dy, a user's tensor, or one tensor for
                # two arguments.
                other = Tensor._of(gradient._buffer, gradient._placement, gradient._node)
                if scope is not None:
                    scope.adopt(other)
                result.append(other)
            elif unconnected == "zeros":
                result.append(creation.zeros_like(with_node(leaf, None)))
            else:
                raise self._not_connected([y for y, _ in starts], leaf)
        return result

    def _not_connected(self, results: Sequence[Tensor], leaf: Tensor) -> NotConnectedError:
        types = ", ".join(str(y.type) for y in results)
        (name,) = [
            f"argument {entry.position}{path}"
            for entry in self.entries
            for other, path in zip(
                entry.aliases, paths(entry.rebuild([*entry.aliases])), strict=True
            )
            if other is leaf
        ]
        return NotConnectedError(
            f"no differentiable path leads from the result ({types}) back to {name} "
            f"({leaf.type}). The function must use it, and not only through comparisons, indices "
            "or stop_gradient; unconnected='zeros' gives zeros instead"
        )


def check_result(y: Any) -> Any:
    """Return a function's result with tensors for variables; check that all leaves are live."""
    if y.__class__ is Tensor:
        y._live()
        return y
    leaves, rebuild = flatten(y)
    for path, leaf in zip(paths(y), leaves, strict=True):
        if not isinstance(leaf, Tensor):
            raise not_a_tensor(leaf, path)
        leaf._live()
    if y is None:
        raise not_a_tensor(y)
    return rebuild(
        [leaf if leaf.__class__ is Tensor else with_node(leaf, leaf._node) for leaf in leaves]
    )


def not_a_tensor(value: object, path: str = "") -> ArgumentError:
    """Return the error for a function whose result, or leaf at ``path``, is not a tensor."""
    where = f" at {path}" if path else ""
    return ArgumentError(
        f"the function to differentiate must return a tensor, got {type(value).__name__}{where}"
    )


def not_a_scalar(who: str, y: Tensor, *others: str) -> ShapeError:
    """Return the error for a function whose result has axes; ``others``: further ways out."""
    ways = ["return y.sum() or y.mean()", *others]
    return ShapeError(
        f"{who}: f must return a scalar, a tensor of shape [], got {y.type}; "
        f"{', '.join(ways[:-1])}{', or ' if len(ways) > 1 else ''}{ways[-1]}"
    )


def detach(tree: Any) -> Any:
    """Return a tree whose tensors have no graph; return it unchanged if an outer tape records."""
    if is_taped(current_context()):
        return tree
    if tree.__class__ is Tensor:
        return with_node(tree, None)
    leaves, rebuild = flatten(tree)
    return rebuild(
        [with_node(leaf, None) if leaf.__class__ is Tensor else leaf for leaf in leaves]
    )


def match_tree(values: Any, tree: Any, what: str, owner: str) -> list[Tensor]:
    """Return ``values``, such as the cotangents of a result, as a list of tensors.

    They must have the structure, shapes and dtypes of ``tree``, the tensors of ``owner``. The
    returned tensors are aliases, which the user cannot dispose of.

    Raises:
        ArgumentError: the values, called ``what``, differ from ``tree``.

    """

    def message(where: str, expected: str, actual: str) -> str:
        return f"{what}{where} is {actual}, but the {owner} is {expected} there"

    leaves = matched(tree, values, message, whole=True)
    result = []
    for value, like, path in zip(leaves, flatten(tree)[0], paths(tree), strict=True):
        name = what + path
        number = dt.as_number(value)  # numbers get the dtype of `like`, arrays keep theirs
        tensor = as_tensor(number, None if hasattr(number, "dtype") else like.dtype, what=name)
        if tensor.type != like.type:
            raise ArgumentError(f"{name} is {tensor.type}, but the {owner} is {like.type}")
        result.append(alias(tensor))
    return result

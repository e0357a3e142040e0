"""Calling a Python function with the tape on, and pulling gradients back through what it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensorplug.autodiff.backpropagation import backpropagate
from tensorplug.autodiff.recording import Recording
from tensorplug.autodiff.tape import Leaf, handle
from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError
from tensorplug.ops import creation
from tensorplug.tensors.tree import flatten, matched, paths
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tensorplug.autodiff.recording import Watched

__all__ = [
    "Argnums",
    "Traced",
    "Unconnected",
    "check_function",
    "detached",
    "matching",
    "no_tensor",
]

Unconnected = Literal["error", "zeros"]


def check_function(f: object, who: str, unconnected: str = "error") -> None:
    """Check what every differentiating function is given.

    Raises:
        ArgumentError: naming ``who`` asked for a function, or what ``unconnected`` may be.

    """
    if not callable(f):
        raise ArgumentError(f"{who}: f must be a function, got {type(f).__name__}")
    if unconnected not in ("error", "zeros"):
        raise ArgumentError(f"{who}: unconnected must be 'error' or 'zeros', got {unconnected!r}")


class Argnums(NamedTuple):
    """Which arguments are differentiated."""

    positions: list[int]
    several: bool

    @classmethod
    def of(cls, argnums: Any) -> Argnums:
        """Read what a user gave: a position, or a sequence of them."""
        several = isinstance(argnums, Sequence)
        listed: Sequence[Any] = argnums if isinstance(argnums, Sequence) else [argnums]
        return cls([shapes.index(item, "argnums") for item in listed], several)

    def within(self, args: Sequence[Any]) -> list[int]:
        """Return the positions among ``args``.

        Raises:
            ArgumentError: one is out of range, or two are the same.

        """
        for position in self.positions:
            if not -len(args) <= position < len(args):
                raise ArgumentError(
                    f"argnums {position} is out of range: {len(args)} arguments were given"
                )
        count = len(self.positions)
        if count > 1 and len({position % len(args) for position in self.positions}) < count:
            raise ArgumentError(f"argnums {tuple(self.positions)} names one argument twice")
        return self.positions


class _Entry(NamedTuple):
    """An argument on its way into a differentiated function.

    ``name``: for messages. ``tree``: with every leaf replaced by a handle that starts a tape.
    ``aliases``: other handles of the same, which stay whole whatever the function does to those
    that it gets. ``rebuild``: puts gradients where the leaves were.
    """

    name: str
    tree: Any
    aliases: list[Tensor]
    rebuild: Callable[[list[Any]], Any]


def _enter(tree: Any, what: str, *, holomorphic: bool) -> _Entry:
    values, rebuild = flatten(tree)
    handles, aliases = [], []
    for at, value in enumerate(values):
        tensor = as_tensor(value, what=what)
        if tensor.dtype not in dt.INEXACT:
            raise DTypeError(
                f"{what}{paths(tree)[at]} is {tensor.type}; only floating and complex tensors "
                "can be differentiated"
            )
        if holomorphic and tensor.dtype not in dt.COMPLEX:
            raise DTypeError(
                f"{what}{paths(tree)[at]} is {tensor.type}; with holomorphic=True it must be "
                "complex: convert it with astype"
            )
        leaf = Leaf((tensor._node,))
        handles.append(Tensor._of(tensor._buffer, tensor._placement, leaf))
        aliases.append(Tensor._of(tensor._buffer, tensor._placement, leaf))
    return _Entry(what, rebuild(handles), aliases, rebuild)


class Traced(NamedTuple):
    """A function at one point: what it returned, with the tape that leads back from there.

    ``y``: a tensor or a tree of them. ``entries``: the arguments to differentiate.
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
        """Call ``f`` with the tape on, at these positions of its arguments.

        ``watched``: the variables that are differentiated too, as ``Recording`` takes them.
        ``holomorphic``: all that is differentiated must be complex.
        """
        full, entries = list(args), []
        for position in positions:
            entries.append(_enter(full[position], f"argument {position}", holomorphic=holomorphic))
            full[position] = entries[-1].tree
        context = current_context()
        recording = Recording(context.recording, watched or {})
        with use_context(context.replace(recording=recording)):
            y, aux = f(*full, **kwargs), None
            if has_aux:
                if not isinstance(y, tuple) or len(y) != 2:
                    raise ArgumentError(
                        "with has_aux=True the function must return (y, aux), got "
                        + type(y).__name__
                    )
                y, aux = y
            y = _result(y)
        return cls(y, detached(aux) if has_aux else None, entries)

    def pull(
        self, starts: Sequence[tuple[Tensor, Tensor]], unconnected: Unconnected
    ) -> tuple[Any, ...]:
        """Return the gradients of each argument, in its structure, when these arrive."""
        return self.regroup(self.gradients(starts, unconnected))

    def regroup(self, values: Sequence[Tensor]) -> tuple[Any, ...]:
        """Return one value per leaf of the arguments in their structure."""
        each = iter(values)
        return tuple(entry.rebuild([next(each) for _ in entry.aliases]) for entry in self.entries)

    def gradients(
        self, starts: Sequence[tuple[Tensor, Tensor]], unconnected: Unconnected
    ) -> list[Tensor]:
        """Return what arrives at all leaves of the arguments.

        ``starts``: tensors that ``f`` returned, each with what arrives there. Of complex ones
        both are in the form that flows on the tape.
        """
        leaves = [leaf for entry in self.entries for leaf in entry.aliases]
        nodes = [leaf._node for leaf in leaves]
        found = backpropagate([(y._node, dy) for y, dy in starts], nodes)
        result: list[Tensor] = []
        for leaf, node in zip(leaves, nodes, strict=True):
            gradient = found.get(node)
            if gradient is not None:
                # Rules may hand on dy, or one tensor for two arguments, or what a user holds;
                # who disposes of one must not lose another.
                result.append(handle(gradient, gradient._node))
            elif unconnected == "zeros":
                result.append(creation.zeros_like(handle(leaf, None)))
            else:
                raise self._not_connected([y for y, _ in starts], leaf)
        return result

    def _not_connected(self, results: Sequence[Tensor], leaf: Tensor) -> NotConnectedError:
        types = ", ".join(str(y.type) for y in results)
        (name,) = [
            entry.name + place
            for entry in self.entries
            for item, place in zip(
                entry.aliases, paths(entry.rebuild([*entry.aliases])), strict=True
            )
            if item is leaf
        ]
        return NotConnectedError(
            f"no differentiable path leads from the result ({types}) back to {name} "
            f"({leaf.type}); is it used, and not only through comparisons, indices or "
            "stop_gradient? unconnected='zeros' gives zeros instead"
        )


def _result(y: Any) -> Any:
    """Return what a function returned, variables read; check that all of it is live tensors."""
    if y.__class__ is Tensor:
        y._live()
        return y
    leaves, rebuild = flatten(y)
    for place, leaf in zip(paths(y), leaves, strict=True):
        if not isinstance(leaf, Tensor):
            raise no_tensor(leaf, place)
        leaf._live()
    if y is None:
        raise no_tensor(y)
    return rebuild(
        [leaf if leaf.__class__ is Tensor else handle(leaf, leaf._node) for leaf in leaves]
    )


def no_tensor(given: object, place: str = "") -> ArgumentError:
    """Return the error about a function whose result, or what is at ``place`` in it, is none."""
    where = f" at {place}" if place else ""
    return ArgumentError(
        f"the function to differentiate must return a tensor, got {type(given).__name__}{where}"
    )


def detached(tree: Any) -> Any:
    """Return a value, or a tree with some, without their graph; all else in it stays.

    Unless an outer tape still needs them: then the values themselves.
    """
    if current_context().recording is not None:
        return tree
    if tree.__class__ is Tensor:
        return handle(tree, None)
    leaves, rebuild = flatten(tree)
    return rebuild([handle(leaf, None) if leaf.__class__ is Tensor else leaf for leaf in leaves])


def matching(values: Any, tree: Any, what: str, owner: str) -> list[Tensor]:
    """Return ``values``, such as the gradients that arrive at a result, as a list of tensors.

    ``tree``: the tensors of ``owner``, whose structure, shapes and dtypes they must have, and in
    whose order they are returned: as handles of one's own, which nobody else disposes of.

    Raises:
        ArgumentError: naming ``what``, and where it differs.

    """

    def message(where: str, wanted: str, given: str) -> str:
        return f"{what}{where} is {given}, but the {owner} is {wanted} there"

    given = matched(tree, values, message, whole=True)
    result = []
    for value, like, place in zip(given, flatten(tree)[0], paths(tree), strict=True):
        name = what + place
        # Python's numbers take the dtype; NumPy's have one.
        tensor = as_tensor(value, None if hasattr(value, "dtype") else like.dtype, what=name)
        if tensor.type != like.type:
            raise ArgumentError(f"{name} is {tensor.type}, but the {owner} is {like.type}")
        result.append(alias(tensor))
    return result

"""Derivatives along directions: forward mode, and Jacobians made of it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from tensorplug.autodiff.complex_numbers import check_holomorphic_result, check_real_loss
from tensorplug.autodiff.forward import push
from tensorplug.autodiff.tape import with_node
from tensorplug.autodiff.tracing import (
    Argnums,
    Unconnected,
    check_differentiable,
    check_function,
    check_result,
    match_tree,
)
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor, is_here
from tensorplug.dispatch.context import current_context, is_taped
from tensorplug.errors import ArgumentError, NotConnectedError
from tensorplug.mapping.vmap import vmap
from tensorplug.ops import creation, diagonals, joining, movement
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.elementwise import casting
from tensorplug.tensors.tree import flatten, paths
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor


P = ParamSpec("P")
R = TypeVar("R")

MOST_ELEMENTS: Final = 1 << 24
"""Elements of the largest tensor in one pass, forward or backward, over many directions."""


def jvp(f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[R, R]:
    """Return ``f(*primals)`` and its derivative in the direction of ``tangents``.

    Each kernel passes the tangents on as it runs, so nothing is stored, and this costs about as
    much as one more call of ``f``. A kernel without a tangent rule costs more: its gradient rule
    is transposed.

    Args:
        f: takes and returns tensors, or trees of them.
        primals: the arguments, as a list or tuple.
        tangents: one per primal, with its structure, shapes and dtypes.

    Returns:
        ``(y, y_dot)``, with the same structure. If y does not depend on the primals, y_dot is
        zero. For complex numbers, y_dot is the derivative along a real parameter.

    Raises:
        ArgumentError: ``f`` is not a function, its result is not a tensor, or the tangents do
            not fit.
        DTypeError: a primal is neither floating nor complex.
        GradientNotFoundError: a kernel in ``f`` has no derivative.

    Examples:
        >>> x, x_dot = tp.asarray([1.0, 3.0]), tp.asarray([1.0, 0.5])
        >>> y, y_dot = tp.jvp(lambda x: x**2, (x,), (x_dot,))
        >>> y.tolist(), y_dot.tolist()
        ([1.0, 9.0], [2.0, 3.0])

    """
    check_function(f, "jvp")
    for name, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, list | tuple):
            raise ArgumentError(
                f"jvp: {name} must be a list or tuple with one entry per argument, got "
                f"{type(values).__name__}"
            )
    points = read_points(enumerate(primals), "jvp")
    rebuild = flatten(tuple(primals))[1]
    directions = match_tree(tuple(tangents), rebuild(points), "tangents", "primal")
    y, dots, build = _along(lambda duals: f(*rebuild(duals)), points, directions)
    taped = is_taped(current_context())
    fresh = [with_node(value, value._node if taped else None) for value in y]
    return build(fresh), build(
        [
            creation.zeros_like(value)
            if dot is None
            else with_node(dot, dot._node if taped else None)
            for value, dot in zip(y, dots, strict=True)
        ]
    )


def read_points(arguments: Any, who: str, *, holomorphic: bool = False) -> list[Tensor]:
    """Return the leaves of ``(position, argument)`` pairs as tensors.

    Raises:
        DTypeError: one is neither floating nor complex, or not complex if ``holomorphic``.

    """
    points: list[Tensor] = []
    for position, argument in arguments:
        for at, value in enumerate(flatten(argument)[0]):
            tensor = value
            if not is_here(value) or value.dtype not in (
                dt.COMPLEX if holomorphic else dt.INEXACT
            ):
                what = f"argument {position}{paths(argument)[at]}"
                tensor = as_tensor(value, what=f"{who}: {what}")
                check_differentiable(tensor, what, holomorphic=holomorphic)
            points.append(alias(tensor))
    return points


def _along(
    f: Callable[[list[Tensor]], Any],
    points: Sequence[Tensor],
    directions: Sequence[Tensor | None],
) -> tuple[list[Tensor], list[Tensor | None], Callable[[list[Any]], Any]]:
    """Return the leaves of the result, their derivatives, and how to rebuild its tree."""
    build: Any = None

    def flat(duals: list[Tensor]) -> list[Tensor]:
        nonlocal build
        leaves, build = flatten(check_result(f(duals)))
        return leaves

    y, dots = push(flat, points, directions)
    return y, dots, build


def jacfwd(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the derivative of every element of y, in forward mode.

    One pass serves many elements of x at once (``vmap``) and stores nothing. So this is cheaper
    than ``jacobian`` where y has more elements than x. Args, results and errors are those of
    ``jacobian``, except that y may be complex for a real x; then the result is complex, too.

    ``f``: a function of tensors or trees of them that returns one tensor y; ``argnums``: the
    position of the argument to differentiate, or several positions; ``unconnected``: ``"error"``
    or ``"zeros"`` for an argument on which y does not depend; ``holomorphic``: compute the complex
    derivative of a holomorphic function.

    Examples:
        >>> tp.jacfwd(lambda x: x**2)(tp.asarray([1.0, 3.0])).tolist()
        [[2.0, 0.0], [0.0, 6.0]]

    """
    check_function(f, "jacfwd", unconnected)
    return forward_jacobian(f, argnums, unconnected, holomorphic=holomorphic, who="jacfwd")


def forward_jacobian(
    f: Callable[..., Any], argnums: Any, unconnected: Unconnected, *, holomorphic: bool, who: str
) -> Callable[..., Any]:
    """Return the function of ``jacfwd``; ``who`` names it in messages."""
    choice = Argnums(argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        positions = choice.within(args)
        chosen = [(position, args[position]) for position in positions]
        points = read_points(chosen, who, holomorphic=holomorphic)
        rebuild = flatten(tuple(argument for _, argument in chosen))[1]

        def call(duals: list[Tensor]) -> Any:
            full = list(args)
            for position, argument in zip(positions, rebuild(duals), strict=True):
                full[position] = argument
            return f(*full, **kwargs)

        columns = _Columns(call, points, who, holomorphic=holomorphic)
        blocks = [columns.of(at) for at in range(len(points))]
        if unconnected == "error":
            columns.check_connected(
                [f"argument {at}{path}" for at, one in chosen for path in paths(one)]
            )
        trees = [rebuild(list(row)) for row in zip(*blocks, strict=True)]
        return columns.build([tree if choice.several else tree[0] for tree in trees])

    return differentiated


class _Columns:
    """The derivatives of a function's results by the elements of its arguments, one by one.

    ``build``: rebuilds the tree of the results.
    """

    build: Callable[[list[Any]], Any]

    def __init__(
        self,
        f: Callable[[list[Tensor]], Any],
        points: Sequence[Tensor],
        who: str,
        *,
        holomorphic: bool,
    ) -> None:
        self._f = f
        self._points = points
        self._who = who
        self._holomorphic = holomorphic
        self._connected: dict[int, bool] = {}

    def of(self, at: int) -> list[Tensor]:
        """Return the derivative of each result by argument ``at``, ``y.shape + x.shape``."""
        x = self._points[at]
        real = self._passes(at, 1.0)
        if x.dtype not in dt.COMPLEX or self._holomorphic:
            return real
        across = self._passes(at, 1j)  # the gradient is the derivative by x + i that by y
        return [casting.astype(a, x.dtype) + b * 1j for a, b in zip(real, across, strict=True)]

    def _passes(self, at: int, unit: complex) -> list[Tensor]:
        x = self._points[at]
        if not x.size:
            return [
                creation.zeros((*dot.shape, *x.shape), dtype=dot.dtype)
                for dot in self._push(at, creation.zeros_like(x))
            ]
        at_once = max(1, MOST_ELEMENTS // x.size)
        parts = []
        for start in range(0, x.size, at_once):
            rows = diagonals.eye(min(at_once, x.size - start), x.size, k=start, dtype=x.dtype)
            units = rows if unit == 1.0 else rows * unit
            shaped = movement.reshape(units, (-1, *x.shape))
            parts.append(vmap(functools.partial(self._push, at))(shaped))
        return [
            self._arranged(x, joining.concat(rows) if len(rows) > 1 else rows[0])
            for rows in zip(*parts, strict=True)
        ]

    def _arranged(self, x: Tensor, rows: Tensor) -> Tensor:
        """Return derivatives with the directions last, in the argument's dtype if that is real."""
        last = movement.reshape(moveaxis(rows, 0, -1), (*rows.shape[1:], *x.shape))
        target = x.dtype if last.dtype.kind == x.dtype.kind else last.dtype
        return casting.astype(last, target, copy=False)

    def _push(self, at: int, direction: Tensor) -> list[Tensor]:
        directions = [direction if number == at else None for number in range(len(self._points))]
        y, dots, self.build = _along(self._f, self._points, directions)
        for value in y:
            if self._holomorphic:
                check_holomorphic_result(value, self._who)
            elif self._points[at].dtype in dt.COMPLEX:
                check_real_loss(value, self._who)
        self._connected[at] = any(dot is not None for dot in dots)
        return [
            creation.zeros_like(value) if dot is None else dot
            for value, dot in zip(y, dots, strict=True)
        ]

    def check_connected(self, names: Sequence[str]) -> None:
        """Check that a result depends on each argument.

        Raises:
            NotConnectedError: none does.

        """
        for at, name in enumerate(names):
            if not self._connected[at]:
                raise NotConnectedError(
                    f"{self._who}: no differentiable path leads from {name} "
                    f"({self._points[at].type}) to the result. The function must use it, and not "
                    "only through comparisons, indices or stop_gradient; unconnected='zeros' "
                    "gives zeros instead"
                )

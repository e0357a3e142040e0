"""L-BFGS: steps along an approximation of Newton's direction, whose length a search finds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import tensorplug as tp
from tensorplug.plugin import ArgumentError, arguments, tree
from tensorplug.plugin import dtypes as dt
from tensorplug_train.rule import STEP, join, matched, split
from tensorplug_train.transformation import GradientTransformation, named_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug import Tensor

T = TypeVar("T")  # a tree of tensors


def lbfgs(
    memory: int = 10,
    *,
    evaluations: int = 25,
    sufficient: float = 1e-4,
    curvature: float = 0.9,
) -> GradientTransformation:
    """Return L-BFGS, for losses of all data at once.

    The direction p comes from the ``memory`` latest steps and changes of the gradient g by the
    two-loop recursion (Nocedal, "Updating quasi-Newton matrices with limited storage", 1980). A
    search by doubling and bisection finds a length t that satisfies Wolfe's conditions:
    ``f(w + t p) <= f(w) + sufficient * t * (g . p)`` and
    ``g(w + t p) . p >= curvature * (g . p)`` (Nocedal and Wright, "Numerical optimization",
    section 3.1). It begins at t = 1; in the first step, whose p is -g, at ``1 / |g|``, if that is
    less. If it finds none, it takes the last length that satisfied the first condition, or 0.

    ``update`` and ``step`` need ``value_fn=``, the loss as a function of the parameters, which
    they call with its gradient up to ``evaluations`` times in a ``while_loop``; ``value=``, the
    loss at the parameters, saves a call. There is no learning rate, and no ``minimize``: a
    function of variables cannot be evaluated elsewhere.

    The state has ``"moves"`` and ``"changes"`` of shape [memory, n], where n is the number of all
    parameters in one vector, sorted by their paths.

    Raises:
        ArgumentError: a number is out of its range: ``0 < sufficient < curvature < 1``.

    Examples:
        >>> def loss(w):
        ...     return tp.sum(tp.square(w - tp.asarray([1.0, 2.0])) * tp.asarray([1.0, 10.0]))
        >>> optimizer, w = tp.train.lbfgs(), tp.zeros(2)
        >>> state = optimizer.init(w)
        >>> for _ in range(8):
        ...     value, gradient = tp.value_and_grad(loss)(w)
        ...     w, state = optimizer.step(gradient, state, w, value=value, value_fn=loss)
        >>> [round(number, 4) for number in w.tolist()]
        [1.0, 2.0]

    """
    for name, count in (("memory", memory), ("evaluations", evaluations)):
        if type(count) is not int or count < 1:
            raise ArgumentError(
                f"lbfgs: {name} must be a positive integer, got {arguments.quoted(count)}"
            )
    if not 0 < sufficient < curvature < 1:
        raise ArgumentError(
            "lbfgs: 0 < sufficient < curvature < 1 must hold, got "
            f"{arguments.quoted(sufficient)} and {arguments.quoted(curvature)}"
        )
    return _LBFGS(memory, evaluations, sufficient, curvature)


class _LBFGS(GradientTransformation):
    def __init__(self, memory: int, evaluations: int, sufficient: float, curvature: float) -> None:
        self._memory = memory
        self._evaluations = evaluations
        self._sufficient = sufficient
        self._curvature = curvature

    def __repr__(self) -> str:
        return f"lbfgs({self._memory})"

    def init(self, params: Any) -> dict[str, Any]:
        x = _vector("params", params)
        empty = tp.zeros((self._memory, *x.shape), dtype=x.dtype)
        return {STEP: tp.zeros((), dtype=dt.int32), "moves": empty, "changes": empty}

    def update(
        self,
        gradients: T,
        state: Mapping[str, Any],
        params: Any = None,
        *,
        value: Tensor | None = None,
        value_fn: Callable[[Any], Tensor] | None = None,
    ) -> tuple[T, dict[str, Any]]:
        if params is None or value_fn is None:
            raise ArgumentError(
                "lbfgs: step and update need value_fn=, a function of the parameters that returns "
                "the loss, and the parameters; so there is no minimize"
            )
        x, g = _vector("params", params), _vector("gradients", gradients)
        matched("lbfgs", "gradients", params, gradients)
        expected = (self._memory, *x.shape)
        if set(state) != {STEP, "moves", "changes"} or state["moves"].shape != expected:
            raise ArgumentError(
                f"lbfgs: the state must have ['step', 'moves', 'changes'], with moves of shape "
                f"{list(expected)}, got {tree.tree_map(lambda leaf: str(leaf.type), state)}"
            )

        def at(point: Tensor) -> tuple[Tensor, Tensor]:
            value, slopes = tp.value_and_grad(value_fn)(_tree(point, params))
            return tp.astype(value, x.dtype), _vector("gradients", slopes)

        start = at(x)[0] if value is None else tp.astype(value, x.dtype)
        moves, changes = state["moves"], state["changes"]
        p = -_two_loops(g, moves, changes, self._memory)
        p = tp.where(tp.vecdot(g, p) < 0, p, -g)
        size = tp.sqrt(tp.vecdot(g, g))
        begin = tp.where(tp.logical_and(state[STEP] == 0, size > 1), 1.0 / size, 1.0)
        t, after = self._search(at, x, p, (start, g), tp.astype(begin, x.dtype))
        move, change = p * t, after - g
        curved = tp.vecdot(move, change) > 0
        moves, changes = (
            tp.where(curved, tp.concat([kept[1:], new[None]], axis=0), kept)
            for kept, new in ((moves, move), (changes, change))
        )
        updates: T = _tree(move, params)
        return updates, {STEP: state[STEP] + 1, "moves": moves, "changes": changes}

    def _search(
        self,
        at: Callable[[Tensor], tuple[Tensor, Tensor]],
        x: Tensor,
        p: Tensor,
        start: tuple[Tensor, Tensor],
        begin: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return the length of the step, and the gradient there."""
        value, g = start
        slope = tp.vecdot(g, p)

        def going(state: Any) -> Tensor:
            return tp.logical_and(state[0] < self._evaluations, tp.logical_not(state[1]))

        def body(state: Any) -> Any:
            count, _, t, low, high, reached = state
            there, gradient = at(x + p * t)
            low_enough = there <= value + slope * t * self._sufficient
            flat_enough = tp.vecdot(gradient, p) >= slope * self._curvature
            low, high = tp.where(low_enough, t, low), tp.where(low_enough, high, t)
            reached = tp.where(low_enough, gradient, reached)
            between = tp.where(tp.isfinite(high), (low + high) * 0.5, t * 2.0)
            done = tp.logical_and(low_enough, flat_enough)
            return count + 1, done, between, low, high, reached

        zero = tp.zeros_like(begin)
        done = tp.vecdot(p, p) <= 0  # at the minimum
        first = (tp.zeros((), dtype=dt.int32), done, begin, zero, zero + math.inf, g)
        found = tp.while_loop(going, body, first)
        return found[3], found[5]


def _two_loops(g: Tensor, moves: Tensor, changes: Tensor, memory: int) -> Tensor:
    """Return the product of the inverse Hessian, as the latest steps tell, and the gradient."""
    products = tp.vecdot(moves, changes)  # 0 where there is no step yet
    inverse = tp.where(products > 0, 1.0 / tp.where(products > 0, products, 1.0), 0.0)
    shares = {}
    for k in reversed(range(memory)):
        shares[k] = tp.vecdot(moves[k], g) * inverse[k]
        g = g - changes[k] * shares[k]
    size = tp.vecdot(changes[-1], changes[-1])
    g = g * tp.where(size > 0, products[-1] / tp.where(size > 0, size, 1.0), 1.0)
    for k in range(memory):
        g = g + moves[k] * (shares[k] - tp.vecdot(changes[k], g) * inverse[k])
    return g


def _vector(what: str, given: Any) -> Tensor:
    """Return all leaves of a tree in one vector, by their paths, since files reorder dicts.

    Complex numbers stand as their two parts.
    """
    named = sorted(named_leaves(f"lbfgs: {what}", given), key=lambda leaf: leaf[0])
    leaves = [split(leaf) for _, leaf in named]
    return tp.concat([tp.reshape(x, (-1,)) for x in leaves]) if leaves else tp.zeros(0)


def _tree(vector: Tensor, like: T) -> T:
    """Return the tree whose ``_vector`` this is, with the types of ``like``."""
    leaves, build = tree.flatten(like)
    paths = tree.paths(like)
    found, begin = list(leaves), 0
    for at in sorted(range(len(leaves)), key=paths.__getitem__):
        leaf = leaves[at]
        parts = (*leaf.shape, 2) if leaf.dtype in dt.COMPLEX else leaf.shape
        end = begin + math.prod(parts)
        real = tp.astype(tp.reshape(vector[begin:end], parts), dt.real_part(leaf.dtype))
        found[at] = join(real, leaf.dtype)
        begin = end
    made: T = build(found)
    return made

"""Loops and branches whose functions take and return trees of tensors.

Outside of compiled functions they are plain Python. In a compiled function each is one call of
its program, with a program of its own for a step or a branch, whatever the number of steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, TypeVarTuple, overload

from tensorplug.compile.control import flat
from tensorplug.compile.control.calls import Steps
from tensorplug.compile.control.trees import Given, Returned, find_length
from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import flag
from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import creation
from tensorplug.ops.elementwise import casting, comparison

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, Scalar


C = TypeVar("C")  # a carry
X = TypeVar("X")  # slices
Y = TypeVar("Y")  # results
Ts = TypeVarTuple("Ts")  # operands


# Numbers become tensors. In the first forms a carry is one number, which a step gets as a tensor.
@overload
def scan(
    f: Callable[[Tensor, X], tuple[Tensor, Y]],
    init: Scalar,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,  # noqa: FBT001, FBT002  # as JAX's
) -> tuple[Tensor, Y]: ...
@overload
def scan(
    f: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,  # noqa: FBT001, FBT002  # as JAX's
) -> tuple[C, Y]: ...
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,  # noqa: FBT001, FBT002  # as JAX's
) -> tuple[Any, Any]:
    """Call ``f(carry, x)`` for each slice of ``xs``, and pass on the carry that it returns.

    The same as::

        ys = []
        for x in xs:  # along the first axis of each of its tensors
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Args:
        f: takes a carry and slices of xs, and returns the next carry and a result.
        init: the first carry, a tree of tensors. The carry keeps its structure, shapes and dtypes.
        xs: a tree of tensors of one length along the first axis; None if there are none, and
            then x is None, too.
        length: the number of steps; needed only without ``xs``.
        reverse: whether to go from the last slice to the first; the results stay in the order of
            the slices.

    Returns:
        The last carry; and the results, a tree with an axis of the steps in front.

    In a compiled function this is one call of its program, with a program for a step. Tensors and
    variables that ``f`` uses besides its arguments stay the same in all steps; ``f`` must neither
    assign to them nor draw from generators. Gradients flow to ``init``, to ``xs`` and to these
    tensors. The backward pass computes each step again from the carry before it, so only the
    carries, ``xs`` and the factors of matrix products stay in memory.

    Raises:
        ArgumentError: ``f`` is not a function or does not return a pair; the carry changes its
            structure, a shape or a dtype; the results of two steps differ; ``length`` is missing.
        ShapeError: tensors of ``xs`` have no axis, or several lengths; or one other than
            ``length``.
        CompileError: ``f`` does something that a compiled loop cannot.

    Examples:
        >>> def add(total, x):
        ...     total = total + x
        ...     return total, total
        >>> last, sums = tp.scan(add, 0.0, tp.asarray([1.0, 2.0, 4.0]))
        >>> sums.tolist()
        [1.0, 3.0, 7.0]

    """
    return _scan("scan", f, init, xs, length, reverse)


def map(f: Callable[[X], Y], xs: X) -> Y:
    """Return the results of ``f`` for each slice of ``xs`` along the first axis, stacked.

    ``xs`` and the results are trees of tensors. ``f`` is called for one slice after the other
    (see ``scan``), which takes less memory than ``vmap``, and more time.

    Raises: as ``scan``.

    Examples:
        >>> tp.map(lambda x: tp.sum(x) ** 2, tp.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [9.0, 49.0]

    """
    _check_function(f, "map: f")
    stacked: Y = _scan("map", lambda _, x: ((), f(x)), (), xs, None, reverse=False)[1]
    return stacked


def _scan(who: str, f: Any, init: Any, xs: Any, length: Any, reverse: Any) -> tuple[Any, Any]:
    _check_function(f, f"{who}: f")
    flag(reverse, f"{who}: reverse")
    carry, slices = Given(init, f"{who}: init"), Given(xs, f"{who}: xs")
    steps = find_length(slices, length, who)
    results, count = Returned(f"{who}: the result of f"), len(carry.tensors)

    def step(now: list[Tensor]) -> list[Tensor]:
        pair = f(carry.build(now[:count]), slices.build(now[count:]))
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ArgumentError(
                f"{who}: f must return a pair, of a carry and a result, got {_describe(pair)}"
            )
        return [*carry.read(pair[0], f"{who}: the carry"), *results.read(pair[1])]

    if steps:
        outputs = flat.scan(Steps(step, steps, reverse, who), carry.tensors, slices.tensors)
        return carry.build(outputs[:count]), results.build(outputs[count:])
    types = flat.result_types(step, carry.tensors, slices.tensors, who)
    empty = [creation.zeros((0, *type_.shape), dtype=type_.dtype) for type_ in types[count:]]
    return carry.tree, results.build(empty)


@overload
def while_loop(
    cond: Callable[[Tensor], ArrayLike],
    body: Callable[[Tensor], Tensor],
    init: Scalar,
    max_steps: int | None = None,
) -> Tensor: ...
@overload
def while_loop(
    cond: Callable[[C], ArrayLike],
    body: Callable[[C], C],
    init: C,
    max_steps: int | None = None,
) -> C: ...
def while_loop(
    cond: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    max_steps: int | None = None,
) -> Any:
    """Call ``body`` on a value as long as ``cond`` holds for it; return the last value.

    The same as::

        while cond(value):
            value = body(value)

    Args:
        cond: takes the value and returns a boolean scalar.
        body: takes the value and returns the next one.
        init: the first value, a tree of tensors. It keeps its structure, shapes and dtypes.
        max_steps: the loop ends after this many steps, even if ``cond`` still holds. In a
            compiled function, a backward pass needs it; the loop then evaluates ``max_steps``
            conditions, and keeps as many values in memory.

    In a compiled function this is one call of its program (see ``scan``).

    Raises:
        ArgumentError: ``cond`` or ``body`` is not a function; ``cond`` does not return a boolean
            scalar; the value changes its structure, a shape or a dtype; ``max_steps`` is not an
            integer, or is negative.
        GradientError: in a backward pass through a compiled loop without ``max_steps``.

    Examples:
        >>> float(tp.while_loop(lambda x: x < 100, lambda x: x * 3, 1.0))
        243.0

    """
    _check_function(cond, "while_loop: cond")
    _check_function(body, "while_loop: body")
    most = None if max_steps is None else shapes.index(max_steps, "while_loop: max_steps")
    if most is not None and most < 0:
        raise ArgumentError(f"while_loop: max_steps must not be negative, got {most}")
    value = Given(init, "while_loop: init")

    def holds(now: list[Tensor]) -> list[Tensor]:
        answer = as_tensor(cond(value.build(now)), what="while_loop: the result of cond")
        if answer.dtype is not dt.bool_ or answer.shape:
            raise ArgumentError(
                f"while_loop: cond must return a boolean scalar, got {answer.type}"
            )
        return [answer]

    def step(now: list[Tensor]) -> list[Tensor]:
        return value.read(body(value.build(now)), "while_loop: the result of body")

    return value.build(flat.while_loop(holds, step, value.tensors, most, "while_loop"))


@overload
def fori_loop(
    lower: SupportsIndex,
    upper: SupportsIndex,
    body: Callable[[Tensor, Tensor], Tensor],
    init: Scalar,
) -> Tensor: ...
@overload
def fori_loop(
    lower: SupportsIndex, upper: SupportsIndex, body: Callable[[Tensor, C], C], init: C
) -> C: ...
def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Call ``body(i, value)`` for each i from ``lower`` to ``upper`` - 1; return the last value.

    The same as::

        for i in range(lower, upper):
            value = body(i, value)

    Args:
        lower: an integer, or an integer tensor of rank 0.
        upper: likewise.
        body: takes an int32 tensor of rank 0 and the value, and returns the next value.
        init: the first value, a tree of tensors. It keeps its structure, shapes and dtypes.

    In a compiled function this is one call of its program (see ``scan``). There, a backward pass
    needs bounds that do not depend on the function's arguments.

    Raises:
        ArgumentError: ``body`` is not a function; the value changes its structure, a shape or a
            dtype.
        ShapeError, DTypeError: a bound is not an integer scalar.
        GradientError: in a backward pass through a compiled loop whose bounds are not known.

    Examples:
        >>> float(tp.fori_loop(1, 5, lambda i, product: product * i, 1.0))
        24.0

    """
    _check_function(body, "fori_loop: body")
    begin, end = _read_bound(lower, "lower"), _read_bound(upper, "upper")
    value = Given(init, "fori_loop: init")

    def step(now: list[Tensor]) -> list[Tensor]:
        result = body(now[0], value.build(now[1:]))
        return value.read(result, "fori_loop: the result of body")

    return value.build(flat.count(begin, end, step, value.tensors, "fori_loop"))


def cond(
    predicate: ArrayLike,
    true_fn: Callable[[*Ts], Y],
    false_fn: Callable[[*Ts], Y],
    *operands: *Ts,
) -> Y:
    """Return ``true_fn(*operands)`` if ``predicate`` holds, else ``false_fn(*operands)``.

    Args:
        predicate: a boolean scalar, or a number, which is false only if it is 0.
        true_fn: takes the operands, and returns a tree of tensors.
        false_fn: likewise.
        *operands: trees of tensors.

    Outside of compiled functions, only the chosen function is called. In a compiled function,
    both become programs of one call, and each run computes one of them; their results must have
    the same structure, shapes and dtypes. Gradients flow to the operands and to other tensors
    that the functions use; the backward pass computes the branch again.

    Raises:
        ArgumentError: a branch is not a function, or the results differ in structure or type.
        ShapeError: ``predicate`` is not a scalar.
        CompileError: a function does something that a compiled branch cannot.

    Examples:
        >>> safe = tp.compile(lambda x: tp.cond(x > 0, tp.log, lambda x: x * 0, x))
        >>> float(safe(tp.asarray(1.0))), float(safe(tp.asarray(-2.0)))
        (0.0, -0.0)

    """
    _check_function(true_fn, "cond: true_fn")
    _check_function(false_fn, "cond: false_fn")
    chosen = _read_scalar(predicate, "cond: predicate")
    if chosen.dtype is not dt.bool_:
        chosen = comparison.not_equal(chosen, 0)
    functions = {"false_fn": false_fn, "true_fn": true_fn}
    result: Y = _switch("cond", casting.astype(chosen, dt.int32), functions, operands)
    return result


def switch(index: ArrayLike, branches: Sequence[Callable[[*Ts], Y]], *operands: *Ts) -> Y:
    """Return ``branches[index](*operands)``; an index out of range is clamped.

    Args:
        index: an integer scalar.
        branches: functions that take the operands, and return trees of tensors.
        *operands: trees of tensors.

    For more, see ``cond``.

    Raises:
        ArgumentError: there are no branches, one is not a function, or the results differ in
            structure or type.
        ShapeError, DTypeError: ``index`` is not an integer scalar.
        CompileError: a function does something that a compiled branch cannot.

    Examples:
        >>> [tp.switch(i, [tp.sin, tp.cos], 0.0).tolist() for i in (0, 1, 7)]
        [0.0, 1.0, 1.0]

    """
    functions = {f"branch {at}": branch for at, branch in enumerate(branches)}
    if not functions:
        raise ArgumentError("switch: branches must have a function at least, got none")
    for name, branch in functions.items():
        _check_function(branch, f"switch: {name}")
    chosen = _read_scalar(index, "switch: index")
    if chosen.dtype not in dt.INTEGER:
        raise DTypeError(f"switch: index must be an integer, got {chosen.type}")
    result: Y = _switch("switch", chosen, functions, operands)
    return result


def _switch(
    who: str, index: Tensor, functions: Mapping[str, Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    arguments = Given(tuple(operands), f"{who}: operands")
    results = Returned(f"{who}: the result")

    def branch(name: str, f: Callable[..., Any]) -> Callable[[list[Tensor]], list[Tensor]]:
        return lambda now: results.read(f(*arguments.build(now)), name)

    called = [branch(name, f) for name, f in functions.items()]
    return results.build(flat.switch(index, called, arguments.tensors, who))


def _check_function(f: object, what: str) -> None:
    if not callable(f):
        raise ArgumentError(f"{what} must be a function, got {_describe(f)}")


def _describe(value: object) -> str:
    size = f" of {len(value)}" if isinstance(value, tuple | list) else ""
    return f"{type(value).__name__}{size}"


def _read_scalar(value: Any, what: str) -> Tensor:
    scalar = as_tensor(value, what=what)
    if scalar.shape:
        raise ShapeError(f"{what} must be a scalar, got {scalar.type}")
    return scalar


def _read_bound(value: Any, name: str) -> int | Tensor:
    """Return a bound as a number if it is known."""
    bound = _read_scalar(value, f"fori_loop: {name}")
    if bound.dtype not in dt.INTEGER:
        raise DTypeError(f"fori_loop: {name} must be an integer, got {bound.type}")
    return int(bound) if flat.is_known(bound) else casting.astype(bound, dt.int32)

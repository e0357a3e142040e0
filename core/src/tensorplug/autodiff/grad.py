"""Gradients of Python functions of tensors, by backpropagation through the tape.

Backpropagation runs in the context of whoever asks for it. Inside another ``grad`` that context
records, so gradients of gradients need nothing more.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, overload

from tensorplug.autodiff.complex_numbers import (
    check_holomorphic_result,
    check_real_loss,
    conjugated,
)
from tensorplug.autodiff.tape import handle
from tensorplug.autodiff.tracing import (
    Argnums,
    Traced,
    Unconnected,
    check_function,
    detached,
    matching,
    no_tensor,
)
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.tensor import Tensor
from tensorplug.ops import creation
from tensorplug.tensors.tree import flatten
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Pull = Callable[[Any], tuple[Any, ...]]

__all__ = ["grad", "stop_gradient", "value_and_grad", "vjp"]


def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that gives ``f``'s value and its gradient.

    Args:
        f: takes tensors, or nested dicts, lists, tuples and dataclasses of them (a list of
            numbers is a tree of scalars: make it a tensor first), and returns one tensor y.
        argnums: position of the argument to differentiate, or several positions.
        unconnected: what an argument from which no path leads to y gets.
        has_aux: ``f`` returns ``(y, aux)``; aux is handed on and not differentiated.
        holomorphic: give the complex derivative ``f'(z)`` instead, times dy, of a function with
            complex arguments and a complex result that has one. Whether it has is not checked.

    Of complex arguments z = x + iy, and a real result L, the gradient is dL/dx + i dL/dy: the
    direction in which L grows fastest, so that ``z - rate * gradient`` makes it smaller. Real
    arguments always have real gradients. (docs/gradients.md)

    Calls are recorded in the context of this thread or task. What a thread started by ``f``
    computes is a constant, unless it runs in a copy of that context, as
    ``asyncio.to_thread`` and ``contextvars.copy_context().run`` make one.

    Returns:
        A function of ``f``'s arguments and of ``dy``, keyword-only: the gradient arriving at y
        (of y's shape and dtype; ones by default, so that y need not be a scalar, but real). At
        a complex y it is of the same form as the gradient: dL/dx + i dL/dy. It returns
        ``(y, gradient)``, or ``((y, aux), gradient)``: the gradient has the argument's
        structure; for several ``argnums`` it is a tuple.

    Raises:
        ArgumentError: ``f`` is no function, its result is no tensor, dy or argnums do not fit.
        DTypeError: an argument to differentiate is neither floating nor complex; y is complex,
            without dy and ``holomorphic``; y or an argument is real with ``holomorphic``.
        NotConnectedError: no path leads from y to an argument.

    """
    check_function(f, "value_and_grad", unconnected)
    choice = Argnums.of(argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, dy: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        traced = Traced.of(
            f, args, kwargs, choice.within(args), has_aux=has_aux, holomorphic=holomorphic
        )
        y = traced.y
        if not isinstance(y, Tensor):
            raise no_tensor(y)
        if holomorphic:
            check_holomorphic_result(y, "grad")
        elif dy is None:
            check_real_loss(y, "grad")
        start = (
            creation.ones_like(detached(y)) if dy is None else matching(dy, y, "dy", "result")[0]
        )
        if holomorphic:
            trees = traced.pull([(y, start)], unconnected)
        else:
            found = traced.gradients([(y, conjugated(start))], unconnected)
            trees = traced.regroup([conjugated(item) for item in found])
        value = (detached(y), traced.aux) if has_aux else detached(y)
        return value, trees if choice.several else trees[0]

    return differentiated


def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that gives the gradient of ``f``; see ``value_and_grad``.

    With ``has_aux`` it gives ``(gradient, aux)``.
    """
    check_function(f, "grad", unconnected)
    both = value_and_grad(
        f, argnums, unconnected=unconnected, has_aux=has_aux, holomorphic=holomorphic
    )

    @functools.wraps(f)
    def gradient(*args: Any, dy: Any = None, **kwargs: Any) -> Any:
        value, found = both(*args, dy=dy, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


@overload
def vjp(
    f: Callable[..., Any],
    *primals: Any,
    unconnected: Unconnected = "error",
    has_aux: Literal[False] = False,
) -> tuple[Any, Pull]: ...


@overload
def vjp(
    f: Callable[..., Any],
    *primals: Any,
    unconnected: Unconnected = "error",
    has_aux: Literal[True],
) -> tuple[Any, Pull, Any]: ...


def vjp(
    f: Callable[..., Any],
    *primals: Any,
    unconnected: Unconnected = "error",
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Return ``f(*primals)`` and the function that pulls a gradient back through it.

    ``f`` returns a tensor or a tree of them. The pull takes dy, of the result's structure,
    shapes and dtypes, and returns a tuple with one gradient per primal. It may be called more
    than once.

    Complex numbers are pulled in the form that flows on the tape and that rules see: to
    z = x + iy dL/dx - i dL/dy, the conjugate of what ``grad`` gives. The pull is the transpose
    of the derivative: ``real(sum(dy * jvp(f, (z,), (u,))[1])) == real(sum(pull(dy)[0] * u))``.

    Returns:
        ``(y, pull)``; with ``has_aux``, for an ``f`` that returns ``(y, aux)``,
        ``(y, pull, aux)``.

    Raises:
        ArgumentError: ``f`` is no function, or its result holds something else than tensors;
            the pull: dy does not fit the result.
        DTypeError: a primal is neither floating nor complex.
        NotConnectedError: the pull: no path leads from y to a primal.

    """
    check_function(f, "vjp", unconnected)
    traced = Traced.of(f, primals, {}, range(len(primals)), has_aux=has_aux)
    result = detached(traced.y)
    leaves, rebuild = flatten(traced.y)
    # Handles of one's own: the user, or a tidy, may dispose of theirs.
    aliases = [alias(leaf) for leaf in leaves]
    kept = Traced(rebuild(aliases), None, traced.entries)

    def pull(dy: Any) -> tuple[Any, ...]:
        starts = zip(aliases, matching(dy, kept.y, "dy", "result"), strict=True)
        return kept.pull(list(starts), unconnected)

    return (result, pull, traced.aux) if has_aux else (result, pull)


def stop_gradient(x: Any) -> Tensor:
    """Return ``x`` as a constant: no gradient flows through it."""
    return handle(as_tensor(x, what="stop_gradient: x"), None)

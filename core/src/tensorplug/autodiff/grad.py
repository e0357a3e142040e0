"""Gradients of Python functions of tensors, by backpropagation through the tape.

Backpropagation runs in the caller's context. Inside another ``grad`` that context records, so
gradients of gradients need no special code.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, overload

from tensorplug.autodiff.complex_numbers import (
    check_holomorphic_result,
    check_real_loss,
    conjugate,
)
from tensorplug.autodiff.tape import with_node
from tensorplug.autodiff.tracing import (
    Argnums,
    Traced,
    Unconnected,
    check_function,
    detach,
    match_tree,
    not_a_scalar,
    not_a_tensor,
)
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.logical_devices import Carried
from tensorplug.ops import creation
from tensorplug.tensors.tree import flatten
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.typing import ArrayLike

    VjpFunction = Callable[[Any], tuple[Any, ...]]


P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
A = TypeVar("A")


class Differentiated(Protocol[P, R_co]):
    """A function of the arguments of another one, and of the keyword ``dy``."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, dy: ArrayLike, **kwargs: Any) -> R_co: ...


@overload
def value_and_grad(
    f: Callable[P, Tensor],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Differentiated[P, tuple[Tensor, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, tuple[Tensor, A]],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Differentiated[P, tuple[tuple[Tensor, A], Any]]: ...
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Differentiated[..., tuple[Any, Any]]:
    """Return a function that computes ``f``'s value and its gradient.

    Args:
        f: takes tensors, or nested dicts, lists, tuples and dataclasses of them (a list of
            numbers is a tree of scalars: convert it to a tensor first), and returns one tensor y,
            a scalar of shape [] unless dy is passed.
        argnums: position of the argument to differentiate, or several positions.
        unconnected: whether an argument on which y does not depend gives an error or zeros.
        has_aux: ``f`` returns ``(y, aux)``; aux is returned without being differentiated.
        holomorphic: compute dy times the complex derivative ``f'(z)`` instead, of a holomorphic
            function with complex arguments and a complex result. Holomorphy is not checked.

    For complex arguments z = x + iy and a real result L, the gradient is dL/dx + i dL/dy: the
    direction of steepest ascent of L, so that ``z - rate * gradient`` decreases it. Real
    arguments always have real gradients. (docs/gradients.md)

    Calls are recorded in the context of this thread or task. The results of a thread that ``f``
    starts are constants, unless it runs in a copy of that context, as with ``asyncio.to_thread``
    or ``contextvars.copy_context().run``.

    Returns:
        A function of ``f``'s arguments and of the keyword ``dy``, the cotangent of y, with y's
        shape and dtype. It is 1 by default; y must then be a real scalar (docs/adr/0047): for a y
        with axes, pass dy, return its sum, or take ``vjp``. For a complex y, dy has the form of
        the gradient: dL/dx + i dL/dy. The function returns ``(y, gradient)``, or
        ``((y, aux), gradient)``. The gradient has the argument's structure; for several
        ``argnums`` it is a tuple.

    Raises:
        ArgumentError: ``f`` is not a function, its result is not a tensor, or dy or argnums do
            not fit.
        ShapeError: y is not a scalar, and dy is not passed.
        DTypeError: an argument to differentiate is neither floating nor complex; y is complex,
            without dy and ``holomorphic``; y or an argument is real with ``holomorphic``.
        NotConnectedError: no path leads from y to an argument.

    Examples:
        >>> value, gradient = tp.value_and_grad(lambda w: tp.sum(w**2))(tp.asarray([1.0, 3.0]))
        >>> float(value), gradient.tolist()
        (10.0, [2.0, 6.0])
        >>> params = {"w": tp.asarray(3.0), "b": tp.asarray(1.0)}
        >>> value, gradient = tp.value_and_grad(lambda p, x: p["w"] * x + p["b"])(params, 5.0)
        >>> float(value), {name: float(g) for name, g in gradient.items()}
        (16.0, {'w': 5.0, 'b': 1.0})

    """
    who = "value_and_grad"
    check_function(f, who, unconnected)
    run = _differentiate(who, f, argnums, unconnected, has_aux=has_aux, holomorphic=holomorphic)

    @functools.wraps(f)
    def differentiated(*args: Any, dy: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        return run(args, kwargs, dy)

    return differentiated


def _differentiate(
    who: str,
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    unconnected: Unconnected,
    *,
    has_aux: bool,
    holomorphic: bool,
) -> Callable[[tuple[Any, ...], dict[str, Any], Any], tuple[Any, Any]]:
    """Return a function of args, kwargs and dy that returns the value and the gradient."""
    choice = Argnums(argnums)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], dy: Any) -> tuple[Any, Any]:
        traced = Traced.of(
            f, args, kwargs, choice.within(args), has_aux=has_aux, holomorphic=holomorphic
        )
        y = traced.y
        if not isinstance(y, Tensor):
            raise not_a_tensor(y)
        if holomorphic:
            check_holomorphic_result(y, "grad")
        elif dy is None:
            check_real_loss(y, "grad")
        if dy is None and y._placement.type.shape:
            raise not_a_scalar(who, y, "pass dy, the cotangent of y", "take tensorplug.vjp(f, x)")
        start = creation.ones_like(y) if dy is None else match_tree(dy, y, "dy", "result")[0]
        if holomorphic:
            trees = traced.vjp([(y, start)], unconnected)
        else:
            gradients = traced.gradients([(y, conjugate(start))], unconnected)
            trees = traced.regroup(list(map(conjugate, gradients)))
        value = (detach(y), traced.aux) if has_aux else detach(y)
        return value, trees if choice.several else trees[0]

    return run


@overload
def grad(
    f: Callable[P, Tensor],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Differentiated[P, Any]: ...
@overload
def grad(
    f: Callable[P, tuple[Tensor, A]],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Differentiated[P, tuple[Any, A]]: ...
def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Differentiated[..., Any]:
    """Return a function that computes the gradient of ``f``; see ``value_and_grad``.

    With ``has_aux`` it returns ``(gradient, aux)``.

    ``argnums``: the position of the argument to differentiate, 0 by default; for several positions
    the gradient is a tuple; ``unconnected``: ``"error"`` (the default) or ``"zeros"`` for an
    argument on which the result does not depend; ``holomorphic``: compute the complex derivative
    of a holomorphic function instead.

    Examples:
        >>> tp.grad(lambda w: tp.sum(w**3))(tp.asarray([1.0, 2.0]))
        Tensor([ 3., 12.], dtype=float32, device='cpu')
        >>> dx, dy = tp.grad(lambda x, y: x * y**2, argnums=(0, 1))(2.0, 3.0)
        >>> float(dx), float(dy)
        (9.0, 12.0)
        >>> gradient, aux = tp.grad(lambda w: (w * 2, "kept"), has_aux=True)(1.0)
        >>> float(gradient), aux
        (2.0, 'kept')

    """
    check_function(f, "grad", unconnected)
    run = _differentiate("grad", f, argnums, unconnected, has_aux=has_aux, holomorphic=holomorphic)

    @functools.wraps(f)
    def gradient(*args: Any, dy: Any = None, **kwargs: Any) -> Any:
        value, tree = run(args, kwargs, dy)
        return (tree, value[1]) if has_aux else tree

    return gradient


@overload
def vjp(
    f: Callable[..., R],
    *primals: Any,
    unconnected: Unconnected = "error",
    has_aux: Literal[False] = False,
) -> tuple[R, VjpFunction]: ...
@overload
def vjp(
    f: Callable[..., tuple[R, A]],
    *primals: Any,
    unconnected: Unconnected = "error",
    has_aux: Literal[True],
) -> tuple[R, VjpFunction, A]: ...
def vjp(
    f: Callable[..., Any],
    *primals: Any,
    unconnected: Unconnected = "error",
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Return ``f(*primals)`` and the function that computes vector-Jacobian products at primals.

    ``f`` returns a tensor or a tree of them. ``vjp_function(dy)`` takes the cotangent, with the
    result's structure, shapes and dtypes, and returns a tuple with one gradient per primal. It
    may be called more than once.

    The cotangent of a complex z = x + iy is dL/dx - i dL/dy, as in gradient rules: the conjugate
    of the gradient of ``grad``. So ``vjp_function`` is the transpose of the derivative:
    ``real(sum(dy * jvp(f, (z,), (u,))[1])) == real(sum(vjp_function(dy)[0] * u))``.

    ``unconnected``: ``"error"`` or ``"zeros"`` for a primal on which the result does not depend.

    Returns:
        ``(y, vjp_function)``; with ``has_aux``, for an ``f`` that returns ``(y, aux)``,
        ``(y, vjp_function, aux)``.

    Raises:
        ArgumentError: ``f`` is not a function, or its result contains other objects than
            tensors. ``vjp_function``: dy does not fit the result.
        DTypeError: a primal is neither floating nor complex.
        NotConnectedError: ``vjp_function``: no path leads from y to a primal.

    Examples:
        >>> y, pull_back = tp.vjp(lambda x: x**2, tp.asarray([1.0, 3.0]))
        >>> y
        Tensor([1., 9.], dtype=float32, device='cpu')
        >>> pull_back(tp.asarray([1.0, 10.0]))
        (Tensor([ 2., 60.], dtype=float32, device='cpu'),)

    """
    check_function(f, "vjp", unconnected)
    traced = Traced.of(f, primals, {}, range(len(primals)), has_aux=has_aux)
    result = detach(traced.y)
    leaves, rebuild = flatten(traced.y)
    # Aliases, because the user, or a tidy, may dispose of the result.
    aliases = [alias(leaf) for leaf in leaves]
    kept = Traced(rebuild(aliases), None, traced.entries)

    def vjp_function(dy: Any) -> tuple[Any, ...]:
        starts = zip(aliases, match_tree(dy, kept.y, "dy", "result"), strict=True)
        return kept.vjp(list(starts), unconnected)

    return (result, vjp_function, traced.aux) if has_aux else (result, vjp_function)


def stop_gradient(x: ArrayLike) -> Tensor:
    """Return ``x`` as a constant: no gradient flows through it.

    Examples:
        >>> float(tp.grad(lambda x: x * tp.stop_gradient(x))(3.0))
        3.0

    """
    tensor = as_tensor(x, what="stop_gradient: x")
    if isinstance(tensor._buffer, Carried):
        tensor = tensor._placement.device.interpreter.stopped(tensor, stop_gradient)
    return with_node(tensor, None)

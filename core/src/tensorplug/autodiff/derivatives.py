"""Derivatives of vectors: forward mode, jacobians and hessians."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.autodiff.complex_numbers import (
    check_holomorphic_result,
    check_real_loss,
    conjugated,
)
from tensorplug.autodiff.grad import vjp
from tensorplug.autodiff.tracing import Argnums, Traced, Unconnected, check_function, matching
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops import creation, movement
from tensorplug.tensors.tree import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["hessian", "jacobian", "jvp"]


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return ``f(*primals)`` and its derivative in the direction of ``tangents``.

    The pull of ``vjp`` is linear in dy; its own pull is the derivative. So this costs a forward
    and a backward pass and the gradient of that, and needs rules that are differentiable in dy.

    Args:
        f: takes and returns tensors, or trees of them.
        primals: the arguments, as a list or tuple.
        tangents: one per primal, of its structure, shapes and dtypes.

    Returns:
        ``(y, y_dot)``, of one structure. Where nothing flows, y_dot is zero. Of complex numbers
        it is the derivative along a real parameter: how y moves where the primals move along
        the tangents.

    Raises:
        ArgumentError: ``f`` is no function or its result no tensor, the tangents do not fit.
        DTypeError: a primal is neither floating nor complex.

    """
    check_function(f, "jvp")
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, list | tuple):
            raise ArgumentError(
                f"jvp: {name} must be a list or tuple with one entry per argument, got "
                f"{type(given).__name__}"
            )
    leaves, rebuild = flatten(tuple(primals))
    points = rebuild([as_tensor(leaf, what="jvp: a primal") for leaf in leaves])
    directions = matching(tuple(tangents), points, "tangents", "primal")
    y, pull = vjp(f, *points, unconnected="zeros")
    outputs, build = flatten(y)
    zeros = [creation.zeros_like(output) for output in outputs]
    smooth = [at for at, output in enumerate(outputs) if output.dtype in dt.INEXACT]

    def pulled(dys: list[Tensor]) -> list[Tensor]:
        full = list(zeros)
        for at, dy in zip(smooth, dys, strict=True):
            full[at] = dy
        return flatten(pull(build(full)))[0]

    _, push = vjp(pulled, [zeros[at] for at in smooth], unconnected="zeros")
    dots = list(zeros)
    for at, dot in zip(smooth, push(directions)[0], strict=True):
        dots[at] = dot
    return y, build(dots)


def jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that gives the derivative of every element of y = ``f(...)``.

    It pulls a gradient back once per element of y, and holds all of them until they are
    stacked: for many elements of y and one of x, ``jvp`` is cheaper.

    Args:
        f: takes and returns tensors, or trees of them.
        argnums: position of the argument x to differentiate, or several positions.
        unconnected: what an argument gets from which no path leads to y.
        holomorphic: x and y are complex, and y is a holomorphic function of x, whose complex
            derivatives are given.

    Otherwise y is real. Each element's derivative by a complex x is its gradient, as ``grad``
    gives it: with respect to the real part, plus i times that to the imaginary part.

    Returns:
        A function of ``f``'s arguments. Its result has y's structure, with x's structure in the
        place of each tensor of y (a tuple of such if there are several ``argnums``). The
        shapes are ``y.shape + x.shape``, the dtypes x's.

    Raises:
        ArgumentError, DTypeError, NotConnectedError: as ``value_and_grad``.

    """
    check_function(f, "jacobian", unconnected)
    return _jacobian(f, argnums, unconnected, holomorphic=holomorphic)


def _jacobian(
    f: Callable[..., Any], argnums: Any, unconnected: Unconnected, *, holomorphic: bool
) -> Callable[..., Any]:
    choice = Argnums.of(argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        traced = Traced.of(f, args, kwargs, choice.within(args), holomorphic=holomorphic)
        outputs, build = flatten(traced.y)
        check = check_holomorphic_result if holomorphic else check_real_loss
        for y in outputs:
            check(y, "jacobian")
        blocks = [_block(traced, y, unconnected, holomorphic=holomorphic) for y in outputs]
        return build([block if choice.several else block[0] for block in blocks])

    return differentiated


def _block(
    traced: Traced, y: Tensor, unconnected: Unconnected, *, holomorphic: bool
) -> tuple[Any, ...]:
    """Return the derivatives of all elements of ``y``, in the structure of each argument."""
    if not y.size:  # one pull, for what it says of connections
        sample = traced.gradients([(y, creation.zeros_like(y))], unconnected)
        return traced.regroup(
            [creation.zeros((*y.shape, *item.shape), dtype=item.dtype) for item in sample]
        )
    rows = [traced.gradients([(y, dy)], unconnected) for dy in _basis(y)]
    if not holomorphic:
        rows = [[conjugated(item) for item in row] for row in rows]
    if not y.shape:
        return traced.regroup(rows[0])
    columns = list(zip(*rows, strict=True))
    return traced.regroup(
        [
            movement.reshape(movement.stack(column), (*y.shape, *column[0].shape))
            for column in columns
        ]
    )


def _basis(y: Tensor) -> Iterator[Tensor]:
    """Yield tensors of y's type, each with a one in another place."""
    for at in range(y.size):
        row = np.zeros(y.size, y.dtype.numpy)
        row[at] = 1
        yield creation.asarray(row.reshape(y.shape))


def hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that gives the second derivatives of ``f``: its jacobian's jacobian.

    Args and errors are those of ``jacobian``; ``unconnected`` is about first derivatives: where
    these do not depend on an argument, second ones are zero. Complex arguments need
    ``holomorphic``: a real function has four second derivatives by the parts of two complex
    numbers, which one complex number cannot hold.

    Returns:
        A function of ``f``'s arguments. For one tensor x and a scalar y its result is of shape
        ``x.shape + x.shape``, in general of ``y.shape + x.shape + x.shape``; for several
        ``argnums`` it is a tuple of tuples, for trees a tree of trees.

    """
    check_function(f, "hessian", unconnected)
    first = _jacobian(f, argnums, unconnected, holomorphic=holomorphic)

    @functools.wraps(f)
    def gradients(*args: Any, **kwargs: Any) -> Any:
        found = first(*args, **kwargs)
        for item in () if holomorphic else flatten(found)[0]:
            if item.dtype in dt.COMPLEX:
                raise DTypeError(
                    f"hessian: an argument is {item.dtype}; differentiate a real function by "
                    "real and imaginary parts, as hessian(lambda x, y: f(complex(x, y)), (0, 1)) "
                    "does, or say holomorphic=True for a holomorphic one"
                )
        return found

    return _jacobian(gradients, argnums, "zeros", holomorphic=holomorphic)

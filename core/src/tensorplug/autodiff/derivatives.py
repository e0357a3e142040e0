"""Derivatives of functions of vectors: Jacobians by backward passes, and Hessians."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec

from tensorplug.autodiff.backpropagation import find_path
from tensorplug.autodiff.complex_numbers import (
    check_holomorphic_result,
    check_real_loss,
    conjugate,
)
from tensorplug.autodiff.directional import MOST_ELEMENTS, forward_jacobian
from tensorplug.autodiff.tape import CallNode
from tensorplug.autodiff.tracing import (
    Argnums,
    Traced,
    Unconnected,
    check_function,
)
from tensorplug.contract import dtypes as dt
from tensorplug.errors import DTypeError
from tensorplug.mapping.vmap import vmap
from tensorplug.ops import creation, diagonals, joining, movement
from tensorplug.tensors.tree import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor


P = ParamSpec("P")


def jacobian(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the derivative of every element of y = ``f(...)``.

    One backward pass serves many elements of y at once (``vmap``): as many as fit into some tens
    of megabytes. For more elements of y than of x, ``jacfwd`` is cheaper.

    Args:
        f: takes and returns tensors, or trees of them.
        argnums: position of the argument x to differentiate, or several positions.
        unconnected: ``"error"`` or ``"zeros"`` for an argument on which y does not depend.
        holomorphic: whether x and y are complex and y is a holomorphic function of x; the
            derivatives are then complex, too.

    Without ``holomorphic``, y is real. The derivative of an element by a complex x is its
    gradient, as in ``grad``.

    Returns:
        A function of ``f``'s arguments. Its result has y's structure, with x's structure for
        each tensor of y (a tuple of these for several ``argnums``). The shapes are
        ``y.shape + x.shape``, the dtypes x's.

    Raises:
        ArgumentError, DTypeError, NotConnectedError: as ``value_and_grad``.

    Examples:
        >>> tp.jacobian(lambda x: x**2)(tp.asarray([1.0, 3.0])).tolist()
        [[2.0, 0.0], [0.0, 6.0]]

    """
    check_function(f, "jacobian", unconnected)
    return _jacobian(f, argnums, unconnected, holomorphic=holomorphic)


jacrev = jacobian
"""``jacobian``: by reverse mode, as its other name says."""


def _jacobian(
    f: Callable[..., Any], argnums: Any, unconnected: Unconnected, *, holomorphic: bool
) -> Callable[..., Any]:
    choice = Argnums(argnums)

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

    def pull(dy: Tensor) -> list[Tensor]:
        return traced.gradients([(y, dy)], unconnected)

    if y.size < 2:  # for no element, one backward pass checks connections
        rows = pull(creation.ones_like(y))
        if not y.size:
            rows = [creation.zeros((0, *row.shape), dtype=row.dtype) for row in rows]
    else:
        size, at_once = y.size, _rows_at_once(traced, y)
        parts = []
        for start in range(0, size, at_once):
            units = diagonals.eye(min(at_once, size - start), size, k=start, dtype=y.dtype)
            parts.append(vmap(pull)(movement.reshape(units, (-1, *y.shape))))
        rows = [
            joining.concat(column) if len(column) > 1 else column[0]
            for column in zip(*parts, strict=True)
        ]
    shapes = [leaf.shape for entry in traced.entries for leaf in entry.aliases]
    blocks = [
        movement.reshape(row, (*y.shape, *shape)) for row, shape in zip(rows, shapes, strict=True)
    ]
    return traced.regroup(blocks if holomorphic else [conjugate(block) for block in blocks])


def _rows_at_once(traced: Traced, y: Tensor) -> int:
    """Return the number of elements of ``y`` for which one backward pass has enough memory."""
    leaves = [leaf._node for entry in traced.entries for leaf in entry.aliases]
    sizes = [y.size, *(leaf.size for entry in traced.entries for leaf in entry.aliases)]
    for node in find_path([] if y._node is None else [y._node], leaves) if leaves else ():
        if isinstance(node, CallNode):
            sizes += [placement.type.size for placement in node.plan.outputs]
    return max(1, MOST_ELEMENTS // max(sizes))


def hessian(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    unconnected: Unconnected = "error",
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the second derivatives of ``f``, forward over reverse.

    It is the derivative of the gradient along each element of the argument (``jacfwd``), all of
    them at once (``vmap``).

    Args and errors are those of ``jacobian``; ``unconnected`` concerns first derivatives. If
    these do not depend on an argument, second derivatives are zero. Complex arguments need
    ``holomorphic``: a real function has four second derivatives by the parts of two complex
    numbers, which one complex number cannot represent.

    Returns:
        A function of ``f``'s arguments. For one tensor x and a scalar y its result has the shape
        ``x.shape + x.shape``, in general ``y.shape + x.shape + x.shape``; for several
        ``argnums`` it is a tuple of tuples, for trees a tree of trees.

    Examples:
        >>> tp.hessian(lambda x: tp.sum(x**3))(tp.asarray([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]

    """
    check_function(f, "hessian", unconnected)
    first = _jacobian(f, argnums, unconnected, holomorphic=holomorphic)

    @functools.wraps(f)
    def gradients(*args: Any, **kwargs: Any) -> Any:
        tree = first(*args, **kwargs)
        for gradient in () if holomorphic else flatten(tree)[0]:
            if gradient.dtype in dt.COMPLEX:
                raise DTypeError(
                    f"hessian: an argument is {gradient.dtype}; differentiate a real function by "
                    "real and imaginary parts, as hessian(lambda x, y: f(complex(x, y)), (0, 1)) "
                    "does, or set holomorphic=True for a holomorphic one"
                )
        return tree

    return forward_jacobian(gradients, argnums, "zeros", holomorphic=holomorphic, who="hessian")

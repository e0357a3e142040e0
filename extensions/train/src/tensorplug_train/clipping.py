"""Keeping gradients from growing beyond bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import tensorplug as tp
from tensorplug.plugin import ArgumentError, arguments, as_tensor, tree
from tensorplug.plugin import dtypes as dt
from tensorplug_train.transformation import named_leaves

if TYPE_CHECKING:
    from tensorplug import Tensor

T = TypeVar("T")


def global_norm(gradients: Any) -> Tensor:
    """Return the Euclidean norm of all leaves of a tree, taken as one vector.

    Args:
        gradients: a tree of floating or complex tensors.

    Returns:
        A tensor of rank 0, float32 for float16 leaves. A tree without leaves has norm 0.

    Raises:
        ArgumentError, DTypeError: a leaf is not a tensor of floating or complex numbers.

    Examples:
        >>> float(tp.train.global_norm({"w": tp.asarray([3.0, 0.0]), "b": tp.asarray(4.0)}))
        5.0

    """
    leaves = named_leaves("global_norm: gradients", gradients)
    squares = [sum_of_squares(leaf) for _, leaf in leaves]
    total = sum(squares[1:], squares[0]) if squares else as_tensor(0.0)
    return tp.sqrt(total)


def clip_by_global_norm(gradients: T, max_norm: float) -> tuple[T, Tensor]:
    """Return gradients whose ``global_norm`` is at most ``max_norm``, and the norm before.

    All leaves are multiplied by ``max_norm / max(norm, max_norm)``, so their direction does not
    change. If the norm is infinite, infinite elements become NaN and others 0. (Pascanu, Mikolov
    and Bengio, "On the difficulty of training recurrent neural networks", 2013.)

    Args:
        gradients: a tree of floating or complex tensors.
        max_norm: a positive number.

    Returns:
        ``(gradients, norm)``: a tree with the structure and types of the argument; the norm.

    Raises:
        ArgumentError: ``max_norm`` is not a positive number. Also the errors of ``global_norm``.

    Examples:
        >>> gradients = [tp.asarray([3.0]), tp.asarray([4.0])]
        >>> clipped, norm = tp.train.clip_by_global_norm(gradients, 1.0)
        >>> float(norm), float(tp.train.global_norm(clipped))
        (5.0, 1.0)

    """
    _check_norm("clip_by_global_norm", max_norm)
    norm = global_norm(gradients)
    factor = max_norm / tp.maximum(norm, max_norm)
    scaled: T = tree.tree_map(lambda leaf: _scaled(leaf, factor), gradients)
    return scaled, norm


def clip_by_norm(gradients: T, max_norm: float) -> T:
    """Return a tree in which each leaf has a norm of at most ``max_norm``.

    Each leaf is multiplied by ``max_norm / max(norm, max_norm)`` with its own norm.

    ``gradients``: a tree of tensors.

    Args and errors: see ``clip_by_global_norm``.

    Examples:
        >>> gradients = [tp.asarray([4.0]), tp.asarray([0.5])]
        >>> [leaf.tolist() for leaf in tp.train.clip_by_norm(gradients, 1.0)]
        [[1.0], [0.5]]

    """
    _check_norm("clip_by_norm", max_norm)
    clipped = []
    for _, leaf in named_leaves("clip_by_norm: gradients", gradients):
        norm = tp.sqrt(sum_of_squares(leaf))
        clipped.append(_scaled(leaf, max_norm / tp.maximum(norm, max_norm)))
    rebuilt: T = tree.flatten(gradients)[1](clipped)
    return rebuilt


def _scaled(leaf: Tensor, factor: Tensor) -> Tensor:
    own = tp.astype(factor, dt.real_part(leaf.dtype), copy=False)
    return leaf * own


def sum_of_squares(leaf: Tensor) -> Tensor:
    """Return the sum of the squared magnitudes of all elements, in float32 at least."""
    size = tp.abs(leaf)
    wide = size.astype(size.dtype.compute, copy=False)
    return tp.sum(tp.square(wide))


def _check_norm(who: str, max_norm: Any) -> None:
    is_number = isinstance(max_norm, int | float) and not isinstance(max_norm, bool)
    if not is_number or not max_norm > 0:
        raise ArgumentError(
            f"{who}: max_norm must be a positive number, got {arguments.quoted(max_norm)}"
        )

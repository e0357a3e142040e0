"""Examples and batches as trees in which a list is a leaf: a column of examples, or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, arguments, host_values, tree

if TYPE_CHECKING:
    from collections.abc import Callable


def opened(value: Any) -> dict[Any, Any] | None:
    """Return the children of a tree; None for a leaf."""
    return None if isinstance(value, list) else tree.opened(value)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a tree like ``value`` with ``function`` of each leaf."""
    level = None if isinstance(value, list) else tree.level(value)
    if level is None:
        return function(value)
    _, children, build, _ = level
    return build([mapped(function, child) for child in children])


def stacked(examples: list[Any], caller: str) -> Any:
    """Return examples of one structure as a tree of arrays ``[examples, ...]``.

    Python numbers get the default dtypes, int32 and float32; arrays keep theirs.

    Raises:
        ArgumentError: they have different structures.
        ShapeError: leaves have different shapes.

    """
    first = examples[0]
    parts = opened(first)
    if parts is None:
        return _stacked_leaves(examples, caller)
    rows = [opened(example) for example in examples]
    for at, row in enumerate(rows):
        if row is None or list(row) != list(parts):
            raise ArgumentError(
                f"{caller}: the examples of a batch must have one structure, but one is "
                f"{arguments.quoted(first)} and example {at} of the batch "
                f"{arguments.quoted(examples[at])}"
            )
    children = [stacked([row[key] for row in rows if row is not None], caller) for key in parts]
    return tree.with_children(first, children)


def _stacked_leaves(leaves: list[Any], caller: str) -> np.ndarray[Any, Any]:
    if isinstance(leaves[0], bool | int | float | complex | str):
        return host_values.as_array(leaves)
    arrays = [host_values.as_array(leaf) for leaf in leaves]
    for at, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise ShapeError(
                f"{caller}: the examples of a batch must have one shape, but one has "
                f"{arrays[0].shape} and example {at} of the batch {array.shape}; "
                "padded_batches pads sequences"
            )
    return np.stack(arrays)

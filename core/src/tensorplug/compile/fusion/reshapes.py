"""Which axes a Reshape splits and which it merges, and where they are in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape


Permutation = tuple[int, ...]


class Moved(NamedTuple):
    """A Reshape of ``permute_dims(source, perm)``, as calls on the source.

    ``permute_dims(reshape(permute_dims(reshape(source, split), order), merged), perm)``.
    """

    split: Shape
    order: Permutation
    merged: Shape
    perm: Permutation


def moved(source: Shape, perm: Permutation, shape: Shape) -> Moved | None:
    """Return how to reshape ``permute_dims(source, perm)`` to ``shape`` without a copy of its own.

    Axes that are merged are brought side by side first. None: axes are neither only split nor
    only merged, or there are no elements.
    """
    axes = [axis for axis in perm if source[axis] != 1]  # of the source, in the value's order
    kept = [axis for axis, length in enumerate(shape) if length != 1]
    groups = _groups([source[axis] for axis in axes], [shape[axis] for axis in kept])
    if groups is None:
        return None
    # Each new axis is a list of parts: (axis of the source, axis of the result).
    split: dict[int, list[int]] = {}
    merged: dict[int, list[int]] = {}
    for before, after in groups:
        if len(before) == 1:
            split[axes[before[0]]] = [kept[at] for at in after]
        elif len(after) == 1:
            merged[kept[after[0]]] = [axes[at] for at in before]
        else:
            return None
    ones = [axis for axis, length in enumerate(shape) if length == 1]
    in_source = [axis for axis in range(len(source)) if source[axis] != 1]
    group_of = {axis: result for result, members in merged.items() for axis in members}
    pieces: list[int] = []  # the axes of ``split``, by what they become: axes of the result
    order: list[int] = []
    results: list[int] = []  # the axes of the result, as they lie in the end
    first: dict[int, int] = {}
    sizes: list[int] = []
    for axis in in_source:
        first[axis] = len(pieces)
        parts = split.get(axis, [group_of.get(axis, -1)])
        pieces += parts
        sizes += [shape[part] for part in parts] if axis in split else [source[axis]]
    for axis in in_source:
        if axis in split:
            order += range(first[axis], first[axis] + len(split[axis]))
            results += split[axis]
        elif axis == max(merged[group_of[axis]]):  # what is innermost stays there
            order += [first[member] for member in merged[group_of[axis]]]
            results.append(group_of[axis])
    if results == sorted(results):
        results = sorted([*results, *ones])
    else:
        results += ones
    return Moved(
        tuple(sizes),
        tuple(order),
        tuple(shape[axis] for axis in results),
        tuple(results.index(axis) for axis in range(len(shape))),
    )


def broadcast_before(shape: Shape, before: Shape, after: Shape) -> Shape | None:
    """Return a shape for what broadcasts to ``after``, so that it broadcasts before a Reshape.

    ``shape``: what it has now, of the rank of ``after``. ``before``, ``after``: the shapes of the
    Reshape. None: it varies along only some of the axes that become one, or that one becomes.
    """
    axes = [axis for axis, length in enumerate(before) if length != 1]
    kept = [axis for axis, length in enumerate(after) if length != 1]
    groups = _groups([before[axis] for axis in axes], [after[axis] for axis in kept])
    if groups is None:
        return None
    result = [1] * len(before)
    for left, right in groups:
        own = [shape[kept[at]] for at in right]
        if own == [after[kept[at]] for at in right]:
            for at in left:
                result[axes[at]] = before[axes[at]]
        elif any(length != 1 for length in own):
            return None
    return tuple(result)


def _groups(before: list[int], after: list[int]) -> list[tuple[list[int], list[int]]] | None:
    """Return neighbouring axes of equal products, as few at a time as there can be."""
    if 0 in before or 0 in after:
        return None
    groups = []
    i = j = 0
    while i < len(before):
        group: tuple[list[int], list[int]] = ([i], [j])
        left, right = before[i], after[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left *= before[i]
                group[0].append(i)
                i += 1
            else:
                right *= after[j]
                group[1].append(j)
                j += 1
        groups.append(group)
    return groups

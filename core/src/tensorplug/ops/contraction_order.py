"""The order of products in an Einstein sum. This module computes with labels only.

A sum over several operands is split into products of two. Each one is a matrix product, and
labels that are no longer needed are summed at once. For up to ``_EXACT`` operands, an exhaustive
search finds the split with the fewest multiplications. For more, pairs are joined greedily,
smallest results first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.contract.shapes import Shape

_EXACT = 6


@dataclass(frozen=True, slots=True)
class Reduced:
    """The steps on one operand alone, in this order.

    ``shape``: without the broadcast axes of length 1, or None. ``diagonals``: pairs of axes; the
    first becomes their diagonal, the second is removed. ``summed``: axes whose labels occur
    nowhere else. ``labels``: the remaining ones.
    """

    shape: Shape | None
    diagonals: tuple[tuple[int, int], ...]
    summed: tuple[int, ...]
    labels: str


@dataclass(frozen=True, slots=True)
class Arranged:
    """The steps before a product: permute the axes, reshape, swap the last two axes."""

    perm: tuple[int, ...] | None
    shape: Shape | None
    swapped: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """One product of tensors ``left`` and ``right``, numbered in the order of their creation.

    ``matrices``: a matrix product, else elementwise. ``shape``: to reshape the result to, or
    None. ``labels``: of the result.
    """

    left: int
    right: int
    matrices: bool
    arranged_left: Arranged
    arranged_right: Arranged
    shape: Shape | None
    labels: str


@dataclass(frozen=True, slots=True)
class Contraction:
    """All steps of an Einstein sum; ``perm`` permutes the last result, if not None."""

    reduced: tuple[Reduced, ...]
    joins: tuple[Join, ...]
    perm: tuple[int, ...] | None


def terms(equation: str) -> tuple[list[str], str]:
    """Return the labels of each operand and of the result of a canonical equation."""
    left, _, right = equation.partition("->")
    return left.split(","), right


def label_sizes(labelled: Sequence[str], operands: Sequence[Shape]) -> dict[str, int]:
    """Return the length of each label; an axis of length 1 broadcasts.

    Raises:
        ShapeError: two lengths of one label differ and neither is 1.

    """
    sizes: dict[str, int] = {}
    for at, (labels, shape) in enumerate(zip(labelled, operands, strict=True)):
        for label, length in zip(labels, shape, strict=True):
            known = sizes.get(label, 1)
            if length not in (known, 1) and known != 1:
                raise ShapeError(
                    f"label {label!r} has size {known}, but operand {at} of shape "
                    f"{list(shape)} has {length} there"
                )
            sizes[label] = length if known == 1 else known
    return sizes


def contraction(equation: str, operands: Sequence[Shape]) -> Contraction:
    """Return the steps of a canonical ``equation`` for operands of these shapes."""
    labelled, out = terms(equation)
    sizes = label_sizes(labelled, operands)
    kept = [
        _keep_axes(labels, shape, sizes) for labels, shape in zip(labelled, operands, strict=True)
    ]
    reduced = tuple(
        _reduce_operand(axes, labels, shape, _collect_others([left for _, left in kept], at) + out)
        for at, ((axes, labels), shape) in enumerate(zip(kept, operands, strict=True))
    )
    made = [operand.labels for operand in reduced]
    joins: list[Join] = []
    pairs = _choose_pairs(made, out, sizes)
    waiting = dict(enumerate(made))
    for at, (left, right) in enumerate(pairs):
        pair = waiting.pop(left), waiting.pop(right)
        needed = out + "".join(waiting.values())
        join = _join((left, right), pair, needed, out if at == len(pairs) - 1 else "", sizes)
        joins.append(join)
        waiting[len(made) + at] = join.labels
    last = next(iter(waiting.values()))
    perm = tuple(last.index(label) for label in out)
    return Contraction(reduced, tuple(joins), None if last == out else perm)


def _collect_others(labelled: Sequence[str], at: int) -> str:
    return "".join(labels for index, labels in enumerate(labelled) if index != at)


def _keep_axes(labels: str, shape: Shape, sizes: Mapping[str, int]) -> tuple[list[int], str]:
    """Return the axes that are not broadcast, and their labels."""
    axes = [axis for axis, label in enumerate(labels) if shape[axis] == sizes[label]]
    return axes, "".join(labels[axis] for axis in axes)


def _reduce_operand(axes: list[int], labels: str, shape: Shape, needed: str) -> Reduced:
    squeezed = tuple(shape[axis] for axis in axes) if len(axes) < len(shape) else None
    left = list(labels)
    diagonals = []
    for label in dict.fromkeys(left):
        while left.count(label) > 1:
            first = left.index(label)
            second = left.index(label, first + 1)
            diagonals.append((first, second))
            del left[second]
    summed = tuple(axis for axis, label in enumerate(left) if label not in needed)
    rest = "".join(label for label in left if label in needed)
    return Reduced(squeezed, tuple(diagonals), summed, rest)


def _join(
    positions: tuple[int, int],
    pair: tuple[str, str],
    needed: str,
    out: str,
    sizes: Mapping[str, int],
) -> Join:
    """Return the product of ``pair``; ``out`` has the final result's labels for the last one."""
    common = [label for label in pair[0] if label in pair[1]]
    inner = [label for label in common if label not in needed]
    if not inner:
        return _join_elementwise(positions, pair, out, sizes)
    order = out or pair[0]
    batch = sorted((label for label in common if label in needed), key=order.index)
    rows = [label for label in pair[0] if label not in common]
    columns = [label for label in pair[1] if label not in common]
    if out and rows and columns and out.index(rows[0]) > out.index(columns[0]):
        return _join(positions[::-1], pair[::-1], needed, "", sizes)
    if len(pair[1]) > len(pair[0]):  # the larger operand's order, so that it is not copied
        inner.sort(key=pair[1].index)
    labels = "".join([*batch, *rows, *columns])
    return Join(
        *positions,
        True,  # noqa: FBT003  # a field
        _arrange_matrices(pair[0], (batch, rows, inner), sizes),
        _arrange_matrices(pair[1], (batch, inner, columns), sizes),
        None if len(rows) == len(columns) == 1 else tuple(sizes[label] for label in labels),
        labels,
    )


def _arrange_matrices(
    labels: str, groups: tuple[list[str], list[str], list[str]], sizes: Mapping[str, int]
) -> Arranged:
    """Return the steps that make matrices of an operand: [batch, rows, columns]."""
    batch, rows, columns = groups
    swapped = bool(rows and columns) and labels.index(columns[0]) < labels.index(rows[0])
    last = (columns, rows) if swapped else (rows, columns)
    expected = [*batch, *last[0], *last[1]]
    perm = tuple(labels.index(label) for label in expected)
    merged = len(last[0]) != 1 or len(last[1]) != 1
    shape = (
        *(sizes[label] for label in batch),
        *(prod(sizes[label] for label in group) for group in last),
    )
    return Arranged(
        None if perm == tuple(range(len(perm))) else perm, shape if merged else None, swapped
    )


def _join_elementwise(
    positions: tuple[int, int], pair: tuple[str, str], out: str, sizes: Mapping[str, int]
) -> Join:
    labels = "".join(dict.fromkeys(out or pair[0] + pair[1]))
    arranged = []
    for operand in pair:
        perm = tuple(operand.index(label) for label in labels if label in operand)
        spread = tuple(sizes[label] if label in operand else 1 for label in labels)
        lead = len(spread) - len(operand)
        plain = all(
            label not in operand for label in labels[:lead]
        )  # broadcasting adds these axes
        arranged.append(
            Arranged(None if perm == tuple(range(len(perm))) else perm, None if plain else spread)
        )
    left, right = arranged
    return Join(*positions, False, left, right, None, labels)  # noqa: FBT003  # a field


# The order -------------------------------------------------------------------------------

Pairs = list[tuple[int, int]]


def _choose_pairs(made: Sequence[str], out: str, sizes: Mapping[str, int]) -> Pairs:
    if len(made) <= _EXACT:
        return _find_cheapest(made, out, sizes)
    return _join_greedily(made, out, sizes)


def _estimate_cost(labels: set[str], sizes: Mapping[str, int]) -> int:
    return prod(sizes[label] for label in labels)


def _find_cheapest(made: Sequence[str], out: str, sizes: Mapping[str, int]) -> Pairs:
    """Return the joins with the fewest multiplications, by dynamic programming over subsets."""
    count = len(made)
    sets = [set(labels) for labels in made]
    full = (1 << count) - 1

    def kept(subset: int) -> set[str]:
        inside: set[str] = set()
        outside = set(out)
        for at in range(count):
            (inside if subset >> at & 1 else outside).update(sets[at])
        return inside & outside

    labels = {subset: kept(subset) for subset in range(1, full + 1)}
    for at in range(count):
        labels[1 << at] = sets[at]
    split = _find_best_splits(labels, sizes)
    pairs: Pairs = []

    def build(subset: int) -> int:
        if subset not in split:  # one operand
            return subset.bit_length() - 1
        left, right = sorted(map(build, split[subset]))
        pairs.append((left, right))
        return count + len(pairs) - 1

    build(full)
    return pairs


def _find_best_splits(
    labels: Mapping[int, set[str]], sizes: Mapping[str, int]
) -> dict[int, tuple[int, int]]:
    """Return the best split in two parts for each subset of two or more operands.

    ``labels`` has the labels of the product of each subset, a bit mask of operands.
    """
    costs: dict[int, int] = {}
    split: dict[int, tuple[int, int]] = {}
    for subset in labels:  # parts are smaller numbers than the whole
        part = (subset - 1) & subset
        if not part:
            costs[subset] = 0
        while part:
            rest = subset ^ part
            cost = costs[part] + costs[rest] + _estimate_cost(labels[part] | labels[rest], sizes)
            if part > rest and (
                subset not in split or cost < costs[subset]
            ):  # count each split once
                costs[subset], split[subset] = cost, (part, rest)
            part = (part - 1) & subset
    return split


def _join_greedily(made: Sequence[str], out: str, sizes: Mapping[str, int]) -> Pairs:
    """Join pairs repeatedly: first those whose product is smallest relative to themselves."""
    waiting = {at: set(labels) for at, labels in enumerate(made)}
    pairs: Pairs = []
    while len(waiting) > 1:
        ranked = []
        keys = sorted(waiting)
        for at, left in enumerate(keys):
            for right in keys[at + 1 :]:
                a, b = waiting[left], waiting[right]
                needed = set(out).union(
                    *(others for key, others in waiting.items() if key not in (left, right))
                )
                grown = (
                    _estimate_cost((a | b) & needed, sizes)
                    - _estimate_cost(a, sizes)
                    - _estimate_cost(b, sizes)
                )
                ranked.append((grown, _estimate_cost(a | b, sizes), left, right, (a | b) & needed))
        *_, left, right, result = min(ranked, key=lambda join: join[:4])
        del waiting[left], waiting[right]
        waiting[len(made) + len(pairs)] = result
        pairs.append((left, right))
    return pairs

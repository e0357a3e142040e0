"""Recipes: what the program of a group depends on, made once for all sizes.

A new size costs a walk over the group's expressions, which finds the recipe and the values of the
constants. These are arguments, so one program serves all bounds, slopes and lengths.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions, lift_constants
from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.plugin import Expression, Group


KEPT: Final = 512  # recipes and texts of groups in memory
MOST: Final = 640  # bytes of the arguments for arrays and constants: the rest is for sizes
TITLE: Final = 60  # characters, at most, of the calls' names in a program's title
COMMON: Final = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2})  # what compilers make use of


class Recipe:
    """A group with inputs for its constants, which come last. Its lengths are without meaning.

    ``chosen``: the numbers of these constants among the distinct ones, in order.
    """

    def __init__(self, group: Group, chosen: Sequence[int]) -> None:
        self.group = group
        self.chosen = chosen
        self.roots: list[Expression] = group.expressions()
        nodes = expressions.linearize(self.roots)
        self.plain = all(node.op != "axis" for node in nodes)
        self._dtypes = {node.dtype for node in nodes}
        cut = len(group.name) > TITLE
        self.title = f"{group.name[:TITLE]}... of {len(nodes)}" if cut else group.name

    @cached_property
    def computed(self) -> set[str]:
        """The types that are computed with.

        Raises:
            KernelRefusedError: one is of complex numbers.

        """
        return {ctypes.computed(dtype) for dtype in self._dtypes}


def find(group: Group) -> tuple[Recipe, list[np.generic]]:
    """Return the recipe of a group, and its constants as arguments.

    Numbers that many groups have stay in the program. So do all of a group with more of them than
    a kernel may have arguments.
    """
    outline = _outline(group)
    recipe = _make(outline)
    return recipe, [_make_argument(outline.constants[at]) for at in recipe.chosen]


def is_plain(group: Group) -> bool:
    """Return ``group.is_plain``, of which the search for indices is made once for all sizes."""
    more = group.folds or any(each.running for each in group.reductions)
    indices = (*(each.index for each in group.inputs), *(each.index for each in group.outputs))
    indexed = any(index is not None for index in indices)
    return not more and not indexed and _make(_outline(group)).plain


class _Outline:
    """A group, equal to others that differ in sizes and in the values of ``constants`` only."""

    __slots__ = ("_hash", "_key", "constants", "group")

    def __init__(self, group: Group, key: Hashable, constants: list[Expression]) -> None:
        self.group, self.constants = group, constants
        self._key, self._hash = key, hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Outline) and self._key == other._key


@lru_cache(4)  # it is asked twice
def _outline(group: Group) -> _Outline:
    distinct: dict[Hashable, int] = {}
    constants: list[Expression] = []
    entries: list[Hashable] = []  # operands first
    numbers: dict[int, int] = {}  # of entries, by the identity of the expression
    stack = group.expressions()
    while stack:  # not recursion: chains may be long
        node = stack[-1]
        operands = [numbers.get(id(operand)) for operand in node.operands]
        if None in operands:
            stack += [each for each in node.operands if id(each) not in numbers]
            continue
        stack.pop()
        if id(node) in numbers:
            continue
        value: Hashable = node.value
        if node.op == "constant":
            value = _exact(node)
            if node.dtype is not dt.bool_ and node.value not in COMMON:
                at = distinct.setdefault(value, len(constants))
                if at == len(constants):
                    constants.append(node)
                value = at
        numbers[id(node)] = len(entries)
        entries.append((node.op, node.dtype, value, *operands))
    key = (
        group.name,
        tuple([(operand.type.dtype, operand.spans) for operand in group.inputs]),
        tuple([(each.op, each.axes, numbers[id(each.expression)]) for each in group.reductions]),
        tuple(
            [
                (numbers[id(each.expression)], each.type.dtype, each.spans, each.into)
                for each in group.outputs
            ]
        ),
        tuple(entries),
    )
    pointers = 16 * (len(group.inputs) + len(group.outputs) + len(group.reductions))
    if pointers + sum(node.dtype.compute.itemsize for node in constants) > MOST:
        return _Outline(group, (key, *distinct), [])
    return _Outline(group, key, constants)


@lru_cache(KEPT)
def _make(outline: _Outline) -> Recipe:
    known = {_exact(node): at for at, node in enumerate(outline.constants)}

    def choose(nodes: Sequence[Expression]) -> list[Expression]:
        return [node for node in nodes if node.op == "constant" and _exact(node) in known]

    group, chosen = lift_constants(outline.group, choose)
    return Recipe(group, [known[_exact(node)] for node in chosen])


def _exact(constant: Expression) -> Hashable:
    """Return a key that tells -0.0 from 0.0, and finds NaN equal to itself."""
    return constant.dtype, type(constant.value), repr(constant.value)


def _make_argument(constant: Expression) -> np.generic:
    """Return a constant, rounded to its dtype, in the type that computes with it."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.array(constant.value).astype(constant.dtype.numpy)
    argument: np.generic = ctypes.host(ctypes.computed(constant.dtype)).type(rounded[()])
    return argument

"""Passes: what a group computes along each row of elements that it reduces, walk after walk.

Each pass takes the reductions that need the results of the passes before, and the last one the
outputs. What does not vary along a row is computed once, between the passes. A costly value that a
later pass needs again is kept, in the row of an output of its dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import DType, Expression, expressions
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


KEEPING: Final = 12  # the cost from which on a value is kept
_COSTS: Final = {**dict.fromkeys(expressions.FUNCTIONS, 20), "divide": 4, "sqrt": 4}


class Fold(NamedTuple):
    """A reduction: the number of its result as a parameter, its op, and what it takes."""

    number: int
    op: str
    expression: Expression


class Pass(NamedTuple):
    """A walk along the row.

    ``before``: numbers of the row that are computed first, by their numbers as parameters.
    ``stores``: expressions of elements, by the numbers of the outputs that get them.
    """

    before: list[tuple[int, Expression]]
    folds: list[Fold]
    stores: list[tuple[int, Expression]]


class Row(NamedTuple):
    """The passes, the row's own outputs, and for parameters of kept values the outputs."""

    passes: list[Pass]
    before: list[tuple[int, Expression]]
    ends: list[tuple[int, Expression]]
    kept: dict[int, int]


def accumulate(op: str, dtype: DType) -> DType:
    """Return the dtype in which a reduction is done; of narrow floats in float."""
    if dtype.kind == "float" or op in ("max", "min"):
        return dtype
    return dt.uint64 if dtype.itemsize == 8 else dt.uint32  # which wrap


def list_parameters(roots: Sequence[Expression]) -> dict[int, DType]:
    """Return the dtypes of the parameters in some expressions, by number."""
    return {
        _number(each): each.dtype
        for each in expressions.linearize(roots)
        if each.op == "parameter"
    }


def _number(parameter: Expression) -> int:
    return int(parameter.value)  # type: ignore[arg-type]  # a number


def find_levels(inputs: int, roots: Sequence[Expression]) -> list[list[int]]:
    """Return the numbers of reductions by level: each needs only results of levels before it."""
    levels: list[int] = []
    for root in roots:
        used = [levels[at - inputs] for at in list_parameters([root]) if at >= inputs]
        levels.append(1 + max(used, default=-1))
    return [
        [at for at, level in enumerate(levels) if level == which]
        for which in range(max(levels, default=-1) + 1)
    ]


def rate(roots: Sequence[Expression]) -> int:
    """Return what expressions cost, in additions."""
    return sum(_COSTS.get(each.op, 1) for each in expressions.linearize(roots) if each.operands)


def make_row(
    varies: Sequence[bool],
    reductions: Sequence[tuple[str, Expression]],
    outputs: Sequence[tuple[Expression, bool]],
    *,
    keeps: bool,
) -> Row:
    """Return the passes of reductions and outputs.

    ``varies``: of each input, whether it varies along a row. ``outputs``: with the expressions,
    whether they have an element for each of the row's. ``keeps``: whether these may hold values.
    """
    return _Maker(varies, reductions, outputs).make(keeps=keeps)


class _Maker:
    """The maker of a row's passes from expressions of which equal ones are one object."""

    def __init__(
        self,
        varies: Sequence[bool],
        reductions: Sequence[tuple[str, Expression]],
        outputs: Sequence[tuple[Expression, bool]],
    ) -> None:
        count = len(reductions)
        roots = expressions.unify([*(root for _, root in reductions), *(e for e, _ in outputs)])
        self._ops = [op for op, _ in reductions]
        self._reduced, self._outputs = roots[:count], roots[count:]
        self._along = [along for _, along in outputs]
        self._inputs = len(varies)
        self._count = self._inputs + count
        self._varying = _find_varying(roots, varies)
        self._levels = find_levels(self._inputs, self._reduced)
        stores = [root for root, along in zip(self._outputs, self._along, strict=True) if along]
        self._walks = [[self._reduced[at] for at in level] for level in self._levels]
        self._walks.append(stores)
        self._known: dict[int, int] = {}  # numbers of the row, by the identity of the expression
        self._kept: dict[int, tuple[int, int, int]] = {}  # (walk, output, parameter), likewise

    def make(self, *, keeps: bool) -> Row:
        if keeps:
            self._choose_kept()
        passes = []
        for at, level in enumerate(self._levels):
            before: list[tuple[int, Expression]] = []
            folds, casts = [], []
            for number in level:
                op, root = self._ops[number], self._reduced[number]
                dtype = accumulate(op, root.dtype)
                taken = expressions.cast(self._rewrite(root, at, before), dtype)
                result = self._inputs + number
                if dtype is not root.dtype:  # the result is rounded, or cut off
                    raw = self._take_number()
                    casts.append(
                        (result, expressions.cast(expressions.parameter(raw, dtype), root.dtype))
                    )
                    result = raw
                folds.append(Fold(result, op, taken))
            stores = [
                (output, self._rewrite(node, at, before)) for node, output in self._keep_in(at)
            ]
            passes.append(Pass(before, folds, stores))
            if casts:
                passes.append(Pass(casts, [], []))
        last: list[tuple[int, Expression]] = []
        stores = [
            (output, self._rewrite(root, len(self._levels), last))
            for output, root in enumerate(self._outputs)
            if self._along[output]
        ]
        ends: list[tuple[int, Expression]] = []
        if stores:
            passes.append(Pass(last, [], stores))
            last = []
        for output, root in enumerate(self._outputs):
            if not self._along[output]:
                ends.append((output, self._as_number(root, last)))
        kept = {parameter: output for _, output, parameter in self._kept.values()}
        return Row(passes, last, ends, kept)

    def _take_number(self) -> int:
        self._count += 1
        return self._count - 1

    # Kept values -----------------------------------------------------------------------------

    def _choose_kept(self) -> None:
        """Choose for each output the costliest value that is needed by two walks."""
        ordered = [_order(walk, lambda _: False) for walk in self._walks]
        needed = [{id(node) for node in nodes} for nodes in ordered]
        for output, (root, along) in enumerate(zip(self._outputs, self._along, strict=True)):
            narrow = root.dtype.compute is not root.dtype
            if not along or narrow or root.dtype is dt.bool_:  # rounded, or not a number
                continue
            best = KEEPING - 1
            chosen: tuple[Expression, int] | None = None
            for at, nodes in enumerate(ordered[:-1]):
                for node in nodes:
                    if (
                        node.operands
                        and node.dtype is root.dtype
                        and id(node) in self._varying
                        and id(node) not in self._kept
                        and not any(id(node) in before for before in needed[:at])
                        and any(id(node) in after for after in needed[at + 1 :])
                        and rate([node]) > best
                    ):
                        best, chosen = rate([node]), (node, at)
            if chosen is not None:
                self._kept[id(chosen[0])] = (chosen[1], output, self._take_number())

    def _keep_in(self, at: int) -> list[tuple[Expression, int]]:
        """Return the values that a walk keeps, and the outputs that hold them."""
        nodes = {id(node): node for node in _order(self._walks[at], lambda _: False)}
        return [
            (nodes[identity], output)
            for identity, (walk, output, _) in self._kept.items()
            if walk == at
        ]

    # Numbers of the row ----------------------------------------------------------------------

    def _as_number(self, root: Expression, before: list[tuple[int, Expression]]) -> Expression:
        """Return an expression that does not vary along the row, as a parameter or constant."""
        if not root.operands:
            return root
        if id(root) not in self._known:
            new: dict[int, Expression] = {}
            for node in _order([root], lambda node: id(node) in self._known):
                new[id(node)] = (
                    expressions.parameter(self._known[id(node)], node.dtype)
                    if id(node) in self._known
                    else _replace(node, [new[id(operand)] for operand in node.operands])
                )
            number = self._take_number()
            before.append((number, new[id(root)]))
            self._known[id(root)] = number
        return expressions.parameter(self._known[id(root)], root.dtype)

    def _rewrite(
        self, root: Expression, at: int, before: list[tuple[int, Expression]]
    ) -> Expression:
        """Return the expression of a walk with parameters for what is known by then."""

        def is_kept(node: Expression) -> bool:
            kept = self._kept.get(id(node))
            return kept is not None and kept[0] < at

        def is_end(node: Expression) -> bool:
            return id(node) not in self._varying or is_kept(node)

        new: dict[int, Expression] = {}
        for node in _order([root], is_end):
            if id(node) not in self._varying:
                new[id(node)] = self._as_number(node, before)
            elif is_kept(node):
                new[id(node)] = expressions.parameter(self._kept[id(node)][2], node.dtype)
            else:
                new[id(node)] = _replace(node, [new[id(operand)] for operand in node.operands])
        return new[id(root)]


def _replace(node: Expression, operands: Sequence[Expression]) -> Expression:
    """Return an operation on other operands."""
    if not operands:
        return node
    return Expression(node.op, node.dtype, tuple(operands), node.value)


def _find_varying(roots: Sequence[Expression], varies: Sequence[bool]) -> set[int]:
    """Return the identities of the expressions that vary along a row."""
    dependent: set[int] = set()
    for node in _order(roots, lambda _: False):
        if node.op == "parameter":
            number = _number(node)
            if number < len(varies) and varies[number]:
                dependent.add(id(node))
        elif any(id(operand) in dependent for operand in node.operands):
            dependent.add(id(node))
    return dependent


def _order(roots: Sequence[Expression], is_end: Callable[[Expression], bool]) -> list[Expression]:
    """Return what expressions need, operands first, without the operands of the ends."""
    ordered: dict[int, Expression] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:  # not recursion: chains may be long
        node, entered = stack.pop()
        if id(node) in ordered:
            continue
        if entered or is_end(node):
            ordered[id(node)] = node
            continue
        stack.append((node, True))
        stack += [(operand, False) for operand in reversed(node.operands)]
    return list(ordered.values())

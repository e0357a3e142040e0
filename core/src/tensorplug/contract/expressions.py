"""Scalar expressions: what an elementwise kernel computes for one element, typed.

An expression is a graph of operations on numbers. A kernel's expression stands in its spec, or
comes from tracing its decomposition; compilers of programs put the expressions of several kernels
together, and a backend renders the result for its hardware (``contract.groups``).

Operators build expressions, and Python numbers take the dtype of the other operand::

    x = parameter(0, dtypes.float32)
    0.5 * x * (1 + function("tanh", x))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from tensorplug.contract.dtypes import DType, Scalar

    _ById = dict[int, "Expression"]
    _Known = dict[Hashable, "Expression"]

__all__ = [
    "FUNCTIONS",
    "OPERATIONS",
    "Expression",
    "Operation",
    "apply",
    "axis",
    "bitcast",
    "cast",
    "constant",
    "function",
    "is_likely",
    "linearize",
    "of_floats",
    "order",
    "parameter",
    "substitute",
    "unify",
    "where",
]


class Operation(NamedTuple):
    """What an operation takes and gives.

    ``operands``: their number. ``dtypes``: those that they may have; all operands have the same
    one, but for ``where``, whose first is a bool. ``meaning``: of operands a, b and c. ``gives``:
    the dtype of the result, None for that of the operands.
    """

    operands: int
    dtypes: frozenset[DType]
    meaning: str = ""
    gives: DType | None = None


_LOGICAL: Final = dt.BOOL
_BITS: Final = dt.INTEGER | dt.BOOL
_ORDERED: Final = dt.REAL | dt.BOOL

OPERATIONS: Final[dict[str, Operation]] = {
    "add": Operation(2, dt.NUMERIC, "a + b; integers wrap"),
    "subtract": Operation(2, dt.NUMERIC, "a - b; integers wrap"),
    "multiply": Operation(2, dt.NUMERIC, "a * b; integers wrap"),
    "divide": Operation(2, dt.INEXACT, "a / b; complex: finite wherever the quotient is"),
    "floor_divide": Operation(2, dt.REAL, "a / b rounded down; an integer divided by 0 gives 0"),
    "remainder": Operation(2, dt.REAL, "has the sign of b; of an integer divided by 0, it is 0"),
    "negative": Operation(1, dt.NUMERIC, "-a; integers wrap"),
    "abs": Operation(1, dt.REAL, "|a|; integers wrap"),
    "maximum": Operation(2, dt.REAL, "NaN if an operand is; either of 0.0 and -0.0"),
    "minimum": Operation(2, dt.REAL, "NaN if an operand is; either of 0.0 and -0.0"),
    "fma": Operation(3, dt.FLOATING, "a * b + c, rounded once or twice, whichever is faster"),
    "floor": Operation(1, dt.FLOATING, "rounded down"),
    "ceil": Operation(1, dt.FLOATING, "rounded up"),
    "trunc": Operation(1, dt.FLOATING, "rounded towards 0"),
    "round": Operation(1, dt.FLOATING, "rounded, halves to even"),
    "sqrt": Operation(1, dt.FLOATING, "correctly rounded"),
    "copysign": Operation(2, dt.FLOATING, "|a| with the sign of b"),
    "equal": Operation(2, dt.FIXED, "a == b; false if an operand is NaN", dt.bool_),
    "less": Operation(2, _ORDERED, "a < b; false if an operand is NaN", dt.bool_),
    "less_equal": Operation(2, _ORDERED, "a <= b; false if an operand is NaN", dt.bool_),
    "logical_and": Operation(2, _LOGICAL, "a and b"),
    "logical_or": Operation(2, _LOGICAL, "a or b"),
    "logical_not": Operation(1, _LOGICAL, "not a"),
    "bitwise_and": Operation(2, _BITS, "a & b"),
    "bitwise_or": Operation(2, _BITS, "a | b"),
    "bitwise_xor": Operation(2, _BITS, "a ^ b"),
    "bitwise_not": Operation(1, _BITS, "~a"),
    "bitwise_left_shift": Operation(2, dt.INTEGER, "a << b; by all bits of the type, or more: 0"),
    "bitwise_right_shift": Operation(
        2,
        dt.INTEGER,
        "a >> b; by all bits of the type, or more: 0, -1 if a < 0",
    ),
    "where": Operation(3, dt.FIXED, "b if a, a bool, else c; both may be computed"),
}
"""Every operation but those of ``FUNCTIONS``, ``"parameter"``, ``"constant"``, ``"axis"``,
``"cast"`` and ``"bitcast"``."""

FUNCTIONS: Final[dict[str, int]] = {
    **dict.fromkeys(("exp", "expm1", "log", "log1p", "log2", "log10"), 1),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), 1),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), 1),
    **dict.fromkeys(("erf", "erfc"), 1),
    **dict.fromkeys(("pow", "atan2"), 2),
}
"""The elementary functions of floats and their numbers of operands.

A renderer computes one by the hardware's own function where that is accurate enough, else by the
expression that ``contract.elementary`` gives for it.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """One operation on numbers, whose result has ``dtype``.

    ``value``: of a constant, or the number of a parameter or an axis; True for a ``where`` whose
    condition nearly always holds; None for other operations.
    """

    op: str
    dtype: DType
    operands: tuple[Expression, ...] = ()
    value: Scalar | None = None

    def __add__(self, other: Expression | Scalar) -> Expression:
        return apply("add", self, other)

    def __radd__(self, other: Scalar) -> Expression:
        return apply("add", other, self)

    def __sub__(self, other: Expression | Scalar) -> Expression:
        return apply("subtract", self, other)

    def __rsub__(self, other: Scalar) -> Expression:
        return apply("subtract", other, self)

    def __mul__(self, other: Expression | Scalar) -> Expression:
        return apply("multiply", self, other)

    def __rmul__(self, other: Scalar) -> Expression:
        return apply("multiply", other, self)

    def __truediv__(self, other: Expression | Scalar) -> Expression:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Scalar) -> Expression:
        return apply("divide", other, self)

    def __neg__(self) -> Expression:
        return apply("negative", self)

    def __abs__(self) -> Expression:
        return apply("abs", self)

    def __lt__(self, other: Expression | Scalar) -> Expression:
        return apply("less", self, other)

    def __le__(self, other: Expression | Scalar) -> Expression:
        return apply("less_equal", self, other)

    def __gt__(self, other: Expression | Scalar) -> Expression:
        return apply("less", other, self)

    def __ge__(self, other: Expression | Scalar) -> Expression:
        return apply("less_equal", other, self)

    def __and__(self, other: Expression | Scalar) -> Expression:
        return apply("bitwise_and", self, other)

    def __or__(self, other: Expression | Scalar) -> Expression:
        return apply("bitwise_or", self, other)

    def __xor__(self, other: Expression | Scalar) -> Expression:
        return apply("bitwise_xor", self, other)

    def __invert__(self) -> Expression:
        return apply("bitwise_not", self)

    def __lshift__(self, other: Expression | Scalar) -> Expression:
        return apply("bitwise_left_shift", self, other)

    def __rshift__(self, other: Expression | Scalar) -> Expression:
        return apply("bitwise_right_shift", self, other)

    def __str__(self) -> str:
        return _write(linearize([self]))


def parameter(number: int, dtype: DType) -> Expression:
    """Return the operand with this number, counted from 0."""
    return Expression("parameter", dtype, (), number)


def axis(number: int) -> Expression:
    """Return the index along an axis of the loops (``contract.groups``), an int64."""
    return Expression("axis", dt.int64, (), number)


def constant(value: Scalar, dtype: DType) -> Expression:
    """Return a number, which is rounded to ``dtype``."""
    return Expression("constant", dtype, (), value)


def cast(x: Expression, dtype: DType) -> Expression:
    """Convert as the kernel Cast does: floats to integers by rounding towards 0.

    Raises:
        DTypeError: a dtype is for storage alone.

    """
    if dtype in dt.STORAGE or x.dtype in dt.STORAGE:
        raise DTypeError(f"cast: {x.dtype} or {dtype} is for storage")
    return x if x.dtype is dtype else Expression("cast", dtype, (x,))


def bitcast(x: Expression, dtype: DType) -> Expression:
    """Read the bits of a number as another dtype of the same size.

    Raises:
        DTypeError: the sizes differ, or one dtype is neither of integers nor of floats.

    """
    if x.dtype.itemsize != dtype.itemsize or not {x.dtype, dtype} <= dt.REAL:
        raise DTypeError(f"bitcast: {x.dtype} and {dtype} are not real numbers of one size")
    return x if x.dtype is dtype else Expression("bitcast", dtype, (x,))


def where(
    condition: Expression,
    t: Expression | Scalar,
    e: Expression | Scalar,
    *,
    likely: bool = False,
) -> Expression:
    """Return ``t`` where the bool ``condition`` is true, else ``e``; both may be computed.

    ``likely``: it is nearly always true, so a renderer saves time by a branch around ``e``.
    """
    chosen = apply("where", condition, t, e)
    return replace(chosen, value=True) if likely else chosen


def function(name: str, /, *operands: Expression | Scalar) -> Expression:
    """Return an elementary function, one of ``FUNCTIONS``, of floats.

    Raises:
        DTypeError: the operands are not floats of one dtype.

    """
    return apply(name, *operands)


def of_floats(op: str) -> Callable[[Expression], Expression]:
    """Return a rule for a spec: the operation ``op`` of floats, integers as they are."""

    def rule(x: Expression) -> Expression:
        return x if x.dtype in dt.INTEGER else apply(op, x)

    return rule


def apply(op: str, /, *operands: Expression | Scalar) -> Expression:
    """Return an operation on expressions; Python numbers take the dtype of the others.

    Raises:
        DTypeError: the operands' dtypes differ, or the operation does not take them.

    """
    operation = OPERATIONS.get(op) or Operation(FUNCTIONS[op], dt.FLOATING)
    if len(operands) != operation.operands:
        raise DTypeError(f"{op}: takes {operation.operands} operands, got {len(operands)}")
    values = operands[1:] if op == "where" else operands
    dtypes = {operand.dtype for operand in values if isinstance(operand, Expression)}
    if len(dtypes) != 1 or not dtypes <= operation.dtypes:
        names = ", ".join(sorted(dtype.name for dtype in dtypes)) or "only numbers"
        raise DTypeError(f"{op}: does not take {names}")
    dtype = dtypes.pop()
    typed = tuple(
        operand if isinstance(operand, Expression) else constant(operand, dtype)
        for operand in operands
    )
    if op == "where" and typed[0].dtype is not dt.bool_:
        raise DTypeError(f"where: the condition is {typed[0].dtype}, not bool")
    return Expression(op, operation.gives or dtype, typed)


def linearize(roots: Sequence[Expression]) -> list[Expression]:
    """Return every distinct operation of the expressions once, operands before their users.

    The last occurrence of a root in the list is equal to it: use ``substitute`` or a dictionary
    by ``key`` to find it. Operations that are equal but were built twice occur once.
    """
    return list(_unify(roots)[0].values())


def is_likely(expression: Expression) -> bool:
    """Return whether an expression is a ``where`` whose condition nearly always holds."""
    return expression.op == "where" and bool(expression.value)


def order(
    roots: Iterable[Expression], known: Callable[[Expression], bool], *, rare: bool = True
) -> list[Expression]:
    """Return the objects that the roots need, operands first, down to the known ones.

    ``rare``: also those of the second choice where the first is likely. Unlike ``linearize``, it
    takes equal objects for different ones.
    """
    by_id: dict[int, Expression] = {}
    seen: set[int] = set()
    stack = [(root, False) for root in roots]
    while stack:  # not recursion: chains may be long
        node, entered = stack.pop()
        if entered:
            by_id.setdefault(id(node), node)
        elif id(node) not in seen and not known(node):
            seen.add(id(node))
            stack.append((node, True))
            operands = node.operands if rare or not is_likely(node) else node.operands[:2]
            stack += [(operand, False) for operand in operands]
    return list(by_id.values())


def _unify(roots: Sequence[Expression], known: _Known | None = None) -> tuple[_Known, _ById]:
    """Return the distinct operations by key, and the one that stands for each object by id."""
    distinct = {} if known is None else known
    unified: _ById = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:  # not recursion: chains may be long
        node, entered = stack.pop()
        if id(node) in unified:
            continue
        if node.operands and not entered:
            stack.append((node, True))
            stack += [(operand, False) for operand in reversed(node.operands)]
            continue
        operands = tuple([unified[id(operand)] for operand in node.operands])
        key = (node.op, node.dtype, _exact(node.value), *map(id, operands))
        found = distinct.get(key)
        if found is None:
            same = all(map(is_, operands, node.operands))
            found = node if same else Expression(node.op, node.dtype, operands, node.value)
            distinct[key] = found
        unified[id(node)] = found
    return distinct, unified


def _exact(value: Any) -> Hashable:
    """Return a key that tells -0.0 from 0.0, 1 from True, and finds NaN equal to itself."""
    return None if value is None else (type(value), repr(value))


def unify(roots: Sequence[Expression], known: _Known | None = None) -> list[Expression]:
    """Return the expressions with each distinct operation as one object.

    ``known``: those of earlier calls, a dictionary that this one adds to.
    """
    _, unified = _unify(roots, known)
    return [unified[id(root)] for root in roots]


def substitute(
    roots: Sequence[Expression], values: Sequence[Expression], known: _Known | None = None
) -> list[Expression]:
    """Return the expressions with ``values`` in the place of their parameters, unified."""
    new: _ById = {}
    distinct, unified = _unify(roots)
    for node in distinct.values():  # operands first
        if node.op == "parameter":
            new[id(node)] = values[int(node.value)]  # type: ignore[arg-type]  # a number
        elif node.operands:
            operands = tuple([new[id(operand)] for operand in node.operands])
            new[id(node)] = Expression(node.op, node.dtype, operands, node.value)
        else:
            new[id(node)] = node
    return unify([new[id(unified[id(root)])] for root in roots], known)


def _write(operations: Sequence[Expression]) -> str:
    """Return the operations as text, one a line; equal texts are equal computations."""
    numbers = {id(operation): at for at, operation in enumerate(operations)}
    lines = []
    for at, operation in enumerate(operations):
        operands = [f"%{numbers[id(operand)]}" for operand in operation.operands]
        own = [] if operation.value is None else [repr(operation.value)]
        lines.append(f"%{at} = {operation.op} {operation.dtype} {' '.join([*own, *operands])}")
    return "\n".join(lines)

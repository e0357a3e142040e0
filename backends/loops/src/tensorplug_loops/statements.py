"""Statements: what a schedule makes of a group, and a dialect writes as text.

Values are the contract's expressions without parameters and axes, and of few operations: the
schedule has taken the others apart (``schedule.lowering``). ``OPERATIONS`` lists those that a
dialect writes, with elementary functions only where the ``Machine`` names them. Further ones are:

``variable``  the value of a name: of a loop's index, ``Let``, ``Declare``, a number of the kernel
``load``      an element of an array, whose name is the ``value``: operands are an offset, an
              int64, and where memory may be read only if a condition holds, this condition and
              the value to take if it does not; then there may be the number of elements in the
              array, which may all be read, whatever the condition
``item``      the number of this work-item, an int64; of this work-group, if there are any
``member``    the number of this work-item in its work-group, an int64
``broadcast``  the value that one of the neighbours who exchange values has (``Machine.exchange``),
              whose number among them is the ``value``; all of them reach it, or none
``half``      the first or the second half of a value's lanes, by the ``value``, 0 or 1; if there
              are two, it is uniform. It stands outside of loops with lanes

Offsets count elements. In a loop with lanes, a value is *uniform*, or it differs from lane to
lane: the loop's index does, and so does whatever is computed of it, or of a variable with lanes.
An offset that grows by 1 from lane to lane is a sum of the index and uniform values
(``neighbouring``). There are no loops with lanes inside of others.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tensorplug.plugin import Expression, dtypes, expressions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.plugin import DType

Combine: TypeAlias = Literal["sum", "prod", "max", "min"]

OPERATIONS: Final = frozenset(
    {
        # Integers wrap. Comparisons and `where` take any dtype, bools too.
        *("add", "subtract", "multiply", "negative", "equal", "less", "less_equal", "where"),
        # Of floats. `rest` is C's fmod; `fma` may be rounded twice; `round` takes halves to even.
        *("divide", "fma", "floor", "ceil", "trunc", "round", "sqrt", "copysign", "abs"),
        # Of integers: truncated, the divisor is not 0, and the quotient fits.
        *("quotient", "rest"),
        *("logical_and", "logical_or", "logical_not"),
        # By 0 to bits - 1; to the right, signed integers keep their signs.
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
        *("bitwise_left_shift", "bitwise_right_shift"),
        # Between bools, integers (wrapped) and floats (rounded once); a float becomes an integer,
        # truncated, only if that fits. Casts to and from narrow floats only if the machine has
        # them; otherwise their bits are uint16.
        *("cast", "bitcast", "constant"),
    }
)


@dataclass(frozen=True, slots=True)
class Array:
    """A dense array in the device's memory: an argument of the kernel. A bool is a byte.

    ``strip``: whether only loops with lanes read and write it: neighbouring elements, from
    multiples of the lanes' number (``Machine.strip``).
    """

    name: str
    dtype: DType
    written: bool = False
    strip: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar argument of the kernel: a length, a stride, a constant of an expression."""

    name: str
    dtype: DType = dtypes.int64


@dataclass(frozen=True, slots=True)
class Let:
    """Name a value, which does not change."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Declare:
    """Make a variable with a first value. ``lanes``: one for each of so many lanes."""

    name: str
    value: Expression
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a variable another value, in the lanes that run."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Store:
    """Write an element of an array."""

    array: str
    offset: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Update:
    """Combine an element of an array with a value, atomically: work-items may meet."""

    array: str
    offset: Expression
    value: Expression
    op: Combine


@dataclass(frozen=True, slots=True)
class Loop:
    """Count ``index`` from ``start`` up to ``stop``, without it, by ``step``.

    ``lanes``: so many iterations, of neighbouring indices, run side by side; ``step`` is a
    multiple of it. Each writes its own elements, and variables outside of the loop only if they
    have lanes. ``whole``: none of the lanes lies at ``stop`` or behind it; otherwise, those do not
    run. ``again``: in their place, lanes before ``start`` may run a second time, of indices that
    are not negative: what they read is there, and they write the same again, but assign nothing.
    """

    index: str
    start: Expression
    stop: Expression
    body: tuple[Statement, ...]
    step: int = 1
    lanes: int = 1
    whole: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class If:
    """Run statements if a condition holds, in the lanes where it does.

    ``rare``: it seldom holds.
    """

    condition: Expression
    then: tuple[Statement, ...]
    rare: bool = False


@dataclass(frozen=True, slots=True)
class Shared:
    """Make an array that the work-items of a work-group share: at the beginning of a kernel.

    If they are independent, each has its own.
    """

    name: str
    dtype: DType
    length: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all work-items of the work-group; what they have written is seen behind it.

    All of them reach it, or none: loops and branches around it are the same for all.
    """


Statement: TypeAlias = Let | Declare | Assign | Store | Update | Loop | If | Shared | Barrier


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: arguments, and what each work-item does.

    ``arrays``: those that are written come last. ``group_size``: work-items of a work-group; 1 if
    they are independent.
    """

    name: str
    arrays: tuple[Array, ...]
    numbers: tuple[Number, ...]
    body: tuple[Statement, ...]
    group_size: int = 1


def variable(name: str, dtype: DType = dtypes.int64) -> Expression:
    """Return the value of a name."""
    return Expression("variable", dtype, (), name)  # type: ignore[arg-type]  # a name


def name_of(value: Expression) -> str:
    """Return the name of a variable, or of the array that is loaded from."""
    return str(value.value)


def load(name: str, dtype: DType, offset: Expression, *where: Expression) -> Expression:
    """Return an element of an array.

    ``where``: a condition, what to take elsewhere, and the array's size or nothing.
    """
    return Expression("load", dtype, (offset, *where), name)  # type: ignore[arg-type]


def item() -> Expression:
    """Return the number of this work-item, or of this work-group."""
    return Expression("item", dtypes.int64, (), "item")  # type: ignore[arg-type]  # a name


def member() -> Expression:
    """Return the number of this work-item in its work-group."""
    return Expression("member", dtypes.int64, (), "member")  # type: ignore[arg-type]  # a name


def rewritten(
    roots: Sequence[Expression],
    rule: Callable[[Expression, tuple[Expression, ...]], Expression],
) -> list[Expression]:
    """Return what a rule makes of expressions, node by node: of each, and its new operands."""
    new: dict[int, Expression] = {}
    for node in expressions.order(roots, lambda _: False):
        new[id(node)] = rule(node, tuple([new[id(operand)] for operand in node.operands]))
    return [new[id(root)] for root in roots]


def broadcast(value: Expression, number: int) -> Expression:
    """Return what a neighbour has for a value."""
    return Expression("broadcast", value.dtype, (value,), number)


def neighbouring(
    offset: Expression, index: str, is_uniform: Callable[[Expression], bool]
) -> Expression | None:
    """Return what to add to the first lane's index for its offset, if the lanes' are neighbours.

    None if the offset is not a sum of the index and of uniform values.
    """
    terms = list(_terms(offset))
    rest = [term for term in terms if not (term.op == "variable" and name_of(term) == index)]
    if len(rest) != len(terms) - 1 or not all(map(is_uniform, rest)):
        return None
    zero = Expression("constant", dtypes.int64, (), 0)
    rest = [term for term in rest if term.op != "constant" or term.value] or [zero]
    return reduce(operator.add, rest)


def _terms(value: Expression) -> Iterator[Expression]:
    if value.op == "add":
        for operand in value.operands:
            yield from _terms(operand)
    else:
        yield value


def inside(body: Sequence[Statement]) -> Iterator[Statement]:
    """Return all statements, also those in others."""
    for each in body:
        yield each
        if isinstance(each, If | Loop):
            yield from inside(each.then if isinstance(each, If) else each.body)


def assigned(body: Sequence[Statement]) -> Iterator[str]:
    """Return the names of variables that statements assign to."""
    return (each.name for each in inside(body) if isinstance(each, Assign))


def arrays_written(body: Sequence[Statement]) -> set[str]:
    """Return the names of arrays that statements write to."""
    return {each.array for each in inside(body) if isinstance(each, Store | Update)}


def arrays_read(body: Sequence[Statement]) -> set[str]:
    """Return the names of arrays that statements read, or combine something with."""
    names = "value", "offset", "condition", "start", "stop"
    values = [getattr(each, name, None) for each in inside(body) for name in names]
    roots = [value for value in values if value is not None]
    nodes = expressions.order(roots, lambda _: False)
    read = {name_of(node) for node in nodes if node.op == "load"}
    return read | {each.array for each in inside(body) if isinstance(each, Update)}

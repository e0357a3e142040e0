"""Statements: what a schedule makes of a group, and a dialect writes as text.

Values are the contract's expressions, without parameters and axes, and with these operations:

``variable``   the value of a name: a loop's index, ``Let``, ``Declare``, a number of the kernel
``load``       an element of an array, ``value`` its name; the operand is an offset, an int64
``item``       the number of this work-item (dimension ``value``), an int64
``member``     the number of this work-item in its work-group, an int64

Offsets count elements. A value is *uniform*, or, in a loop with lanes, it may differ from lane to
lane: the loop's index does, and so does whatever is computed of it. A dialect without vectors
runs the lanes of such a loop one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from tensorplug.plugin import Expression, dtypes

if TYPE_CHECKING:
    from tensorplug.plugin import DType

Combine: TypeAlias = Literal["sum", "prod", "max", "min"]


@dataclass(frozen=True, slots=True)
class Array:
    """A dense array in the device's memory: an argument of the kernel."""

    name: str
    dtype: DType
    written: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar argument of the kernel: a length, a stride, a constant of an expression."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Let:
    """Name a value, which does not change."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Declare:
    """Make a variable with a first value. ``lanes``: one for each lane of the loops with lanes."""

    name: str
    value: Expression
    lanes: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a variable another value."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Across:
    """Name the fold of a variable's lanes, in pairs."""

    name: str
    variable: str
    op: Combine


@dataclass(frozen=True, slots=True)
class Store:
    """Write an element of an array."""

    array: str
    offset: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Update:
    """Combine an element of an array with a value; atomic where work-items may meet."""

    array: str
    offset: Expression
    value: Expression
    op: Combine


@dataclass(frozen=True, slots=True)
class Loop:
    """Count ``index`` from ``start`` up to ``stop``, without it.

    ``lanes``: the iterations may run side by side: each writes its own elements, and variables
    outside of the loop only if they have lanes.
    """

    index: str
    start: Expression
    stop: Expression
    body: tuple[Statement, ...]
    step: int = 1
    lanes: bool = False


@dataclass(frozen=True, slots=True)
class If:
    """Run statements if a condition holds, else others."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Shared:
    """Make an array that the work-items of a work-group share."""

    name: str
    dtype: DType
    length: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all work-items of the work-group."""


Statement: TypeAlias = (
    Let | Declare | Assign | Across | Store | Update | Loop | If | Shared | Barrier
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: arguments, and what each work-item does.

    ``items``: how many work-items there are along each dimension, values of numbers.
    ``group_size``: work-items of a work-group, 1 if they are independent.
    """

    name: str
    arrays: tuple[Array, ...]
    numbers: tuple[Number, ...]
    items: tuple[Expression, ...]
    body: tuple[Statement, ...]
    group_size: int = field(default=1)


def variable(name: str, dtype: DType = dtypes.int64) -> Expression:
    """Return the value of a name."""
    return Expression("variable", dtype, (), name)  # type: ignore[arg-type]  # a name


def load(array: Array, offset: Expression) -> Expression:
    """Return an element of an array."""
    return Expression("load", array.dtype, (offset,), array.name)  # type: ignore[arg-type]


def item(dimension: int = 0) -> Expression:
    """Return the number of this work-item."""
    return Expression("item", dtypes.int64, (), dimension)

"""The index maps of products' operands that are not matrices in memory, but lie in images.

The row and the column of an element are each split into digits (image, position, channel; tap,
channel). Every digit moves the element's offset, and perhaps its coordinate along an axis of the
image; where that lies outside, on padding, the element is 0. Place and coordinates are sums of a
part that depends only on the row and a part that depends only on the column, so loops find each
part once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from tensorplug_opencl.products.matrices import Matrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug_opencl.codegen import templates
    from tensorplug_opencl.codegen.layouts import Strides


NEIGHBOURS: Final = 16  # work-items whose reads are combined if they are of the same lines
LINE: Final = 16  # elements of a line


class Digit(NamedTuple):
    """One digit of a row or column number.

    Each increment moves the offset by ``step`` elements, and the coordinate along ``axis``, if
    there is one, by ``move``.
    """

    size: int
    step: int
    axis: int | None = None
    move: int = 0


class Bound(NamedTuple):
    """An axis of the image: the coordinate where all digits are 0, and the size."""

    first: int
    size: int


class Gathered(NamedTuple):
    """An operand of a product as the digits of its rows and columns, the last ones fastest.

    ``start``: the offset where all digits are 0, which may lie before the array. ``batch`` is
    empty: this takes the place of a ``matrices.Matrix`` without batch axes.
    """

    rows: tuple[Digit, ...]
    columns: tuple[Digit, ...]
    start: int
    bounds: tuple[Bound, ...]
    batch: Strides = ()

    @property
    def turned(self) -> Gathered:
        """The transposed operand."""
        return self._replace(rows=self.columns, columns=self.rows)

    def outlined(self, _rank: int) -> Gathered:
        """Return an operand for which program texts are the same: this one."""
        return self

    @property
    def form(self) -> str:
        """What the program text depends on, abbreviated for titles."""
        return f"{_describe_axes(self.rows)}-{_describe_axes(self.columns)}"

    @property
    def by_rows(self) -> bool:
        """Whether neighbours in a row share more lines of memory than neighbours in a column."""
        return _count_lines(self.columns) <= _count_lines(self.rows)

    # Arguments of programs -----------------------------------------------------------

    def _numbers(self) -> dict[str, int]:
        """Return the fields of the struct that the kernel gets, except the magic numbers."""
        numbers = {"start": self.start}
        for axis, bound in enumerate(self.bounds):
            numbers |= {f"first{axis}": bound.first, f"size{axis}": bound.size}
        for name, digits in (("row", self.rows), ("column", self.columns)):
            for at, digit in enumerate(digits):
                numbers[f"{name}_step{at}"] = digit.step
                if digit.axis is not None:
                    numbers[f"{name}_move{at}"] = digit.move
                if at:
                    numbers[f"{name}_size{at}"] = digit.size
        return numbers

    def _divisors(self) -> dict[str, int]:
        sides = (("row", self.rows), ("column", self.columns))
        return {
            f"{name}{at}": digits[at].size
            for name, digits in sides
            for at in range(1, len(digits))
        }

    def parameters(self, name: str) -> list[str]:
        """Return the declarations of the kernel's parameters for the operand ``name``."""
        return [f"const {name}_View {name}_view"]

    def arguments(self, index: templates.Index) -> list[np.ndarray[tuple[int], templates.Index]]:
        """Return the parameters' values; negative ones wrap around, and so do sums with them."""
        numbers = [*self._numbers().values()]
        for divisor in self._divisors().values():
            numbers += find_magic(divisor, 8 * index.itemsize)
        return [np.array([number % 2 ** (8 * index.itemsize) for number in numbers], index)]

    def declarations(self, name: str) -> str:
        """Return the struct, and the functions that find the parts of a offset."""
        divisors = [
            f"{divisor}_{part}" for divisor in self._divisors() for part in ("magic", "shift")
        ]
        fields = ", ".join([*self._numbers(), *divisors])
        parts = ", ".join(["at", *(f"x{axis}" for axis in range(len(self.bounds)))])
        return "\n".join(
            [
                _QUOTIENT,
                f"typedef struct {{ index_t {fields}; }} {name}_View;",
                f"typedef struct {{ index_t {parts}; }} {name}_Part;",
                self._finder(name, "row", self.rows, self._first_part()),
                self._finder(name, "column", self.columns, {}),
                self._inside(name),
            ]
        )

    def _first_part(self) -> Mapping[str, str]:
        bounds = range(len(self.bounds))
        return {"at": "by.start", **{f"x{axis}": f"by.first{axis}" for axis in bounds}}

    def _finder(
        self, name: str, side: str, digits: Sequence[Digit], first: Mapping[str, str]
    ) -> str:
        """Return the function from the number of a row or column to its part."""
        lines = [
            f"INLINE {name}_Part {name}_{side}(index_t rest, const {name}_View by) {{",
            f"  {name}_Part part;",
            f"  part.at = {first.get('at', '0')};",
            *(
                f"  part.x{axis} = {first.get(f'x{axis}', '0')};"
                for axis in range(len(self.bounds))
            ),
        ]
        for at in reversed(range(len(digits))):
            value = "rest"
            if at:
                value = f"digit{at}"
                by_size = f"by.{side}{at}_magic, by.{side}{at}_shift"
                lines += [
                    f"  const index_t more{at} = quotient(rest, {by_size});",
                    f"  const index_t {value} = rest - more{at} * by.{side}_size{at};",
                    f"  rest = more{at};",
                ]
            lines.append(f"  part.at += {value} * by.{side}_step{at};")
            if digits[at].axis is not None:
                lines.append(f"  part.x{digits[at].axis} += {value} * by.{side}_move{at};")
        return "\n".join([*lines, "  return part;", "}"])

    def _inside(self, name: str) -> str:
        """Return the function that tests whether two parts lie inside: negatives are too large."""
        parts = f"const {name}_Part row, const {name}_Part column"
        tests = [f"(row.x{n} + column.x{n} < by.size{n})" for n in range(len(self.bounds))]
        return (
            f"INLINE bool {name}_inside({parts}, const {name}_View by) "
            f"{{ return {' & '.join(tests) or 'true'}; }}"
        )

    # Expressions in programs ---------------------------------------------------------

    def part_type(self, name: str) -> str:
        """Return the type of a part of a offset."""
        return f"{name}_Part"

    def part(self, name: str, axis: str, number: str) -> str:
        """Return the expression of the part that a row's or column's number determines."""
        return f"{name}_{axis}({number}, {name}_view)"

    def offset(self, row: str, column: str) -> str:
        """Return the offset that two named parts make together."""
        return f"{row}.at + {column}.at"

    def inside(self, name: str, row: str, column: str) -> str | None:
        """Return the condition that two parts make an offset in the array; None if always."""
        return f"{name}_inside({row}, {column}, {name}_view)" if self.bounds else None


Operand: TypeAlias = Matrix | Gathered

# Several operands declare it, but a program needs it once. (A product of 64 bits is one
# instruction; some drivers call a function for mul_hi.)
_QUOTIENT: Final = """#ifndef QUOTIENT
#define QUOTIENT
INLINE index_t quotient(index_t n, index_t magic, index_t shift) {
  const index_t high = sizeof(index_t) == 4 ? (index_t)((ulong)n * magic >> 32) : mul_hi(n, magic);
  return (high + n) >> shift;
}
#endif"""


def find_magic(divisor: int, bits: int) -> tuple[int, int]:
    """Return (factor, shift): n / divisor is (n + n * factor / 2**bits) >> shift.

    For n below 2**(bits - 1). (Granlund and Montgomery, Division by invariant integers using
    multiplication, 1994.)
    """
    shift = (divisor - 1).bit_length()
    return (2**bits * (2**shift - divisor)) // divisor + 1, shift


def gather(
    rows: Sequence[Digit],
    columns: Sequence[Digit],
    start: int = 0,
    bounds: Sequence[Bound] = (),
    *,
    simplified: bool = True,
) -> Operand:
    """Return the operand, in as few digits as possible if nothing lies outside.

    It may then be a matrix. If something lies outside, or if it is not ``simplified``, the digits
    stay as they are, so that one program serves all sizes.
    """
    digits = [*rows, *columns]
    outside = any(
        not _is_within(bound, [digit for digit in digits if digit.axis == axis])
        for axis, bound in enumerate(bounds)
    )
    if outside or not simplified:
        return Gathered(tuple(rows), tuple(columns), start, tuple(bounds))
    row, column = _merge(rows), _merge(columns)
    if len(row) == len(column) == 1 and not start:
        return Matrix(row[0].step, column[0].step, ())
    return Gathered(row, column, start, ())


def _is_within(bound: Bound, digits: Sequence[Digit]) -> bool:
    """Return whether the digits never leave the bound."""
    ways = [(digit.size - 1) * digit.move for digit in digits]
    low = bound.first + sum(min(way, 0) for way in ways)
    high = bound.first + sum(max(way, 0) for way in ways)
    return low >= 0 and high < bound.size


def _merge(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """Return the digits with more than one value; neighbours that count as one are merged."""
    result: list[Digit] = []
    for size, step, *_ in digits:
        if size > 1 and result and result[-1].step == step * size:
            result[-1] = Digit(result[-1].size * size, step)
        elif size > 1:
            result.append(Digit(size, step))
    return tuple(result) or (Digit(1, 0),)


def _describe_axes(digits: Sequence[Digit]) -> str:
    return "".join("n" if digit.axis is None else str(digit.axis) for digit in digits)


def _count_lines(digits: Sequence[Digit]) -> float:
    """Return how many lines of memory each of the first neighbours needs."""
    total = 1
    for digit in digits:
        total *= digit.size
    lines = set()
    for number in range(min(NEIGHBOURS, total)):
        rest, offset = number, 0
        for digit in reversed(digits):
            rest, value = divmod(rest, digit.size)
            offset += value * digit.step
        lines.add(offset // LINE)
    return len(lines) / min(NEIGHBOURS, total)

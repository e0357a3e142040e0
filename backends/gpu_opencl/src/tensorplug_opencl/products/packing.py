"""The C functions that pack rows of A, or columns of B, into the panels of ``panels``.

A panel holds, for each element of the inner axis, ``width`` rows of A or columns of B; these lie
across. Elements beyond the last row or column have any value: their products are not stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug_opencl.products.matrices import Matrix

if TYPE_CHECKING:
    from tensorplug_opencl.products.gathers import Digit, Gathered, Operand


_AXES: Final = {"a": ("row", "column"), "b": ("column", "row")}  # across, inner


def write_call(name: str, operand: Operand, to: str, first: str, panels: str) -> str:
    """Return the statement that packs ``panels``, ``count`` inner elements from k0 on of each.

    The first of them begins with row or column ``first``.
    """
    across, inner = _AXES[name]
    arguments = (
        f"{name}_{across}, {name}_{inner}" if isinstance(operand, Matrix) else f"{name}_view"
    )
    return f"pack_{name}({to}, {name}, {first}, {panels}, {across}s, k0, count, {arguments});"


def describe_form(name: str, operand: Operand) -> str:
    """Return the form of the function's text, for titles."""
    if isinstance(operand, Matrix):
        return ""
    return f"{'i' if _is_inner_first(name, operand) else 'x'}{operand.form}"


def write_function(
    name: str, operand: Operand, width: int, panels: int, *, same: bool = False
) -> str:
    """Return the function ``pack_<name>``, for at most ``panels`` of ``width``.

    ``same``: elements are computed with in the type in which they are stored.
    """
    if isinstance(operand, Matrix):
        loops = "".join(_LOOPS if name == "a" else reversed(_LOOPS))
        copy = _COPY if name == "a" and same else _CONVERT
        text = _STRIDED.replace("{loops}", loops).replace("{copy}", copy)
        return text.replace("{name}", name).replace("{width}", str(width))
    across, inner = _AXES[name]
    sides = {"row": operand.rows, "column": operand.columns}
    first = _is_inner_first(name, operand)
    text = _ALONG if first else _ACROSS
    digits, axis = (sides[inner], inner) if first else (sides[across], across)
    length, step = _describe_run(digits, axis)
    row, column = ("other", "own") if across == "column" else ("own", "other")
    inside = operand.inside(name, row, column)
    values = {
        "width": str(width),
        "most": str(width * panels),
        "across": across,
        "inner": inner,
        "length": length,
        "step": step,
        "inside": "true" if inside is None else inside,
        "offset": operand.offset(row, column),
    }
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value)
    return text.replace("{name}", name)


def _is_inner_first(name: str, operand: Gathered) -> bool:
    return operand.by_rows if name == "a" else operand.turned.by_rows


def _describe_run(digits: tuple[Digit, ...], axis: str) -> tuple[str, str]:
    """Return how many neighbours are all inside or all outside, and their distance.

    These are the last digit's values, unless it moves along an axis with a bound. (Values that lie
    backwards are not a run either: their distance is unsigned and wraps around only in sums of
    offsets.)
    """
    at = len(digits) - 1
    step = "1" if digits[at].step == 1 else f"{{name}}_view.{axis}_step{at}"
    if digits[at].axis is not None or digits[at].step < 0:
        return "1", step
    return (f"{{name}}_view.{axis}_size{at}" if at else "(index_t)-1"), step


# The vectors of B's panels are packed row by row of B, which is the fastest order for memory.
_LOOPS: Final = (
    "for (index_t p = 0; p < done; p++) ",
    "for (index_t k = 0; k < count; k++) ",
)

# Neighbours in memory that are neighbours in the panel, too. Compilers make a loop of six steps of
# the first, and two instructions of the other.
_CONVERT: Final = """
        for (int r = 0; r < {width}; r++)
          to[(p * DEPTH + k) * {width} + r] = (A)x[k * inner_by + first + p * {width} + r];"""
_COPY: Final = """
        *(local {name}_Side *)(to + (p * DEPTH + k) * {width}) =
            *(global const {name}_Side *)(x + k * inner_by + first + p * {width});"""

_STRIDED: Final = """
typedef struct { A each[{width}]; } {name}_Side;
void pack_{name}(local A *to, global const S *x, index_t first, index_t panels, index_t limit,
                 index_t k0, index_t count, index_t across_by, index_t inner_by) {
  x += k0 * inner_by;
  index_t done = 0;
  if (across_by == 1) {
    done = min(panels, (limit - first) / {width});
    {loops}{copy}
  }
  for (index_t p = done; p < panels; p++)
    for (int r = 0; r < {width}; r++) {
      global const S *from = x + min(first + p * {width} + r, limit - 1) * across_by;
      for (index_t k = 0; k < count; k++)
        to[(p * DEPTH + k) * {width} + r] = (A)from[k * inner_by];
    }
}"""

# Runs along the inner axis, as those of channels last.
_ALONG: Final = """
void pack_{name}(local A *to, global const S *x, index_t first, index_t panels, index_t limit,
                 index_t k0, index_t count, const {name}_View {name}_view) {
  for (index_t p = 0; p < panels; p++, first += {width}, to += DEPTH * {width}) {
    {name}_Part parts[{width}];
    for (int r = 0; r < {width}; r++)
      parts[r] = {name}_{across}(min(first + r, limit - 1), {name}_view);
    index_t run = {length} - k0 % {length};
    for (index_t k = 0; k < count; k += run, run = {length}) {
      const {name}_Part other = {name}_{inner}(k0 + k, {name}_view);
      run = min(run, count - k);
      for (int r = 0; r < {width}; r++) {
        const {name}_Part own = parts[r];
        local A *put = to + k * {width} + r;
        if ({inside}) {
          global const S *from = x + ({offset});
          for (index_t j = 0; j < run; j++) put[j * {width}] = (A)from[j * {step}];
        } else
          for (index_t j = 0; j < run; j++) put[j * {width}] = 0;
      }
    }
  }
}"""

# Runs across, as those of channels first, or of taps whose positions are the inner axis. They
# are cut where panels end.
_ACROSS: Final = """
void pack_{name}(local A *to, global const S *x, index_t first, index_t panels, index_t limit,
                 index_t k0, index_t count, const {name}_View {name}_view) {
  {name}_Part parts[{most}];
  int starts[{most}], lengths[{most}], runs = 0;
  const int there = (int)min(limit - first, panels * {width});
  for (int r = 0; r < there; runs++) {
    const index_t left = {length} - (first + r) % {length};
    parts[runs] = {name}_{across}(first + r, {name}_view);
    starts[runs] = r / {width} * DEPTH * {width} + r % {width};
    lengths[runs] = min((int)min(left, (index_t)(there - r)), {width} - r % {width});
    r += lengths[runs];
  }
  for (index_t k = 0; k < count; k++, to += {width}) {
    const {name}_Part other = {name}_{inner}(k0 + k, {name}_view);
    for (int n = 0; n < runs; n++) {
      const {name}_Part own = parts[n];
      const int length = lengths[n];
      local A *put = to + starts[n];
      if (!({inside}))
        for (int r = 0; r < length; r++) put[r] = 0;
      else {
        global const S *from = x + ({offset});
        if (length == {width})
          for (int r = 0; r < {width}; r++) put[r] = (A)from[r * {step}];
        else
          for (int r = 0; r < length; r++) put[r] = (A)from[r * {step}];
      }
    }
  }
}"""

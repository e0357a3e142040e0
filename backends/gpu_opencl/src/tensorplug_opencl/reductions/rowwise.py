"""Program texts that walk along rows, and fold the elements of each.

A ``Form`` shares rows out among work-items, and so decides how memory is read:

- "lanes": a work-item takes a row (or a part of one) that is contiguous, in vectors, whose lanes
  are folded together at the end. For CPUs.
- "group": the work-items of a group take the elements of such a row in turn, and fold what each
  has in local memory, as a tree. For GPUs, where neighbours then read neighbouring elements.
- "columns": a work-item takes neighbouring rows, side by side in a vector (of length 1 on GPUs),
  whose elements lie apart. For rows along any axis but the last.
- "tiles": the same, but a work-item of a CPU folds multiple such vectors, so that it reads longer
  pieces of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tensorplug_opencl.codegen import templates, vectors
from tensorplug_opencl.codegen.templates import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_opencl.codegen.folds import Fold


SIDEWAYS: Final = ("columns", "tiles")  # forms that take rows side by side
UNROLLED: Final = 4  # vectors that a step of a loop takes


class Recipe(NamedTuple):
    """The fold of every row of ``x``; ``source`` and ``stored`` are C types in memory.

    ``result``: the expression of what is stored, of ``acc``, and ``count``, the number of elements
    in a whole row.
    """

    title: str
    source: str
    stored: str
    fold: Fold
    result: str

    @property
    def element(self) -> str:
        """The C type computed with."""
        return self.fold.element


class Form(NamedTuple):
    """How rows are walked: by vectors of ``width``, or by groups of ``width`` work-items.

    ``kept`` and ``reduced`` are the ranks of the layouts of rows and of positions in one.
    """

    kind: Literal["lanes", "group", "columns", "tiles"]
    width: int
    kept: int
    reduced: int


# Constants: the work-items needed, the parts of a row, the elements of a row, of a whole row (of
# which this may be a part) and from one part to the next, the rows side by side, and how many
# vectors of these a work-item takes.
CONSTANTS: Final = ("items", "parts", "length", "total", "span", "inner", "tile")
TILE: Final = 16  # vectors, at most, in a tile


def write_source(recipe: Recipe, form: Form, index: templates.Index) -> str:
    """Return the program of ``recipe``: arrays are ``x``, then ``y``."""
    fields = [
        ("size", form.kept),
        ("by", form.kept),
        ("inner_size", form.reduced),
        ("inner_by", form.reduced),
    ]
    struct = templates.declare_layout(fields)
    wide = f"{recipe.element}{form.width}" if _uses_vectors(form) else recipe.element
    base = wide if form.kind in SIDEWAYS else recipe.element
    declarations = [f"typedef {recipe.element} S;\ntypedef {wide} W;\ntypedef {base} A;", struct]
    if _uses_vectors(form):
        declarations.append(vectors.declare(form.width, recipe.source, recipe.stored))
    if form.kept:
        declarations.append(templates.define_offset("kept_offset", form.kept, "size", "by"))
    if form.kind in SIDEWAYS and form.reduced:
        declarations.append(
            templates.define_offset("offset_of", form.reduced, "inner_size", "inner_by")
        )
    return templates.write_program(
        f"{recipe.title} by {form.kind} of {form.width}",
        [Array("x", recipe.source), Array("y", recipe.stored, written=True)],
        templates.declare_indices(*CONSTANTS, layout=bool(struct)),
        "\n".join(_Writer(recipe, form).write_body()),
        index=index,
        declarations="\n".join(declaration for declaration in declarations if declaration),
    )


def _uses_vectors(form: Form) -> bool:
    return form.kind != "group" and form.width > 1


class _Writer:
    """The writer of one program's body."""

    def __init__(self, recipe: Recipe, form: Form) -> None:
        self._recipe = recipe
        self._form = form
        self._fold = recipe.fold

    def write_body(self) -> Iterator[str]:
        yield from self._write_head()
        yield "  const A count = (A)(total);"
        if self._form.kind == "tiles":
            yield from self._walk_by_tiles()
            return
        walk = {
            "lanes": self._walk_by_lanes,
            "group": self._walk_by_group,
            "columns": self._walk_by_columns,
        }
        yield from walk[self._form.kind]()
        guard = "if (lane == 0) " if self._form.kind == "group" else ""
        single = self._form.kind != "columns"
        yield f"  {guard}{self._write_store('y + target', single=single)}"

    # Where a work-item stands --------------------------------------------------------------

    def _write_head(self) -> Iterator[str]:
        kept = "kept_offset({}, layout)" if self._form.kept else "0"
        if self._form.kind in SIDEWAYS:
            yield f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t broad = tile * {self._form.width}, strips = (inner + broad - 1) / broad;
  const index_t own = i / strips % parts, outer = i / strips / parts;
  // The last strip overlaps the one before it: both write the same.
  const index_t first = min(i % strips * broad, inner - broad);
  const index_t start = {kept.format("outer")} + first;
  const index_t row = outer * inner + first;
  const index_t target = (outer * parts + own) * inner + first;"""
        else:
            number = "get_group_id(0)" if self._form.kind == "group" else "get_global_id(0)"
            yield f"""  const index_t i = {number};
  if (i >= items) return;
  const index_t own = i % parts, row = i / parts, target = i;
  const index_t start = {kept.format("row")};"""
        if self._form.kind == "group":
            yield "  const index_t lane = get_local_id(0);"
            yield f"  local A shared[{self._form.width}];"
        yield "  const index_t begin = own * span, end = min(length, begin + span);"

    # Reading and writing -------------------------------------------------------------------

    def _write_value(self, offset: str, *, single: bool) -> str:
        """Return the declaration of ``v``, an element or a vector of them."""
        pointer, width = f"x + start + {offset}", self._form.width
        if single or width == 1:
            return f"const A v = (A)(*({pointer}));"
        loaded = vectors.load(self._recipe.source, width, pointer)
        if self._recipe.source != self._recipe.element:
            loaded = f"convert_{self._recipe.element}{width}({loaded})"
        return f"const A v = {loaded};"

    def _write_store(self, pointer: str, *, single: bool) -> str:
        width, stored, value = self._form.width, self._recipe.stored, self._recipe.result
        if single or width == 1:
            return f"*({pointer}) = ({stored})({value});"
        if stored != self._recipe.element:
            value = f"convert_{stored}{width}({value})"
        return vectors.store(stored, width, pointer, value)

    # Walks ---------------------------------------------------------------------------------

    def _walk_by_lanes(self) -> Iterator[str]:
        width, fold = self._form.width, self._fold
        block = UNROLLED * width
        yield f"  A all;\n  index_t done = begin;\n  {{ typedef W A;\n    {fold.declare('acc')}"
        yield f"    for (; done + {block} <= end; done += {block}) {{"
        for at in range(UNROLLED):
            value = self._write_value(f"done + {at * width}", single=False)
            yield f"      A acc_{at}; {{ {value} acc_{at} = v; }}"
        yield from self._join_together(UNROLLED)
        yield f"      {fold.take('acc', 'acc_0')}\n    }}"
        yield f"    for (; done + {width} <= end; done += {width}) {{"
        yield f"      {self._write_value('done', single=False)} {fold.take('acc')}\n    }}"
        yield from self._join_across()
        yield f"  }}\n  {fold.declare('sum')}\n  {fold.take('sum', 'all')}"
        yield "  for (index_t c = done; c < end; c++) {"
        yield f"    {self._write_value('c', single=True)} {fold.take('sum')}\n  }}"
        yield f"  const A acc = {fold.close('sum')};"

    def _join_across(self) -> Iterator[str]:
        """Join the lanes of a vector, half by half."""
        width, last = self._form.width, f"by{self._form.width}"
        yield f"    const A {last} = {self._fold.close('acc')};"
        while width > 1:
            width //= 2
            ctype = f"{self._recipe.element}{width}" if width > 1 else "S"
            new = f"by{width}"
            yield f"    const {ctype} {new}a = {last}.lo, {new}b = {last}.hi;"
            yield f"    const {ctype} {new} = {self._fold.join(new + 'a', new + 'b')};"
            last = new
        yield f"    all = {last};"

    def _walk_by_group(self) -> Iterator[str]:
        size, fold = self._form.width, self._fold
        yield f"  {fold.declare('sum')}"
        yield f"  for (index_t c = begin + lane; c < end; c += {size}) {{"
        yield f"    {self._write_value('c', single=True)} {fold.take('sum')}\n  }}"
        yield f"""  shared[lane] = {fold.close("sum")};
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index_t half_way = {size // 2}; half_way; half_way >>= 1) {{
    if (lane < half_way) {{
      const A a = shared[lane], b = shared[lane + half_way];
      shared[lane] = {fold.join("a", "b")};
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  const A acc = shared[0];"""

    def _walk_by_columns(self) -> Iterator[str]:
        fold = self._fold
        yield f"  {fold.declare('sum')}"
        yield f"  for (index_t c = begin; c < end; c++) {{\n    {self._write_offset()}"
        yield f"    {self._write_value('offset', single=False)} {fold.take('sum')}\n  }}"
        yield f"  const A acc = {fold.close('sum')};"

    def _walk_by_tiles(self) -> Iterator[str]:
        """Fold ``UNROLLED`` elements of each row at a time, then the rest."""
        fold, width = self._fold, self._form.width
        low = "acc_low = acc_lows[t]" if fold.compensated else ""
        states = ["acc_all", *(["acc_lows"] if fold.compensated else [])]
        yield "  A " + ", ".join(f"{state}[{TILE}]" for state in states) + ";"
        yield f"  for (uint t = 0; t < tile; t++) {{ {fold.declare('acc')}"
        keep = "acc_all[t] = acc;" + (" acc_lows[t] = acc_low;" * bool(low))
        state = "A acc = acc_all[t]" + (f", {low};" if low else ";")
        yield f"    {keep} }}"
        yield "  index_t done = begin;"
        for count in (UNROLLED, 1):
            yield f"  for (; done + {count} <= end; done += {count}) {{"
            for at in range(count):
                yield f"    index_t offset_{at}; {{ const index_t c = done + {at};"
                yield f"      {self._write_offset()} offset_{at} = offset; }}"
            yield f"    for (uint t = 0; t < tile; t++) {{ {state}"
            for at in range(count):
                value = self._write_value(f"offset_{at} + t * {width}", single=False)
                yield f"      A acc_{at}; {{ {value} acc_{at} = v; }}"
            yield from self._join_together(count)
            yield f"      {fold.take('acc', 'acc_0')}\n      {keep}\n    }}\n  }}"
        yield f"  for (uint t = 0; t < tile; t++) {{ {state} {{"
        yield f"    const A closed = {fold.close('acc')}; const A acc = closed;"
        yield f"    {self._write_store(f'y + target + t * {width}', single=False)} }} }}"

    def _join_together(self, count: int) -> Iterator[str]:
        """Join ``acc_0`` to ``acc_count`` as a tree, into the first."""
        while count > 1:
            count //= 2
            for at in range(count):
                joined = self._fold.join(f"acc_{at}", f"acc_{at + count}")
                yield f"      acc_{at} = {joined};"

    def _write_offset(self) -> str:
        return f"const index_t offset = {'offset_of(c, layout)' if self._form.reduced else '0'};"

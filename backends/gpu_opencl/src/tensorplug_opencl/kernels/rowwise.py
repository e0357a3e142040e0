"""Program texts that walk along rows: fold all elements, perhaps again, then write.

A ``Recipe`` is the computation; a ``Form`` shares it out among work-items, and so decides how
memory is read:

- "lanes": a work-item takes a row (or a part of one) that is contiguous, in vectors, whose lanes
  are folded together at the end. For CPUs.
- "group": the work-items of a group take the elements of such a row in turn, and fold what each
  has in local memory, as a tree. For GPUs, where neighbours then read neighbouring elements.
- "columns": a work-item takes neighbouring rows, side by side in a vector (of length 1 on GPUs),
  whose elements lie apart. For rows along any axis but the last.
- "tiles": the same, but a work-item of a CPU folds multiple such vectors, so that it reads longer
  pieces of memory. For recipes of one pass and one value.

Statements and expressions name the type ``A``, which is a number or a vector of numbers, so that
they are the same in all forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tensorplug_opencl.kernels import templates, vectors
from tensorplug_opencl.kernels.templates import Array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug_opencl.kernels.folds import Fold

__all__ = ["SIDEWAYS", "TILE", "Form", "Pass", "Read", "Recipe", "write_source"]

SIDEWAYS: Final = ("columns", "tiles")  # forms that take rows side by side
UNROLLED: Final = 4  # vectors that passes marked cheap take at a time


class Read(NamedTuple):
    """An input: its name in statements, the C type of its elements, and which element it names.

    "element": the one at this place; "along": the one with the same number along every row; "row":
    the row's one element.
    """

    name: str
    stored: str
    kind: Literal["element", "along", "row"] = "element"


class Pass(NamedTuple):
    """One walk along the row. ``statements`` define ``NAME_v`` for each fold ``NAME``.

    ``after`` are the statements after the folds, which have these names. A ``cheap`` pass takes
    multiple vectors at a time.
    """

    folds: Mapping[str, Fold]
    reads: Sequence[str]
    statements: str
    after: str = ""
    cheap: bool = False


class Recipe(NamedTuple):
    """The computation for every row.

    ``element`` is the C type computed with, ``stored`` the output's. Either ``result`` is the
    expression of a row's one value, or ``statements`` define ``value`` for each of its elements,
    from ``final_reads``. ``constants`` are (name, C type); ``count`` names the number of elements
    in a whole row.
    """

    title: str
    element: str
    stored: str
    reads: Sequence[Read]
    passes: Sequence[Pass]
    result: str = ""
    statements: str = ""
    final_reads: Sequence[str] = ()
    constants: Sequence[tuple[str, str]] = ()


class Form(NamedTuple):
    """How rows are walked: by vectors of ``width``, or by groups of ``width`` work-items.

    ``kept`` and ``reduced`` are the ranks of the layouts of rows and of places in one.
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
    """Return the program of ``recipe``: arrays are its reads, then ``y``."""
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
        moved = [recipe.stored, *(read.stored for read in recipe.reads)]
        declarations.append(vectors.declare(form.width, *moved))
    if form.kept:
        declarations.append(templates.define_place("kept_place", form.kept, "size", "by"))
    if form.kind in SIDEWAYS and form.reduced:
        declarations.append(
            templates.define_place("place_of", form.reduced, "inner_size", "inner_by")
        )
    arrays = [Array(f"{read.name}_in", read.stored) for read in recipe.reads]
    constants = templates.declare_indices(*CONSTANTS, layout=bool(struct))
    constants += [f"const {ctype} {name}_argument" for name, ctype in recipe.constants]
    return templates.write_program(
        f"{recipe.title} by {form.kind} of {form.width}",
        [*arrays, Array("y", recipe.stored, written=True)],
        constants,
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
        self._by_name = {read.name: read for read in recipe.reads}

    def write_body(self) -> Iterator[str]:
        yield from self._write_head()
        yield "  const A count = (A)(total);"
        for name, _ in self._recipe.constants:
            yield f"  const A {name} = (A)({name}_argument);"
        for read in self._recipe.reads:
            if read.kind == "row":
                yield f"  const A {read.name} = {self._write_row_value(read)};"
        if self._form.kind == "tiles":
            yield from self._walk_by_tiles(self._recipe.passes[0])
            return
        walk = {
            "lanes": self._walk_by_lanes,
            "group": self._walk_by_group,
            "columns": self._walk_by_columns,
        }
        for step in self._recipe.passes:
            yield from walk[self._form.kind](step)
            yield f"  {step.after}"
        yield from self._write_end()

    # Where a work-item stands --------------------------------------------------------------

    def _write_head(self) -> Iterator[str]:
        kept = "kept_place({}, layout)" if self._form.kept else "0"
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

    def _write_row_value(self, read: Read) -> str:
        if self._form.kind in SIDEWAYS:
            return self._write_vector(read.stored, f"{read.name}_in + row")
        return f"(A){read.name}_in[row]"

    def _write_vector(self, stored: str, pointer: str) -> str:
        width = self._form.width
        if width == 1:
            return f"(A)(({pointer})[0])"
        loaded = vectors.load(stored, width, pointer)
        if stored == self._recipe.element:
            return loaded
        return f"convert_{self._recipe.element}{width}({loaded})"

    def _write_work(self, step: Pass, *, single: bool) -> str:
        loads = self._write_loads(step.reads, single=single)
        return f"{loads}\n      {step.statements}"

    def _write_loads(self, names: Sequence[str], *, single: bool) -> str:
        return " ".join(
            f"const A {name} = {self._write_value_of(name, single=single)};" for name in names
        )

    def _write_value_of(self, name: str, *, single: bool) -> str:
        read = self._by_name[name]
        columns = self._form.kind in SIDEWAYS
        if read.kind == "along":
            if columns or single:
                return f"(A)((S){name}_in[c])"
            return self._write_vector(read.stored, f"{name}_in + c")
        place = f"{name}_in + start + {'place' if columns else 'c'}"
        return f"(A)(*({place}))" if single else self._write_vector(read.stored, place)

    def _write_store(self, value: str, pointer: str, *, single: bool) -> str:
        width, stored = self._form.width, self._recipe.stored
        if single or width == 1:
            return f"*({pointer}) = ({stored})({value});"
        if stored != self._recipe.element:
            value = f"convert_{stored}{width}({value})"
        return vectors.store(stored, width, pointer, value)

    # Walks ---------------------------------------------------------------------------------

    def _walk_by_lanes(self, step: Pass) -> Iterator[str]:
        width, folds = self._form.width, step.folds
        yield from (f"  A {name};" for name in folds)
        yield "  { index_t done = begin;"
        yield from (f"  A {name}_all;" for name in folds)
        yield "  { typedef W A;"
        yield from (f"    {fold.declare(name)}" for name, fold in folds.items())
        if step.cheap:
            yield from self._walk_unrolled(step)
        yield f"    for (; done + {width} <= end; done += {width}) {{ const index_t c = done;"
        yield f"      {self._write_work(step, single=False)}"
        yield from (f"      {fold.take(name, name + '_v')}" for name, fold in folds.items())
        yield "    }"
        for name, fold in folds.items():
            yield from self._join_across(name, fold)
        yield "  }"
        yield from (f"  {fold.declare(name + '_sum')}" for name, fold in folds.items())
        yield from (f"  {f.take(name + '_sum', name + '_all')}" for name, f in folds.items())
        yield "  for (index_t c = done; c < end; c++) {"
        yield f"    {self._write_work(step, single=True)}"
        yield from (f"    {f.take(name + '_sum', name + '_v')}" for name, f in folds.items())
        yield "  }"
        for name, fold in folds.items():
            yield f"  {name} = {fold.close(name + '_sum')};"
        yield "  }"

    def _walk_unrolled(self, step: Pass) -> Iterator[str]:
        width = self._form.width
        block = UNROLLED * width
        yield f"    for (; done + {block} <= end; done += {block}) {{"
        for at in range(UNROLLED):
            yield "      " + " ".join(f"A {name}_{at};" for name in step.folds)
            yield f"      {{ const index_t c = done + {at * width};"
            yield f"        {self._write_work(step, single=False)}"
            yield "        " + " ".join(f"{name}_{at} = {name}_v;" for name in step.folds) + " }"
        for name, fold in step.folds.items():
            yield from self._join_together(name, fold, UNROLLED)
            yield f"      {fold.take(name, name + '_0')}"
        yield "    }"

    def _join_across(self, name: str, fold: Fold) -> Iterator[str]:
        """Join the lanes of a vector, half by half."""
        width, last = self._form.width, f"{name}_by{self._form.width}"
        yield f"    const A {last} = {fold.close(name)};"
        while width > 1:
            width //= 2
            ctype = f"{self._recipe.element}{width}" if width > 1 else "S"
            new = f"{name}_by{width}"
            yield f"    const {ctype} {new}a = {last}.lo, {new}b = {last}.hi;"
            yield f"    const {ctype} {new} = {fold.join(new + 'a', new + 'b')};"
            last = new
        yield f"    {name}_all = {last};"

    def _walk_by_group(self, step: Pass) -> Iterator[str]:
        size = self._form.width
        yield from (f"  {fold.declare(name + '_sum')}" for name, fold in step.folds.items())
        yield f"  for (index_t c = begin + lane; c < end; c += {size}) {{"
        yield f"    {self._write_work(step, single=True)}"
        yield from (f"    {f.take(n + '_sum', n + '_v')}" for n, f in step.folds.items())
        yield "  }"
        for name, fold in step.folds.items():
            yield f"""  shared[lane] = {fold.close(name + "_sum")};
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index_t half_way = {size // 2}; half_way; half_way >>= 1) {{
    if (lane < half_way) {{
      const A a = shared[lane], b = shared[lane + half_way];
      shared[lane] = {fold.join("a", "b")};
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  const A {name} = shared[0];
  barrier(CLK_LOCAL_MEM_FENCE);"""

    def _walk_by_columns(self, step: Pass) -> Iterator[str]:
        yield from (f"  {fold.declare(name + '_sum')}" for name, fold in step.folds.items())
        yield f"  for (index_t c = begin; c < end; c++) {{\n    {self._write_place()}"
        yield f"    {self._write_work(step, single=False)}"
        yield from (f"    {f.take(n + '_sum', n + '_v')}" for n, f in step.folds.items())
        yield "  }"
        for name, fold in step.folds.items():
            yield f"  const A {name} = {fold.close(name + '_sum')};"

    def _walk_by_tiles(self, step: Pass) -> Iterator[str]:
        """Fold ``UNROLLED`` elements of each row at a time, then the rest."""
        ((name, fold),) = step.folds.items()
        low = f"{name}_low = {name}_lows[t]" if fold.compensated else ""
        states = [f"{name}_all", *([f"{name}_lows"] if fold.compensated else [])]
        yield "  A " + ", ".join(f"{state}[{TILE}]" for state in states) + ";"
        yield f"  for (uint t = 0; t < tile; t++) {{ {fold.declare(name)}"
        keep = f"{name}_all[t] = {name};" + (f" {name}_lows[t] = {name}_low;" * bool(low))
        state = f"A {name} = {name}_all[t]" + (f", {low};" if low else ";")
        yield f"    {keep} }}"
        yield "  index_t done = begin;"
        for count in (UNROLLED, 1):
            yield f"  for (; done + {count} <= end; done += {count}) {{"
            for at in range(count):
                yield f"    index_t start_{at}; {{ const index_t c = done + {at};"
                yield f"      {self._write_place()} start_{at} = start + place; }}"
            yield f"    for (uint t = 0; t < tile; t++) {{ {state}"
            for at in range(count):
                yield f"      A {name}_{at}; {{ const index_t c = done + {at};"
                width = self._form.width
                yield f"        const index_t place = start_{at} - start + t * {width};"
                yield f"        {self._write_work(step, single=False)} {name}_{at} = {name}_v; }}"
            yield from self._join_together(name, fold, count)
            yield f"      {fold.take(name, name + '_0')}\n      {keep}\n    }}\n  }}"
        yield f"  for (uint t = 0; t < tile; t++) {{ {state} {{"
        yield f"    const A closed = {fold.close(name)}; const A {name} = closed;"
        place = f"y + target + t * {self._form.width}"
        yield f"    {self._write_store(self._recipe.result, place, single=False)} }} }}"

    def _join_together(self, name: str, fold: Fold, count: int) -> Iterator[str]:
        """Join ``NAME_0`` to ``NAME_count`` as a tree, into the first."""
        distance = count // 2
        while distance:
            for at in range(distance):
                joined = fold.join(f"{name}_{at}", f"{name}_{at + distance}")
                yield f"      {name}_{at} = {joined};"
            distance //= 2

    def _write_place(self) -> str:
        return f"const index_t place = {'place_of(c, layout)' if self._form.reduced else '0'};"

    # Results -------------------------------------------------------------------------------

    def _write_end(self) -> Iterator[str]:
        recipe, form = self._recipe, self._form
        if recipe.result:
            guard = "if (lane == 0) " if form.kind == "group" else ""
            single = form.kind != "columns"
            yield f"  {guard}{self._write_store(recipe.result, 'y + target', single=single)}"
            return
        if form.kind == "columns":
            yield f"  for (index_t c = begin; c < end; c++) {{ {self._write_place()}"
            yield from self._write_value("y + start + place", single=False)
            return
        if form.kind == "group":
            yield f"  for (index_t c = begin + lane; c < end; c += {form.width}) {{"
            yield from self._write_value("y + start + c", single=True)
            return
        width = form.width
        yield "  index_t c = begin;\n  { typedef W A;"
        yield f"  for (; c + {width} <= end; c += {width}) {{"
        yield from self._write_value("y + start + c", single=False)
        yield "  }\n  for (; c < end; c++) {"
        yield from self._write_value("y + start + c", single=True)

    def _write_value(self, pointer: str, *, single: bool) -> Iterator[str]:
        recipe = self._recipe
        yield f"    {self._write_loads(recipe.final_reads, single=single)}"
        yield f"    {recipe.statements}"
        yield f"    {self._write_store('value', pointer, single=single)}\n  }}"

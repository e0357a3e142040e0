"""Program texts of groups with reductions: pass after pass along a row, then its elements.

A row is the elements that are reduced to one number; ``Form`` says how work-items share rows:

- "lanes": a work-item takes a row whose elements are neighbours, in blocks. A loop, which CPU
  drivers turn into vector instructions, computes a block's elements, and vectors fold them.
- "group": the work-items of a group take the elements of such a row in turn, and fold what each has
  in local memory, as a tree. For GPUs, where neighbours then read neighbouring elements.
- "columns": a work-item takes neighbouring rows (one on GPUs), whose elements lie apart.

A sum is one of sums of blocks, and these sums are added with their rounding errors (``folds``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tensorplug_opencl.kernels import templates
from tensorplug_opencl.kernels.templates import Array, Routine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug_opencl.kernels.folds import Fold

__all__ = ["CONSTANTS", "Fetch", "Form", "Pass", "Program", "Store", "write_source"]

BLOCK: Final = 256  # elements of a row, or neighbouring rows, that a work-item of a CPU takes
ROWS: Final = 16  # elements of neighbouring rows that are folded before their errors count


class Form(NamedTuple):
    """How rows are walked; ``width``: of vectors, or of groups, or how many rows side by side."""

    kind: Literal["lanes", "group", "columns"]
    width: int
    rank: int  # of the layout of rows


class Fetch(NamedTuple):
    """An input: its name, the C types of its elements as stored and as computed with.

    ``along``: it varies along the row. ``across``: it varies across neighbouring rows. ``kept``:
    it is an output's element as an earlier pass has left it, and not an array of its own.
    """

    name: str
    stored: str
    computed: str
    along: bool
    across: bool
    kept: str = ""


class Store(NamedTuple):
    """An output: its name, the C type of its elements, and whether it varies along the row."""

    name: str
    stored: str
    along: bool


class Pass(NamedTuple):
    """One walk along the row. The routine's results are what is folded, then what is stored.

    ``fetched``: its parameters, names of fetches or of earlier folds. ``folds``: (name, C type of
    the result, fold). ``stored``: names of stores.
    """

    routine: Routine
    fetched: Sequence[str]
    folds: Sequence[tuple[str, str, Fold]] = ()
    stored: Sequence[str] = ()


class Program(NamedTuple):
    """What is computed of each row; ``partial``: the arrays of folds, one for each part of a row.

    ``last``: the routine of the row's own outputs.
    """

    title: str
    fetches: Sequence[Fetch]
    stores: Sequence[Store]
    passes: Sequence[Pass]
    last: Pass | None
    partial: Sequence[tuple[str, str]]
    definitions: str


# The work-items needed, the parts of a row, the elements of a row and of a part, the rows side by
# side.
CONSTANTS: Final = ("items", "parts", "length", "span", "inner")


def write_source(program: Program, form: Form, index: templates.Index) -> str:
    """Return the program's text: arrays are the fetches, the stores, then the partial results."""
    arrays = [Array(f"{f.name}_in", f.stored) for f in program.fetches if not f.kept]
    arrays += [Array(f"{store.name}_out", store.stored, written=True) for store in program.stores]
    placed = [*(f.name for f in program.fetches if not f.kept), *(s.name for s in program.stores)]
    fields = [("size", form.rank), *((f"{name}_step", form.rank) for name in placed)]
    if form.kind == "columns":
        fields += [(f"{name}_by", 1) for name in placed]
    struct = templates.declare_layout(fields)
    declarations = [struct]
    if form.rank:
        declarations += [
            templates.define_place(f"{name}_place", form.rank, "size", f"{name}_step")
            for name in placed
        ]
    routines = [step.routine for step in (*program.passes, *([program.last] * bool(program.last)))]
    declarations.append(program.definitions)
    declarations += [routine.define(single=_is_single(form)) for routine in routines]
    partial = [Array(f"{name}_parts", ctype, written=True) for name, ctype in program.partial]
    return templates.write_program(
        f"{program.title} by {form.kind} of {form.width}",
        [*arrays, *partial],
        templates.declare_indices(*CONSTANTS, layout=bool(struct)),
        "\n".join(_Writer(program, form).write_body()),
        index=index,
        declarations="\n".join(text for text in declarations if text),
        apart=True,
    )


def _is_single(form: Form) -> bool:
    """Return whether a work-item computes one element at a time."""
    return form.kind == "group" or (form.kind == "columns" and form.width == 1)


def _typed(text: str, ctype: str) -> str:
    """Return a fold's text for a type."""
    return re.sub(r"\bA\b", ctype, text)


def _as_set(text: str) -> str:
    """Return a statement that names the value ``@`` as a format of it."""
    return text.replace("{", "{{").replace("}", "}}").replace("@", "{}")


class _Writer:
    """The writer of one program's body."""

    def __init__(self, program: Program, form: Form) -> None:
        self._program = program
        self._form = form
        self._fetches = {fetch.name: fetch for fetch in program.fetches}
        self._stores = {store.name: store for store in program.stores}
        self._parted = {name for name, _ in program.partial}

    def write_body(self) -> Iterator[str]:
        yield from self._write_head()
        walk = {
            "lanes": self._walk_lanes,
            "group": self._walk_group,
            "columns": self._walk_columns,
        }[self._form.kind]
        for step in self._program.passes:
            yield from walk(step)
        yield from self._write_partial()
        if self._program.last is not None:
            yield from self._write_last(self._program.last)

    def _write_head(self) -> Iterator[str]:
        form = self._form
        number = "get_group_id(0)" if form.kind == "group" else "get_global_id(0)"
        yield f"  const index_t i = {number};\n  if (i >= items) return;"
        if form.kind == "columns":
            width = form.width
            yield f"""  const index_t strips = (inner + {width - 1}) / {width};
  const index_t first = i % strips * {width}, own = i / strips % parts;
  const index_t row = i / strips / parts;
  const index_t across = min(inner - first, (index_t){width});"""
        else:
            yield "  const index_t own = i % parts, row = i / parts;"
        if form.kind == "group":
            yield "  const index_t lane = get_local_id(0);"
        yield "  const index_t begin = own * span, end = min(length, begin + span);"
        arrays = [(f.name, "in", f.across) for f in self._program.fetches if not f.kept]
        arrays += [(store.name, "out", True) for store in self._program.stores]
        for name, suffix, across in arrays:
            place = f"{name}_place(row, layout)" if form.rank else "0"
            first = " + first" if form.kind == "columns" and across else ""
            yield f"  {name}_{suffix} += {place}{first};"

    # Elements --------------------------------------------------------------------------------

    def _read(self, name: str, at: str, k: str) -> str:
        """Return an input's element: ``at`` along the row, the ``k``-th row side by side."""
        fetch = self._fetches.get(name)
        if fetch is None:  # a fold
            return f"{name}[{k}]" if self._is_strip else name
        if fetch.kept:
            return f"({fetch.computed}){self._place(fetch.kept, at, k, along=True)}"
        offset = [*([f"{at} * layout.{name}_by[0]"] if self._is_columns and fetch.along else [])]
        if self._is_columns:
            offset += [k] if fetch.across and self._is_strip else []
        elif fetch.along:
            offset.append(at)
        return f"({fetch.computed}){name}_in[{' + '.join(offset) or '0'}]"

    def _place(self, name: str, at: str, k: str, *, along: bool) -> str:
        if not self._is_columns:
            return f"{name}_out[{at if along else '0'}]"
        offset = [f"{at} * layout.{name}_by[0]"] if along else []
        offset += [k] if self._is_strip else []
        return f"{name}_out[{' + '.join(offset) or '0'}]"

    @property
    def _is_columns(self) -> bool:
        return self._form.kind == "columns"

    @property
    def _is_strip(self) -> bool:
        return self._is_columns and self._form.width > 1

    def _sets(self, step: Pass, folded: Sequence[str], at: str) -> list[str]:
        """Return the statements that take the results of a pass."""
        stored = [f"{self._place(name, at, 'k', along=True)} = {{}};" for name in step.stored]
        return [*folded, *stored]

    # Walks -----------------------------------------------------------------------------------

    def _walk_lanes(self, step: Pass) -> Iterator[str]:
        width = self._form.width
        for name, _, fold in step.folds:
            yield "  " + _typed(fold.declare(f"{name}_state"), f"{fold.element}{width}")
        values = [self._read(name, "c + k", "k") for name in step.fetched]
        if not step.folds:
            loop = step.routine.call_in_loop(values, self._sets(step, [], "c + k"), "end - begin")
            yield f"  {{ const index_t c = begin;\n{loop} }}"
            return
        yield f"  for (index_t c = begin; c < end; c += {BLOCK}) {{"
        yield f"    const index_t count = min(end - c, (index_t){BLOCK});"
        for name, _, fold in step.folds:
            yield f"    {fold.element} {name}_block[{BLOCK}] __attribute__((aligned(64)));"
        blocks = [f"{name}_block[k] = {{}};" for name, _, _ in step.folds]
        yield step.routine.call_in_loop(values, self._sets(step, blocks, "c + k"), "count", "    ")
        for name, _, fold in step.folds:
            yield from self._fold_block(name, fold)
        yield "  }"
        for name, ctype, fold in step.folds:
            yield from self._join_lanes(name, ctype, fold)

    def _fold_block(self, name: str, fold: Fold) -> Iterator[str]:
        """Fold the elements of a block, lane by lane; what lacks in the last vector is neutral."""
        width = self._form.width
        wide = f"{fold.element}{width}"
        neutral = _typed(f"(A)({fold.initial})", fold.element)
        yield f"    {{ index_t full = (count + {width - 1}) / {width} * {width};"
        yield f"    for (index_t k = count; k < full; k++) {name}_block[k] = {neutral};"
        yield f"    const {wide} *all = (const {wide} *){name}_block;"
        yield f"    {wide} sum = all[0];"
        joined = _typed(fold.join("sum", "next"), wide)
        yield f"    for (index_t k = 1; k < full / {width}; k++) {{"
        yield f"      const {wide} next = all[k]; sum = {joined};\n    }}"
        yield "    " + _typed(fold.take(f"{name}_state", "sum"), wide) + " }"

    def _join_lanes(self, name: str, ctype: str, fold: Fold) -> Iterator[str]:
        """Join the lanes of a vector, half by half."""
        width = self._form.width
        last = f"{name}_by{width}"
        wide = f"{fold.element}{width}"
        yield f"  const {wide} {last} = {_typed(fold.close(f'{name}_state'), wide)};"
        while width > 1:
            width //= 2
            half = f"{fold.element}{width if width > 1 else ''}"
            new = f"{name}_by{width}"
            yield f"  const {half} {new}a = {last}.lo, {new}b = {last}.hi;"
            yield f"  const {half} {new} = {_typed(fold.join(new + 'a', new + 'b'), half)};"
            last = new
        yield f"  const {ctype} {name} = ({ctype}){last};"

    def _walk_group(self, step: Pass) -> Iterator[str]:
        size = self._form.width
        for name, _, fold in step.folds:
            yield "  " + _typed(fold.declare(f"{name}_state"), fold.element)
        yield f"  for (index_t c = begin + lane; c < end; c += {size}) {{"
        values = [self._read(name, "c", "0") for name in step.fetched]
        takes = [self._take(name, fold) for name, _, fold in step.folds]
        yield step.routine.call_once(values, self._sets(step, takes, "c"), "    ")
        yield "  }"
        for name, ctype, fold in step.folds:
            close = _typed(fold.close(f"{name}_state"), fold.element)
            yield f"""  local {fold.element} {name}_shared[{size}];
  {name}_shared[lane] = {close};
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index_t half_way = {size // 2}; half_way; half_way >>= 1) {{
    if (lane < half_way) {{
      const {fold.element} a = {name}_shared[lane], b = {name}_shared[lane + half_way];
      {name}_shared[lane] = {_typed(fold.join("a", "b"), fold.element)};
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  const {ctype} {name} = ({ctype}){name}_shared[0];"""

    @staticmethod
    def _take(name: str, fold: Fold) -> str:
        taken = _typed(fold.take(f"{name}_state", "v"), fold.element)
        return _as_set(f"{{ const {fold.element} v = @; {taken} }}")

    def _walk_columns(self, step: Pass) -> Iterator[str]:
        """Fold some elements of each row, then these sums; store elements on the way."""
        width = self._form.width
        for name, _, fold in step.folds:
            states = [f"{name}_state", f"{name}_block", *self._low(name, fold)]
            yield "  " + fold.element + " " + ", ".join(f"{s}[{width}]" for s in states) + ";"
        neutral = {name: _typed(f"(A)({f.initial})", f.element) for name, _, f in step.folds}
        begin = [
            f"{name}_state[k] = {neutral[name]};"
            + "".join(f" {low}[k] = 0;" for low in self._low(name, fold))
            for name, _, fold in step.folds
        ]
        for_each = f"for (index_t k = 0; k < {'across' if width > 1 else '1'}; k++)"
        if begin:
            yield f"  {for_each} {{ {' '.join(begin)} }}"
        yield f"  for (index_t at = begin; at < end; at += {ROWS}) {{"
        if begin:
            blank = " ".join(f"{name}_block[k] = {neutral[name]};" for name, _, _ in step.folds)
            yield f"    {for_each} {{ {blank} }}"
        yield f"    for (index_t c = at; c < min(at + {ROWS}, end); c++) {{"
        takes = []
        for name, _, fold in step.folds:
            joined = _typed(fold.join("w", "v"), fold.element)
            place = f"{name}_block[{self._k}]"
            text = f"{{ const {fold.element} v = @, w = {place}; {place} = {joined}; }}"
            takes.append(_as_set(text))
        values = [self._read(name, "c", "k") for name in step.fetched]
        sets = self._sets(step, takes, "c")
        if width > 1:
            yield step.routine.call_in_loop(values, sets, "across", "      ")
        else:
            yield step.routine.call_once(values, sets, "      ")
        yield "    }"
        ends = []
        for name, _, fold in step.folds:
            low = "".join(f", state_low = {low}[k]" for low in self._low(name, fold))
            keep = "".join(f" {low}[k] = state_low;" for low in self._low(name, fold))
            ends.append(
                f"{{ {fold.element} state = {name}_state[k]{low}; "
                f"const {fold.element} v = {name}_block[k]; "
                f"{_typed(fold.take('state'), fold.element)} {name}_state[k] = state;{keep} }}"
            )
        if ends:
            yield f"    {for_each} {{ {' '.join(ends)} }}"
        yield "  }"
        for name, ctype, fold in step.folds:
            yield f"  {ctype} {name}{f'[{width}]' if width > 1 else ''};"
            low = "".join(f", state_low = {low}[k]" for low in self._low(name, fold))
            yield (
                f"  {for_each} {{ const {fold.element} state = {name}_state[k]{low}; "
                f"{name}{'[k]' if width > 1 else ''} = "
                f"({ctype}){_typed(fold.close('state'), fold.element)}; }}"
            )

    @property
    def _k(self) -> str:
        return "k" if self._is_strip else "0"

    @staticmethod
    def _low(name: str, fold: Fold) -> list[str]:
        return [f"{name}_lows"] if fold.compensated else []

    # Results of rows -------------------------------------------------------------------------

    def _write_partial(self) -> Iterator[str]:
        for name, _ in self._program.partial:
            if self._is_columns:
                k = f"for (index_t k = 0; k < across; k++) {name}_parts[at + k] = {name}[k];"
                one = f"{name}_parts[at] = {name};"
                yield "  { const index_t at = (row * parts + own) * inner + first;"
                yield f"  {k if self._is_strip else one} }}"
            else:
                guard = "if (lane == 0) " if self._form.kind == "group" else ""
                yield f"  {guard}{name}_parts[i] = {name};"

    def _write_last(self, step: Pass) -> Iterator[str]:
        values = [self._read(name, "0", "k") for name in step.fetched]
        sets = [f"{self._place(name, '0', 'k', along=False)} = {{}};" for name in step.stored]
        if self._is_strip:
            yield step.routine.call_in_loop(values, sets, "across")
            return
        guard = "if (lane == 0) " if self._form.kind == "group" else ""
        yield f"  {guard}{{ {step.routine.call_once(values, sets)} }}"

"""Groups of a program's calls, each as one kernel: the expressions of a group as C.

A group without reductions is one elementwise kernel. A group with reductions along one axis is one
kernel, in which a work-item (a work-group on GPUs) does all passes along a row; if there are few
long rows, each reduction is separate launches, for parts of rows and then for the parts' results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import (
    Expression,
    Group,
    GroupOutput,
    KernelRefusedError,
    TensorType,
    expressions,
    shapes,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import (
    ctypes,
    folds,
    functions,
    group_rows,
    pointwise,
    rows,
    statements,
    vectors,
)
from tensorplug_opencl.kernels.group_rows import Fetch, Form, Pass, Program, Store
from tensorplug_opencl.kernels.pointwise import Input, Read
from tensorplug_opencl.kernels.templates import Routine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug.plugin import DType, Reduction, Shape
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.kernels.folds import Fold
    from tensorplug_opencl.runtime import Launch, Runtime

    Run = Callable[..., list[DeviceBuffer]]
    Span = tuple[bool, ...]

__all__ = ["compile_group"]

TITLE: Final = 60  # characters, at most, of the calls' names in a program's title
ARGUMENT_BYTES: Final = 1024  # of a kernel, which every device allows

_FOLDS: Final[Mapping[str, Callable[[DType], Fold]]] = {
    "sum": folds.sum_fold,
    "prod": folds.product_fold,
    "max": folds.max_fold,
    "min": folds.min_fold,
}


def compile_group(group: Group, runtime: Runtime) -> Run | None:
    """Return a function of the inputs' buffers that returns those of the outputs; None to decline.

    Raises:
        BuildError: the device's compiler refuses the program.

    """
    group = group.unified()
    if not all(output.type.size for output in group.outputs):
        if any(output.type.size for output in group.outputs):
            return None
        makers = [runtime.prepare_empty(output.type) for output in group.outputs]
        return lambda *_inputs: [make() for make in makers]
    if not shapes.size(group.shape):  # a reduction of nothing
        return None
    try:
        return _compile(_Loops.of(group), runtime)
    except KernelRefusedError:
        return None


@dataclass(frozen=True)
class _Operand:
    """An input: as in a group, but float16 may be stored as float."""

    dtype: DType
    spans: Span
    stored: str


@dataclass(frozen=True)
class _Loops:
    """A group, or what is left of one."""

    title: str
    shape: Shape
    operands: tuple[_Operand, ...]
    reductions: tuple[Reduction, ...]
    outputs: tuple[GroupOutput, ...]

    @classmethod
    def of(cls, group: Group) -> _Loops:
        title = group.name
        if len(title) > TITLE:
            title = f"{title[:TITLE]}... of {len(expressions.linearize(group.expressions()))}"
        operands = tuple(
            _Operand(operand.type.dtype, operand.spans, ctypes.stored(operand.type.dtype))
            for operand in group.inputs
        )
        return cls(title, group.shape, operands, group.reductions, group.outputs)

    def strides(self, spans: Span) -> layouts.Strides:
        """Return the strides of a dense array along the axes that it spans, 0 for the others."""
        own = tuple(
            length if spanned else 1 for length, spanned in zip(self.shape, spans, strict=True)
        )
        return tuple(
            step if spanned else 0
            for step, spanned in zip(layouts.row_major(own), spans, strict=True)
        )

    def size(self, spans: Span) -> int:
        """Return the number of elements of an array with these spans."""
        return shapes.size(
            tuple(n for n, spanned in zip(self.shape, spans, strict=True) if spanned)
        )

    def covers(self, spans: Span) -> bool:
        """Return whether an array with these spans has all elements of the loops."""
        return self.size(spans) == shapes.size(self.shape)


def _find_parameters(roots: Iterable[Expression]) -> list[int]:
    """Return the numbers of the parameters of some expressions, in order."""
    found = expressions.linearize(list(roots))
    return sorted({_number(each) for each in found if each.op == "parameter"})


def _number(parameter: Expression) -> int:
    number: Any = parameter.value
    return int(number)


def _compile(loops: _Loops, runtime: Runtime) -> Run:
    return _compile_rows(loops, runtime) if loops.reductions else _compile_elements(loops, runtime)


# Elements -------------------------------------------------------------------------------------


def _compile_elements(loops: _Loops, runtime: Runtime) -> Run:
    """Return the function of loops without reductions: a launch for the outputs of each shape."""
    by_spans: dict[Span, list[int]] = {}
    for at, output in enumerate(loops.outputs):
        by_spans.setdefault(output.spans, []).append(at)
    parts = [_launch_elements(loops, spans, chosen, runtime) for spans, chosen in by_spans.items()]
    makers = [runtime.prepare_empty(output.type) for output in loops.outputs]
    if len(parts) == 1:
        ((launch, used, _),) = parts
        if used == list(range(len(loops.operands))):

            def run_all(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
                results = [make() for make in makers]
                launch(*inputs, *results)
                return results

            return run_all

    def run(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
        results = [make() for make in makers]
        for launch, used, chosen in parts:
            launch(*(inputs[at] for at in used), *(results[at] for at in chosen))
        return results

    return run


def _launch_elements(
    loops: _Loops, spans: Span, chosen: Sequence[int], runtime: Runtime
) -> tuple[Launch, list[int], Sequence[int]]:
    """Return the launch that writes some outputs, which have these spans, and the inputs' numbers.

    Raises:
        KernelRefusedError: an output varies along an axis that it does not span.

    """
    outputs = [loops.outputs[at] for at in chosen]
    used = _find_parameters(output.expression for output in outputs)
    axes = [at for at, spanned in enumerate(spans) if spanned]
    reads = []
    for at in used:
        operand = loops.operands[at]
        if any(own and not out for own, out in zip(operand.spans, spans, strict=True)):
            raise KernelRefusedError("an output depends on inputs of other spans")
        strides = loops.strides(operand.spans)
        type_ = TensorType(operand.dtype, (loops.size(operand.spans),))
        computed = statements.computed(operand.dtype)
        named = Input(f"x{at}", type_, operand.stored, computed)
        reads.append(Read(named, tuple(strides[axis] for axis in axes)))
    shape = tuple(loops.shape[axis] for axis in axes)
    results = [f"y{at}" for at in chosen]
    text = statements.write(
        [output.expression for output in outputs], results, {at: f"x{at}" for at in used}
    )
    _check_arguments(len(used) + len(chosen), 0)
    routine = Routine(
        "values_of",
        [(read.input.computed, read.input.name) for read in reads],
        [
            (statements.computed(output.expression.dtype), f"y{at}")
            for at, output in zip(chosen, outputs, strict=True)
        ],
        text.quick,
        text.exact,
    )
    stored = [
        (ctypes.stored(output.type.dtype), name)
        for output, name in zip(outputs, results, strict=True)
    ]
    launch = pointwise.launch_elementwise(
        runtime, loops.title, shape, reads, stored, routine, text.definitions
    )
    return launch, used, chosen


def _check_arguments(arrays: int, numbers: int) -> None:
    """Check that a kernel may have so many arguments.

    Raises:
        KernelRefusedError: it may not.

    """
    if 16 * arrays + 8 * numbers > ARGUMENT_BYTES - layouts.LAYOUT_BYTES:
        raise KernelRefusedError(f"{arrays} arrays are too many for one kernel")


# Rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Walk:
    """The loops as rows: the layout of rows, the elements of each, and rows side by side.

    ``strides``: by array, the inputs' then the outputs': along the layout's axes, along a row, and
    across neighbouring rows.
    """

    sizes: Shape
    length: int
    inner: int
    strides: Sequence[tuple[layouts.Strides, int, int]]

    @property
    def outer(self) -> int:
        return shapes.size(self.sizes)

    @property
    def rows(self) -> int:
        return self.outer * self.inner


def _walk_rows(loops: _Loops) -> _Walk:
    """Return the walk along the axis that is reduced.

    Raises:
        KernelRefusedError: several axes that cannot be merged are reduced.

    """
    reduced = loops.reductions[0].axes
    if any(reduction.axes != reduced for reduction in loops.reductions):
        raise KernelRefusedError("its reductions are along different axes")
    kept = tuple(not flag for flag in reduced)
    arrays = [loops.strides(spans) for spans in _list_spans(loops)]
    marks = [loops.strides(reduced), loops.strides(kept)]
    layout = layouts.collapse(loops.shape, [*arrays, *marks])
    along = [at for at in range(layout.rank) if layout.strides[-2][at]]
    if len(along) > 1:
        raise KernelRefusedError("it reduces several axes that do not lie side by side")
    steps = layout.strides[:-2]
    if not along:  # every row has one element
        return _Walk(layout.sizes, 1, 1, [(own, 0, 0) for own in steps])
    (axis,) = along
    if axis == layout.rank - 1:
        strides = [(own[:-1], own[-1], 0) for own in steps]
        return _Walk(layout.sizes[:-1], layout.sizes[-1], 1, strides)
    outer = [at for at in range(layout.rank - 1) if at != axis]
    strides = [(tuple(own[at] for at in outer), own[axis], own[-1]) for own in steps]
    sizes = tuple(layout.sizes[at] for at in outer)
    return _Walk(sizes, layout.sizes[axis], layout.sizes[-1], strides)


def _list_spans(loops: _Loops) -> list[Span]:
    return [each.spans for each in (*loops.operands, *loops.outputs)]


def _choose_form(loops: _Loops, walk: _Walk, runtime: Runtime) -> Form:
    rank = len(walk.sizes)
    if walk.inner > 1:
        width = min(group_rows.BLOCK, walk.inner) if runtime.is_cpu else 1
        return Form("columns", width, rank)
    if runtime.is_cpu:
        used = [_FOLDS[each.op](each.expression.dtype).element for each in loops.reductions]
        return Form("lanes", vectors.choose_lanes(runtime, *used), rank)
    return Form("group", rows.choose_group(runtime, walk.length), rank)


def _compile_rows(loops: _Loops, runtime: Runtime) -> Run:
    walk = _walk_rows(loops)
    form = _choose_form(loops, walk, runtime)
    units = walk.outer * (-(-walk.inner // form.width) if form.kind == "columns" else 1)
    parts = rows.count_even_parts(
        runtime,
        units,
        walk.length,
        form.width if form.kind == "columns" else 1,
        form.width if form.kind == "group" else 0,
    )
    if parts == 1:
        return _launch_whole(loops, walk, form, runtime)
    return _compile_stages(loops, walk, form, parts, runtime)


def _find_level(loops: _Loops) -> int:
    """Return how many of the first reductions do not depend on others."""
    count = len(loops.operands)
    for at, reduction in enumerate(loops.reductions):
        if any(number >= count for number in _find_parameters([reduction.expression])):
            return at
    return len(loops.reductions)


def _launch_whole(loops: _Loops, walk: _Walk, form: Form, runtime: Runtime) -> Run:
    """Return the function that does all passes in one launch."""
    writer = _Passes(loops, walk)
    return _make_run(loops, writer.write_program(), walk, form, 1, runtime)


class _Passes:
    """The passes of loops with reductions along rows."""

    def __init__(self, loops: _Loops, walk: _Walk) -> None:
        self._loops = loops
        count = len(loops.operands)
        self._names = {at: f"x{at}" for at in range(count)}
        self._names |= {count + at: f"r{at}" for at in range(len(loops.reductions))}
        self._types = [operand.dtype for operand in loops.operands]
        self._types += [reduction.expression.dtype for reduction in loops.reductions]
        self._fetches = [
            Fetch(
                f"x{at}",
                operand.stored,
                statements.computed(operand.dtype),
                bool(along),
                bool(across),
            )
            for at, (operand, (_, along, across)) in enumerate(
                zip(loops.operands, walk.strides, strict=False)
            )
        ]
        self._stores = [
            Store(f"y{at}", ctypes.stored(output.type.dtype), loops.covers(output.spans))
            for at, output in enumerate(loops.outputs)
        ]
        self._definitions: list[statements.Statements] = []
        kept = tuple(not flag for flag in loops.reductions[0].axes)
        for output, store in zip(loops.outputs, self._stores, strict=True):
            if not store.along and loops.size(output.spans) != loops.size(kept):
                raise KernelRefusedError("an output spans some of the axes that are kept")

    def write_program(self, partial: Sequence[tuple[str, str]] = ()) -> Program:
        loops = self._loops
        count = len(loops.operands)
        early = [
            at
            for at, output in enumerate(loops.outputs)
            if self._stores[at].along
            and not any(number >= count for number in _find_parameters([output.expression]))
        ]
        passes, done = [], 0
        while done < len(loops.reductions):
            end = done + 1
            while end < len(loops.reductions) and not any(
                number >= count + done
                for number in _find_parameters([loops.reductions[end].expression])
            ):
                end += 1
            passes.append(self._write_pass(f"pass_{done}", range(done, end), early))
            early, done = [], end
        stored = {name for step in passes for name in step.stored}
        late = [
            at for at, store in enumerate(self._stores) if store.along and store.name not in stored
        ]
        if late:
            passes.append(self._write_pass("end_pass", range(0), late))
        own = [at for at, store in enumerate(self._stores) if not store.along]
        last = self._write_pass("end_row", range(0), own) if own else None
        definitions = _merge_definitions(self._definitions)
        return Program(
            loops.title, self._fetches, self._stores, passes, last, partial, definitions
        )

    def _write_pass(self, name: str, reduced: range, stored: Sequence[int]) -> Pass:
        loops = self._loops
        chosen = [loops.reductions[at] for at in reduced]
        outputs = [loops.outputs[at] for at in stored]
        roots = [*(each.expression for each in chosen), *(each.expression for each in outputs)]
        results = [*(f"v{at}" for at in reduced), *(f"y{at}" for at in stored)]
        used = _find_parameters(roots)
        text = statements.write(roots, results, {at: self._names[at] for at in used})
        self._definitions.append(text)
        taken = [_FOLDS[each.op](each.expression.dtype) for each in chosen]
        types = [statements.computed(root.dtype) for root in roots]
        routine = Routine(
            name,
            [(statements.computed(self._types[at]), self._names[at]) for at in used],
            list(zip(types, results, strict=True)),
            text.quick,
            text.exact,
        )
        folded = [
            (f"r{at}", statements.computed(each.expression.dtype), fold)
            for at, each, fold in zip(reduced, chosen, taken, strict=True)
        ]
        return Pass(routine, [self._names[at] for at in used], folded, [f"y{at}" for at in stored])


def _merge_definitions(texts: Sequence[statements.Statements]) -> str:
    called: dict[DType, list[str]] = {}
    for text in texts:
        for dtype, calls_ in text.called.items():
            called.setdefault(dtype, []).extend(calls_)
    return functions.define_typed(called)


def _make_run(
    loops: _Loops, program: Program, walk: _Walk, form: Form, parts: int, runtime: Runtime
) -> Run:
    """Return the function that launches ``program``; it gives its outputs, then its partials."""
    launch = _launch_rows(program, walk, form, parts, runtime)
    types = [output.type for output in loops.outputs]
    types += [
        TensorType(_PARTIAL[ctype], (walk.outer, parts, walk.inner))
        for _, ctype in program.partial
    ]
    makers = [runtime.prepare_empty(type_) for type_ in types]

    def run(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
        results = [make() for make in makers]
        launch(*inputs, *results)
        return results

    return run


_PARTIAL: Final = {ctype: dtype for dtype, ctype in reversed(ctypes.STORED.items())}


def _launch_rows(
    program: Program, walk: _Walk, form: Form, parts: int, runtime: Runtime
) -> Launch:
    strips = -(-walk.inner // form.width) if form.kind == "columns" else 1
    units = walk.outer * parts * strips
    index = layouts.index_dtype(walk.rows * max(walk.length, parts) + group_rows.BLOCK, units)
    span = -(-walk.length // parts)
    numbers = (units, parts, walk.length, span, walk.inner)
    layout = layouts.Layout(walk.sizes, tuple(outer for outer, _, _ in walk.strides))
    along = layouts.Layout((), tuple((step,) for _, step, _ in walk.strides))
    packed = layouts.pack([layout, *([along] if form.kind == "columns" else [])], index)
    arrays = len(walk.strides) + len(program.partial)
    _check_arguments(arrays, len(numbers))
    arguments = [*map(index.type, numbers), *([] if packed is None else [packed])]
    text = group_rows.write_source(program, form, index)
    together = form.width if form.kind == "group" else 1
    runtime.check_steps(-(-span // together))
    if form.kind == "group":
        return runtime.launch(text, arrays, arguments, units * together, group=together)
    heavy = walk.length > rows.LONG_WALK and (
        not runtime.is_cpu or units < 64 * runtime.parallel_items
    )
    return runtime.launch(text, arrays, arguments, units, heavy=heavy)


# Stages ---------------------------------------------------------------------------------------


def _compile_stages(loops: _Loops, walk: _Walk, form: Form, parts: int, runtime: Runtime) -> Run:
    """Return the function that reduces rows in parts, joins the parts, and goes on with the rest."""
    level = _find_level(loops)
    count = len(loops.operands)
    chosen = loops.reductions[:level]
    early = [
        at
        for at, output in enumerate(loops.outputs)
        if loops.covers(output.spans)
        and not any(number >= count for number in _find_parameters([output.expression]))
    ]
    late = [at for at in range(len(loops.outputs)) if at not in early]
    taken = [_FOLDS[each.op](each.expression.dtype) for each in chosen]
    first = replace(loops, reductions=chosen, outputs=tuple(loops.outputs[at] for at in early))
    first_walk = _walk_rows(first)
    between = [_stage_dtype(each.expression.dtype) for each in chosen]
    partial = [(f"r{at}", ctypes.stored(dtype)) for at, dtype in enumerate(between)]
    begin = _make_run(
        first, _Passes(first, first_walk).write_program(partial), first_walk, form, parts, runtime
    )
    joined = rows.make_walk((walk.outer, parts, walk.inner), (1,))
    joins = [
        rows.make_reducer(
            runtime, f"{loops.title} parts", joined, dtype, TensorType(dtype, (walk.rows,)), fold
        )
        for dtype, fold in zip(between, taken, strict=True)
    ]
    kept = tuple(not flag for flag in chosen[0].axes)
    new = tuple(
        _Operand(each.expression.dtype, kept, ctypes.stored(dtype))
        for each, dtype in zip(chosen, between, strict=True)
    )
    rest = replace(
        loops,
        operands=(*loops.operands, *new),
        reductions=loops.reductions[level:],
        outputs=tuple(loops.outputs[at] for at in late),
    )
    finish = _compile(rest, runtime) if late else None

    def run(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
        begun = begin(*inputs)
        results: list[Any] = [None] * len(loops.outputs)
        for at, result in zip(early, begun, strict=False):
            results[at] = result
        if finish is not None:
            sums = [join(part) for join, part in zip(joins, begun[len(early) :], strict=True)]
            for at, result in zip(late, finish(*inputs, *sums), strict=True):
                results[at] = result
        return results

    return run


def _stage_dtype(dtype: DType) -> DType:
    """Return the dtype in which a reduction's results are kept between launches."""
    return dt.float32 if dtype is dt.float16 else dtype

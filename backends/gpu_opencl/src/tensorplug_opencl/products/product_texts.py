"""Matrix products as data, and the common parts of the programs that compute them.

Every program computes, for each batch and each slice of the inner axis, tiles of
``C = epilogue(A B)``; A, B and C are read and written by strides, so that transposing and
broadcasting cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.plugin import DType, Shape, shapes
from tensorplug_opencl.codegen import ctypes, functions, layouts, templates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from tensorplug_opencl.products.gathers import Operand
    from tensorplug_opencl.products.matrices import Matrix


# Terms that are added one after the other: the rounding error grows with this plus the number of
# such blocks (and not even with that, if their sum is compensated).
BLOCK: Final = 32


class Epilogue(NamedTuple):
    """The function applied to each element ``x`` of the product before the store.

    ``expression`` is C over x, the names of ``inputs`` (arrays with an element for every
    element of the product) and those of ``numbers`` (constants).
    """

    expression: str = "x"
    inputs: tuple[tuple[str, Matrix], ...] = ()
    numbers: tuple[tuple[str, float], ...] = ()


NO_EPILOGUE: Final = Epilogue()
KEPT: Final = 256  # texts in memory, of each kind of product


class Product(NamedTuple):
    """C = A B for every batch: A is rows x inner, B is inner x columns.

    If one of the three is ``Gathered``, there is no batch. Elements of C outside of it are
    computed and not stored. ``reach``: the number of elements in the largest of the arrays.
    ``slices``: into how many slices the inner axis is cut; their products then follow one another
    in C, ``slice_by`` elements apart. ``raw``: C has the type of the computation. ``summing``: A
    holds such products, inner is their number, and there is no B.
    """

    dtype: DType
    batch: Shape
    rows: int
    inner: int
    columns: int
    a: Operand
    b: Operand
    c: Operand
    reach: int
    epilogue: Epilogue = NO_EPILOGUE
    slices: int = 1
    slice_by: int = 0
    raw: bool = False
    summing: bool = False

    @property
    def turned(self) -> Product:
        """The same product, computed from B's and A's transposes into C's."""
        inputs = tuple((name, matrix.turned) for name, matrix in self.epilogue.inputs)
        return self._replace(
            rows=self.columns,
            columns=self.rows,
            a=self.b.turned,
            b=self.a.turned,
            c=self.c.turned,
            epilogue=self.epilogue._replace(inputs=inputs),
        )

    @property
    def outline(self) -> Product:
        """A product for which program texts are the same, whatever this one's sizes are."""
        rank = _collapse_batches(self).rank
        inputs = tuple((name, matrix.outlined(rank)) for name, matrix in self.epilogue.inputs)
        numbers = tuple((name, 0.0) for name, _ in self.epilogue.numbers)
        return self._replace(
            batch=(2,) * rank,  # which strides of 1 do not merge
            rows=1,
            inner=1,
            columns=1,
            a=self.a.outlined(rank),
            b=self.b.outlined(rank),
            c=self.c.outlined(rank),
            reach=0,
            epilogue=Epilogue(self.epilogue.expression, inputs, numbers),
            slices=1,
            slice_by=0,
        )

    @property
    def span(self) -> int:
        """Inner elements of one slice."""
        return -(-self.inner // self.slices)

    @property
    def batches(self) -> int:
        """Number of products."""
        return shapes.size(self.batch)


def _list_arrays(product: Product) -> dict[str, Operand]:
    factors: dict[str, Operand] = (
        {"a": product.a} if product.summing else {"a": product.a, "b": product.b}
    )
    return {**factors, **dict(product.epilogue.inputs), "c": product.c}


def choose_index(product: Product, items: int) -> templates.Index:
    """Return the type in which all indices can be formed."""
    return layouts.index_dtype(
        items,
        max(
            product.reach,
            max(product.slices, product.inner if product.summing else 1) * product.slice_by,
        ),
    )


def list_constants(product: Product, index: templates.Index, more: Mapping[str, int]) -> list[Any]:
    """Return the arguments that ``write_program`` declares after the arrays."""
    arrays = _list_arrays(product)
    numbers = [*more.values(), *_list_sizes(product).values()]
    offsets = [argument for operand in arrays.values() for argument in operand.arguments(index)]
    computed = ctypes.host(ctypes.ring(product.dtype))
    values: list[np.generic] = [computed.type(number) for _, number in product.epilogue.numbers]
    struct = layouts.pack([_collapse_batches(product)], index)
    return [*map(index.type, numbers), *offsets, *values, *([] if struct is None else [struct])]


def _list_sizes(product: Product) -> dict[str, int]:
    return {
        "batches": product.batches,
        "rows": product.rows,
        "inner": product.inner,
        "columns": product.columns,
        "span": product.span,
        "slice_by": product.slice_by,
    }


def _collapse_batches(product: Product) -> layouts.Layout:
    return layouts.collapse(
        product.batch, [matrix.batch for matrix in _list_arrays(product).values()]
    )


def write_program(
    title: str,
    product: Product,
    index: templates.Index,
    more: Sequence[str],
    body: str,
    declarations: str = "",
) -> str:
    """Return a program whose arrays are A, B, the epilogue's inputs, and C.

    ``more`` names further constants. The body finds the types S (stored) and A (computed with),
    and calls ``AT(batch)`` once, which brings every pointer to the first element of its batch.
    """
    element, stored = ctypes.ring(product.dtype), ctypes.stored(product.dtype)
    written = element if product.raw else stored
    operands = _list_arrays(product)
    names = list(operands)
    rank = _collapse_batches(product).rank
    fields = [("size", rank), *((f"{name}_by", rank) for name in names)]
    offsets = [
        templates.define_offset(f"{name}_offset", rank, "size", f"{name}_by") for name in names
    ]
    moved = " ".join(f"{name} += {name}_offset(batch, layout);" for name in names)
    end = define_epilogue(product.epilogue, written)
    if ctypes.computed(product.dtype) == element:
        library = functions.define(product.epilogue.expression, product.dtype)
    else:
        library = f"typedef {element} A;"
    return templates.write_program(
        f"{title} {product.dtype}",
        [
            templates.Array("a", element if product.summing else stored),
            *(templates.Array(name, stored) for name in names[1:-1]),
            templates.Array("c", written, written=True),
        ],
        [
            *templates.declare_indices(*more, *_list_sizes(product)),
            *(parameter for name in names for parameter in operands[name].parameters(name)),
            *(f"const A {name}_argument" for name, _ in product.epilogue.numbers),
            *(["const Layout layout"] if rank else []),
        ],
        body,
        index=index,
        declarations="\n".join(
            [
                library,
                f"typedef {stored} S;",
                *(operand.declarations(name) for name, operand in operands.items()),
                *([templates.declare_layout(fields), *offsets] if rank else []),
                f"#define AT(batch) {moved if rank else ''}",
                end,
                define_join(element),
                declarations,
            ]
        ),
    )


def write_store(product: Product, value: str, row: str, column: str) -> str:
    """Return the statement that applies the epilogue to an element and stores it."""
    ctype = product.c.part_type("c")
    return (
        f"{{ const {ctype} on_row = {product.c.part('c', 'row', row)}, "
        f"on_column = {product.c.part('c', 'column', column)}; "
        f"{write_put(product, value, (row, column), ('on_row', 'on_column'))} }}"
    )


def write_put(product: Product, value: str, at: tuple[str, str], parts: tuple[str, str]) -> str:
    """Return that statement for an offset whose parts are already known, by these names.

    ``at``: the row and the column.
    """
    row, column = at
    offsets = {
        name: f"{row} * {name}_row + {column} * {name}_column"
        for name, _ in product.epilogue.inputs
    }
    inside = product.c.inside("c", *parts)
    condition = "" if inside is None else f"if ({inside}) "
    result = call_epilogue(product.epilogue, value, offsets)
    return f"{condition}c[{product.c.offset(*parts)}] = {result};"


def define_epilogue(epilogue: Epilogue, written: str) -> str:
    """Return the C function that applies the epilogue and returns the type ``written``."""
    named = [f"const A {name}" for name in ("x", *(name for name, _ in epilogue.inputs))]
    named += [f"const A {name}" for name, _ in epilogue.numbers]
    return (
        f"{written} epilogue({', '.join(named)}) {{ return ({written})({epilogue.expression}); }}"
    )


def define_join(element: str) -> str:
    """Return the macro ``JOIN(x, y, sum)``, x * y + sum in the fastest way, for ``element``."""
    return _JOIN[element]


def call_epilogue(epilogue: Epilogue, value: str, offsets: Mapping[str, str]) -> str:
    """Return the call of that function, which reads each input at its offset."""
    arguments = [
        value,
        *(f"{name}[{offset}]" for name, offset in offsets.items()),
        *(f"{name}_argument" for name, _ in epilogue.numbers),
    ]
    return f"epilogue({', '.join(arguments)})"


def write_sum(product: Product, value: str, total: str, low: str) -> str:
    """Return the statement that adds ``value`` to ``total``, and the rounding error to ``low``.

    (Knuth's error-free sum; T is the type of the three.)
    """
    if product.dtype.kind != "float":
        return f"{total} += {value};"
    return (
        f"{{ const T term = {value}, old = {total}, now = old + term, gap = now - old; "
        f"{low} += (old - (now - gap)) + (term - gap); {total} = now; }}"
    )


def allow_contraction(text: str) -> str:
    """Return C functions in which x * y + z may be one operation, rounded once."""
    return f"#pragma OPENCL FP_CONTRACT ON\n{text}\n#pragma OPENCL FP_CONTRACT OFF"


# On hardware with a fused multiply-add, that is both faster and more exact. Some drivers report
# it; others fuse expressions that may be contracted, and have a slow function of that name.
_SEPARATE: Final = "#define JOIN(x, y, sum) ((x) * (y) + (sum))"
_FUSED: Final = "#ifdef {0}\n#define JOIN(x, y, sum) fma(x, y, sum)\n#else\n{1}\n#endif"
_JOIN: Final = {
    "float": _FUSED.format("FP_FAST_FMAF", _SEPARATE),
    "double": _FUSED.format("FP_FAST_FMA", _SEPARATE),
    "uint": _SEPARATE,
    "ulong": _SEPARATE,
}

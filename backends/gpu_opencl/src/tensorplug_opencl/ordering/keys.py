"""Keys: signed integers that order as elements do, alone or together with the elements' indices.

A NaN has the largest key but for the padding's. With their indices, elements are in a total order,
equals in the order of their indices. A key of 32 bits and an index fit into one integer.
Keys without indices are for elements that follow from their keys: so 0.0 comes after -0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes, vectors

if TYPE_CHECKING:
    from collections.abc import Sequence


# The bits of a float from the sign on, of its largest number, and of a NaN.
_FLOATS: Final = {
    "float": (31, "0x7fffffff", "0x7fc00000"),
    "double": (63, "0x7fffffffffffffffL", "0x7ff8000000000000L"),
}


class Keys(NamedTuple):
    """The keys of elements of ``dtype``; ``indexed``: together with their indices.

    In C: ``A`` is an element, ``K`` its key, and ``E`` what is sorted. ``key(x)``,
    ``element(key, index)``, ``after(e, f)`` and ``last()``, which nothing comes after;
    ``key_of(e)``; and ``shown(e)``: the index if there is one, or else the element.
    """

    dtype: DType
    descending: bool
    indexed: bool

    @property
    def ctype(self) -> str:
        """The C type of a key alone."""
        return "long" if self.dtype.itemsize == 8 else "int"

    @property
    def paired(self) -> bool:
        """Whether key and index are two integers."""
        return self.indexed and self.dtype.itemsize == 8

    @property
    def lane(self) -> str:
        """The C type of the integers that are sorted."""
        return "long" if self.indexed else self.ctype

    @property
    def element(self) -> DType:
        """The dtype of these integers."""
        return dt.int64 if self.lane == "long" else dt.int32

    @property
    def itemsize(self) -> int:
        """The number of bytes of what is sorted, for each element."""
        return self.element.itemsize * (2 if self.paired else 1)

    @property
    def result(self) -> str:
        """The C type of a result."""
        return "int" if self.indexed else ctypes.stored(self.dtype)

    def describe(self) -> str:
        """Return what is sorted and how, for titles."""
        return f"{'indices of ' if self.indexed else ''}{self.dtype} " + (
            "down" if self.descending else "up"
        )

    def buffer(self, count: int) -> TensorType:
        """Return the type of a buffer of ``count`` of what is sorted."""
        return TensorType(self.element, (count, 2) if self.paired else (count,))

    def define(self) -> str:
        """Return the definitions for one element."""
        head = [f"typedef {ctypes.computed(self.dtype)} A;", f"typedef {self.ctype} K;"]
        if self.paired:
            rest = [
                "typedef struct { K key; long index; } E;",
                "INLINE E element(K k, int i) { E e; e.key = k; e.index = i; return e; }",
                "INLINE E last() { return element(LONG_MAX, INT_MAX); }",
                """INLINE int after(E e, E f) {
  return e.key > f.key || (e.key == f.key && e.index > f.index);
}""",
                "INLINE K key_of(E e) { return e.key; }",
                "INLINE int shown(E e) { return (int)e.index; }",
            ]
        else:
            rest = [
                f"typedef {self.lane} E;",
                f"INLINE E last() {{ return {self.lane.upper()}_MAX; }}",
                "INLINE int after(E e, E f) { return e > f; }",
            ]
            if self.indexed:
                rest += [
                    "INLINE E element(K k, int i) { return (E)k << 32 | (E)i; }",
                    "INLINE K key_of(E e) { return (K)(e >> 32); }",
                    "INLINE int shown(E e) { return (int)e; }",
                ]
            else:
                rest += [
                    "INLINE E element(K k, int i) { return k; }",
                    f"INLINE {self.result} shown(E k) {{\n{self._invert(1)}}}",
                ]
        return "\n".join([*head, f"INLINE K key(A x) {{\n{self._compute(1)}}}", *rest])

    def define_wide(self, width: int) -> str:
        """Return ``keys_all``, ``elements`` and ``shown_all``, for ``width`` elements.

        ``load_all`` and ``store_all`` move a vector of what is sorted, and ``cut(v, left)`` makes
        all its lanes but the first ones the last of all. They follow the definitions of one
        element and of the vectors V, and of loads and stores of as many of ``lane``.
        """
        lanes = f"({self.lane}{width})({', '.join(map(str, range(width)))})"
        numbers = f"{lanes} + ({self.lane})first"
        wide = f"{self.lane}{width}"
        if self.paired:
            elements = f"V v; v.key = k; v.index = {numbers}; return v;"
            shown = f"return convert_int{width}(v.index);"
            pairs = f"{self.lane}{2 * width}"
            load = (
                f"const {pairs} all = {vectors.load(self.lane, 2 * width, 'p')};\n"
                "  V v; v.key = all.even; v.index = all.odd; return v;"
            )
            store = (
                f"{pairs} all; all.even = v.key; all.odd = v.index;\n"
                f"  {vectors.store(self.lane, 2 * width, 'p', 'all')}"
            )
            cut = (
                "v.key = inside ? v.key : last().key;\n"
                "  v.index = inside ? v.index : last().index; return v;"
            )
        elif self.indexed:
            elements = f"return convert_{wide}(k) << 32 | ({numbers});"
            shown = f"return convert_int{width}(v);"
        else:
            elements = "return k;"
            shown = f"V k = v;\n{self._invert(width)}"
        if not self.paired:
            load = f"return {vectors.load(self.lane, width, 'p')};"
            store = vectors.store(self.lane, width, "p", "v")
            cut = "return inside ? v : last();"
        return "\n".join(
            [
                *([vectors.declare(2 * width, self.lane)] if self.paired else []),
                self.define_keys(width),
                f"INLINE V elements({self.ctype}{width} k, int first) {{ {elements} }}",
                f"INLINE {self.result}{width} shown_all(V v) {{ {shown} }}",
                f"INLINE V load_all(global const E *p) {{\n  {load}\n}}",
                f"INLINE void store_all(global E *p, V v) {{\n  {store}\n}}",
                f"""INLINE V cut(V v, {self.lane} left) {{
  const {wide} inside = {lanes} < left;
  {cut}
}}""",
            ]
        )

    def define_keys(self, width: int, name: str = "keys_all") -> str:
        """Return the definition of ``name(p)``: the keys of ``width`` elements from p on."""
        stored, computed = ctypes.stored(self.dtype), ctypes.computed(self.dtype)
        load = vectors.load(stored, width, "p")
        wide = load if stored == computed else f"convert_{computed}{width}({load})"
        return (
            f"INLINE {self.ctype}{width} {name}(global const {stored} *p) {{\n"
            f"  const {computed}{width} x = {wide};\n{self._compute(width)}}}"
        )

    def _compute(self, width: int) -> str:
        """Return the statements that return the keys of x, ``width`` elements."""
        key = f"{self.ctype}{width if width > 1 else ''}"
        lines: Sequence[str]
        if self.dtype.kind == "float":
            sign, most, undefined = _FLOATS[ctypes.computed(self.dtype)]
            lines = [
                f"{key} k = as_{key}(x);",
                f"k ^= k >> {sign} & ({key})({most});",  # negative floats count backwards
                *([f"k = k == -1 ? ({key})(0) : k;  // of -0.0"] if self.indexed else []),
                f"k = x != x ? ({key})({undefined}) : k;",
            ]
        elif self.dtype.kind == "unsigned" and self.dtype.itemsize >= 4:
            lines = [f"const {key} k = as_{key}(x) ^ {self.ctype.upper()}_MIN;"]
        else:
            lines = [f"const {key} k = convert_{key}(x);"]
        result = "~k" if self.descending else "k"
        return "".join(f"  {line}\n" for line in [*lines, f"return {result};"])

    def _invert(self, width: int) -> str:
        """Return the statements that return the elements with keys k."""
        suffix = str(width) if width > 1 else ""
        stored, computed = ctypes.stored(self.dtype), ctypes.computed(self.dtype)
        lines = ["k = ~k;"] if self.descending else []
        if self.dtype.kind == "float":
            sign, most, _ = _FLOATS[computed]
            lines.append(f"k ^= k >> {sign} & ({self.ctype}{suffix})({most});")
            whole = f"as_{computed}{suffix}(k)"
            result = whole if stored == computed else f"convert_{stored}{suffix}({whole})"
        elif self.dtype.kind == "unsigned" and self.dtype.itemsize >= 4:
            result = f"as_{stored}{suffix}(k ^ {self.ctype.upper()}_MIN)"
        else:
            result = f"convert_{stored}{suffix}(k)"
        return "".join(f"  {line}\n" for line in [*lines, f"return {result};"])

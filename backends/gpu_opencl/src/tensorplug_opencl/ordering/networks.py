"""Bitonic networks: sorting by comparisons that do not depend on the elements.

A merge of two sorted runs first compares each element with its mirror image, then those half as
far apart, and so on; every comparison puts the lesser element first.

A work-item of a CPU sorts a block of ``m`` vectors by itself. The element at ``lane * m + number``
in sorted order is in that lane of the vector with that number. So all comparisons in runs of up to
``m`` elements are those of whole vectors, and only the last merges compare lanes of one vector.
While a block is not sorted, its elements may be anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug_opencl.ordering.keys import Keys


FUSED: Final = 4  # comparisons in a row that are done while vectors are in registers
REGISTERS: Final = 1 << FUSED  # vectors that are there
_DIGITS: Final = "0123456789abcdef"


def define_network() -> str:
    """Return ``network(held, lane, block)``: a group of ``block / 2`` work-items sorts a block.

    ``block`` is a power of two.
    """
    return """INLINE void network(local E *held, const int lane, const int block) {
  for (int size = 2; size <= block; size *= 2) {
    for (int apart = size / 2; apart; apart /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      const int inside = lane % apart, low = lane / apart * 2 * apart + inside;
      const int high = apart == size / 2 ? low + size - 1 - 2 * inside : low + apart;
      const E a = held[low], b = held[high];
      if (after(a, b)) { held[low] = b; held[high] = a; }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}"""


def define_vectors(keys: Keys, width: int) -> str:
    """Return the vectors V of ``width`` of what is sorted by ``keys``, and what works on them.

    ``exchange`` puts the lesser of each two elements into the first vector. ``mirror_S`` begins
    merges of two runs, S lanes together, of vectors that mirror each other; ``fold_S`` does so if
    there is one vector. ``merge_S`` ends merges: it compares lanes less than S apart.
    ``put`` and ``get`` access an element by its slot, the number of its vector and its lane.
    """
    lane = f"{keys.lane}{width}"
    parts = ("key", "index") if keys.paired else ()

    def each(text: str) -> str:
        """Return a function's body that gives ``text``, for each part of vectors named v, w."""
        if not parts:
            return f"return {text.format(v='v', w='w')};"
        sets = (f"t.{part} = {text.format(v=f'v.{part}', w=f'w.{part}')};" for part in parts)
        return f"V t; {' '.join(sets)} return t;"

    if parts:
        exchange = (
            f"const {lane} after = x.key > y.key | (x.key == y.key & x.index > y.index);\n"
            "  a->key = after ? y.key : x.key; a->index = after ? y.index : x.index;\n"
            "  b->key = after ? x.key : y.key; b->index = after ? x.index : y.index;"
        )
        put = (
            f"local long *at = (local long *)(v + slot / {width}) + slot % {width};\n"
            f"  at[0] = e.key; at[{width}] = e.index;"
        )
        get = (
            f"local const long *at = (local const long *)(v + slot / {width}) + slot % {width};\n"
            f"  return element(at[0], (int)at[{width}]);"
        )
    else:
        exchange = "*a = x < y ? x : y; *b = x < y ? y : x;"
        put, get = "((local E *)v)[slot] = e;", "return ((local const E *)v)[slot];"
    lines = [
        f"typedef struct {{ {lane} key, index; }} V;" if parts else f"typedef {lane} V;",
        f"INLINE void put(local V *v, int slot, E e) {{\n  {put}\n}}",
        f"INLINE E get(local const V *v, int slot) {{\n  {get}\n}}",
        f"INLINE void exchange(V *a, V *b) {{\n  const V x = *a, y = *b;\n  {exchange}\n}}",
    ]
    distances = [1 << bit for bit in range(width.bit_length() - 1)]
    for flip in sorted({*distances, *(2 * distance - 1 for distance in distances)}):
        order = "".join(_DIGITS[number ^ flip] for number in range(width))
        lines.append(f"INLINE V turn_{flip}(V v) {{ {each('{v}.s' + order)} }}")
    for distance in distances:
        mask = ", ".join("-1" if number & distance else "0" for number in range(width))
        choice = f"({lane})({mask}) ? {{w}} : {{v}}"
        lines.append(f"INLINE V pick_{distance}(V v, V w) {{ {each(choice)} }}")
    for distance in distances:
        size = 2 * distance
        lines += [
            f"""INLINE void mirror_{size}(V *a, V *b) {{
  V v = *a, w = turn_{size - 1}(*b);
  exchange(&v, &w);
  *a = pick_{distance}(v, w); *b = turn_{size - 1}(pick_{distance}(w, v));
}}""",
            f"""INLINE V fold_{size}(V v) {{
  V w = turn_{size - 1}(v);
  exchange(&v, &w);
  return pick_{distance}(v, w);
}}""",
        ]
    for size in (*distances, width):
        steps = (
            f"  {{ V w = turn_{apart}(v); exchange(&v, &w); v = pick_{apart}(v, w); }}\n"
            for apart in reversed([distance for distance in distances if distance < size])
        )
        lines.append(f"INLINE V merge_{size}(V v) {{\n{''.join(steps)}  return v;\n}}")
    return "\n".join(lines)


def define_block_sort(width: int, m: int, *, lanes: bool = False) -> str:
    """Return ``sort_block(v, m)`` for ``m`` vectors, a power of two.

    Up to ``REGISTERS`` vectors stay in registers. Above, the function serves any larger m.
    ``lanes``: each lane is sorted separately.
    """
    names = [f"r{number}" for number in range(min(m, REGISTERS))]
    merges = [] if lanes else [2 << bit for bit in range(width.bit_length() - 1)]
    head = "INLINE void sort_block(local V *v, const int m) {\n"
    if m > REGISTERS:
        lines = [
            "sort_columns(v, m);",
            f"for (int bits = {FUSED + 1}; 1 << bits <= m; bits++) {{",
            f"  mirror(v, m, 1 << (bits - {FUSED})); clean(v, m, bits - {FUSED});",
            "}",
        ]
        for size in merges:
            lines += [
                "for (int low = 0, high = m - 1; low < high; low++, high--) {",
                f"  V a = v[low], b = v[high]; mirror_{size}(&a, &b);",
                f"  v[low] = merge_{size // 2}(a); v[high] = merge_{size // 2}(b);",
                "}",
                "clean(v, m, 31 - clz(m));",
            ]
        return f"{_define_passes()}\n{head}{_indent(lines)}}}"
    lines = [*_load(names, "v[{}]"), *_sort(names)]
    for size in merges:
        if m == 1:
            lines.append(f"r0 = fold_{size}(r0);")
        lines += [f"mirror_{size}(&{a}, &{b});" for a, b in _mirrored(names)]
        lines += [f"{name} = merge_{size // 2}({name});" for name in names]
        lines += _clean(names, m // 2)
    return f"{head}{_indent([*lines, *_store(names, 'v[{}]')])}}}"


def _define_passes() -> str:
    """Return the passes over a large block, each of which has ``REGISTERS`` vectors at once.

    ``sort_columns`` sorts runs of so many vectors. ``mirror`` begins the merges of pairs of runs
    of ``REGISTERS / 2 * apart``. ``clean`` does the comparisons that are ``1 << bits`` apart, or
    less, in runs.
    """
    names = [f"r{number}" for number in range(REGISTERS)]
    half = REGISTERS // 2
    loop = (
        "for (int block = 0; block < m; block += {} * apart)\n"
        "  for (int low = 0; low < apart; low++) {{\n"
    )
    statements = [
        "INLINE void sort_columns(local V *v, const int m) {\n"
        f"  for (int at = 0; at < m; at += {REGISTERS}) {{\n"
        + _indent([*_load(names, "v[at + {}]"), *_sort(names), *_store(names, "v[at + {}]")])
        + "  }\n}"
    ]
    lower, upper = "v[block + {} * apart + low]", "v[block + {} * apart + apart - 1 - low]"
    lines = [
        *_load(names[:half], lower),
        *_load(names[half:], upper, half),
        *_exchange(_mirrored(names)),
        *_clean(names, half // 2),
        *_store(names[:half], lower),
        *_store(names[half:], upper, half),
    ]
    statements.append(
        "INLINE void mirror(local V *v, const int m, const int apart) {\n  "
        f"{loop.format(REGISTERS)}{_indent(lines)}  }}\n}}"
    )
    for bits in range(1, FUSED + 1):
        some = names[: 1 << bits]
        lines = [*_load(some, lower), *_clean(some, len(some) // 2), *_store(some, lower)]
        statements.append(
            f"INLINE void clean_{bits}(local V *v, const int m, const int apart) {{\n  "
            f"{loop.format(len(some))}{_indent(lines)}  }}\n}}"
        )
    cases = "".join(
        f"    if (now == {bits}) clean_{bits}(v, m, 1 << rest);\n" for bits in range(1, FUSED + 1)
    )
    statements.append(
        f"""void clean(local V *v, const int m, int rest) {{
  while (rest) {{
    const int now = min(rest, {FUSED});
    rest -= now;
{cases}  }}
}}"""
    )
    return "\n".join(statements)


def define_transpose(ctype: str, width: int) -> str:
    """Return ``transpose(r)``: it transposes the ``width`` vectors from r on, of ``ctype``."""
    wide = f"{ctype}{width}"
    old, new = [f"r{i}" for i in range(width)], [f"t{i}" for i in range(width)]
    lines = [f"{wide} {', '.join(new)};", *_load(old, "r[{}]", ctype=wide)]
    for _ in range(width.bit_length() - 1):
        for number in range(width // 2):
            pair = f"{old[number]}.{{0}}", f"{old[number + width // 2]}.{{0}}"
            for side, half in enumerate(("lo", "hi")):
                target = new[2 * number + side]
                even, odd = (one.format(half) for one in pair)
                lines.append(f"{target}.even = {even}; {target}.odd = {odd};")
        old, new = new, old
    lines += _store(old, "r[{}]")
    return f"INLINE void transpose({wide} *r) {{\n{_indent(lines)}}}"


def _indent(lines: Sequence[str]) -> str:
    return "".join(f"    {line}\n" for line in lines)


def _load(names: Sequence[str], address: str, first: int = 0, ctype: str = "V") -> list[str]:
    return [
        f"{ctype} {name} = {address.format(number)};" for number, name in enumerate(names, first)
    ]


def _store(names: Sequence[str], address: str, first: int = 0) -> list[str]:
    return [f"{address.format(number)} = {name};" for number, name in enumerate(names, first)]


def _mirrored(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    half = len(names) // 2
    return zip(names[:half], reversed(names), strict=False)


def _exchange(pairs: Iterator[tuple[str, str]]) -> list[str]:
    return [f"exchange(&{a}, &{b});" for a, b in pairs]


def _clean(names: Sequence[str], apart: int) -> list[str]:
    """Return the comparisons of those ``apart``, half as far, and so on."""
    statements = []
    while apart:
        statements += [
            f"exchange(&{name}, &{names[number + apart]});"
            for number, name in enumerate(names)
            if not number & apart
        ]
        apart //= 2
    return statements


def _sort(names: Sequence[str]) -> list[str]:
    statements, size = [], 2
    while size <= len(names):
        for start in range(0, len(names), size):
            statements += _exchange(_mirrored(names[start : start + size]))
        statements += _clean(names, size // 4)
        size *= 2
    return statements

"""What a driver has to compute in its trial: programs, and the numbers that are right.

The checks go where drivers were seen to go wrong: vectors as long as kernels use them, in every
built-in function that kernels call with vectors; reductions of integers and floats; groups that
share memory and wait for one another; atomics; double and half precision; a program that is
loaded from its binary. Expected numbers come from NumPy, by other formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Array = np.ndarray[Any, Any]

__all__ = [
    "GROUP",
    "WIDE_FUNCTIONS",
    "Check",
    "groups",
    "halves",
    "loops",
    "scalars",
    "wide",
    "wide_atomics",
]

LENGTH: Final = 101  # elements that kernels walk over: whole vectors, and some more
ITEMS: Final = 6  # work-items at once
GROUP: Final = 24  # work-items that share memory, at most; no multiple of a GPU's sub-groups
_STRICT: Final = "#pragma OPENCL FP_CONTRACT OFF\n"

# The built-in functions that kernels call with vectors, beside conversions.
WIDE_FUNCTIONS: Final = frozenset({"max", "min", "exp", "log1p", "sqrt", "rsqrt", "fabs"})


class Check(NamedTuple):
    """One kernel: its inputs, how many work-items it has, in groups of how many, what is right.

    Results are compared exactly, or within ``ulp`` units in the last place.
    """

    kernel: str
    inputs: Sequence[Array]
    items: int
    group: int
    expected: Array
    ulp: float = 0

    def wrong(self, actual: Array) -> str:
        """Return what is wrong with ``actual``; "" if nothing is."""
        right = self.expected
        with np.errstate(all="ignore"):
            if not self.ulp:
                same = actual == right
            else:
                step = self.ulp * np.spacing(np.abs(right))
                off = np.abs(actual.astype(np.float64) - right.astype(np.float64))
                same = (off <= step) | (actual == right) | (np.isnan(actual) & np.isnan(right))
        if same.all():
            return ""
        at = int(np.argmin(same.reshape(-1)))
        given, wanted = actual.reshape(-1)[at], right.reshape(-1)[at]
        return f"{self.kernel}: number {at} is {given}, and {wanted} is right"


Part = tuple[str, list[Check]]  # the text of a program, and what its kernels must give


def _numbers(dtype: str, seed: int, count: int = LENGTH * ITEMS + 1) -> Array:
    """Return the same numbers each time: integers of all bits, floats around 1."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.uniform(-2.0, 2.0, count).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, count, dtype=kind, endpoint=True)


# One work-item, one number ----------------------------------------------------------------------


def scalars(real: str = "float") -> Part:
    """Return arithmetic of integers and of ``real``, and the functions that kernels rest on."""
    dtype = "f4" if real == "float" else "f8"
    x, y = np.abs(_numbers(dtype, 1)) + 0.25, _numbers(dtype, 2)
    m, n = _numbers("i4", 3), _numbers("i4", 4) >> 20
    n[n == 0] = 7
    wide = real == "double"
    program = f"""{"#pragma OPENCL EXTENSION cl_khr_fp64 : enable" if wide else ""}
{_STRICT}
kernel void functions(global const {real} *x, global const {real} *y, global {real} *z) {{
  const int i = get_global_id(0), n = {x.size};
  z[i] = exp(y[i]); z[n + i] = log(x[i]); z[2 * n + i] = sin(y[i]); z[3 * n + i] = cos(y[i]);
  z[4 * n + i] = sqrt(x[i]); z[5 * n + i] = fma(x[i], y[i], x[i]); z[6 * n + i] = x[i] / y[i];
  z[7 * n + i] = floor(y[i]); z[8 * n + i] = fmod(y[i], x[i]); z[9 * n + i] = log1p(x[i]);
  z[10 * n + i] = copysign(x[i], y[i]); z[11 * n + i] = atan2(y[i], x[i]);
  z[12 * n + i] = expm1(y[i]); z[13 * n + i] = fmax(x[i], y[i]); z[14 * n + i] = pow(x[i], y[i]);
}}
kernel void integers(global const int *x, global const int *y, global int *z) {{
  const int i = get_global_id(0), n = {m.size};
  z[i] = (int)((uint)x[i] * (uint)y[i]); z[n + i] = x[i] / y[i]; z[2 * n + i] = x[i] % y[i];
  z[3 * n + i] = mul_hi(x[i], y[i]); z[4 * n + i] = clz(x[i]); z[5 * n + i] = x[i] >> 3;
  z[6 * n + i] = (int)((uint)x[i] >> 3); z[7 * n + i] = (char)x[i]; z[8 * n + i] = (ushort)x[i];
  z[9 * n + i] = (int)(((ulong)(uint)x[i] * (ulong)(uint)y[i]) % 1000003ul);
  z[10 * n + i] = min(x[i], y[i]); z[11 * n + i] = x[i] < y[i] ? -1 : x[i] == y[i];
}}
"""
    a, b = x.astype("f8"), y.astype("f8")
    reals = [np.exp(b), np.log(a), np.sin(b), np.cos(b), np.sqrt(a), _fused(x, y), a / b]
    reals += [np.floor(b), np.fmod(b, a), np.log1p(a), np.copysign(a, b), np.arctan2(b, a)]
    reals += [np.expm1(b), np.fmax(a, b), a**b]
    long_m, long_n = m.astype("i8"), n.astype("i8")
    quotient = np.trunc(long_m / long_n).astype("i8")
    unsigned = long_m & 0xFFFFFFFF, long_n & 0xFFFFFFFF
    integers = [
        long_m * long_n,
        quotient,
        long_m - quotient * long_n,
        (long_m * long_n) >> 32,
        np.array([32 - int(each).bit_length() if each > 0 else 32 * (each == 0) for each in m]),
        long_m // 8,
        unsigned[0] // 8,
        long_m.astype("i1"),
        long_m.astype("u2"),
        np.array([p * q % 1000003 for p, q in np.stack(unsigned, 1).tolist()]),
        np.minimum(m, n),
        np.where(m < n, -1, m == n),
    ]
    counted = np.concatenate([each.astype("i8") for each in integers]).astype("i4")
    return program, [
        Check("functions", [x, y], x.size, 1, np.concatenate(reals).astype(dtype), ulp=16),
        Check("integers", [m, n], m.size, 1, counted),
    ]


def _fused(x: Array, y: Array) -> Array:
    """Return x * y + x, rounded once: float32 products are exact in double precision."""
    wide: Array = x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)
    exact: Array = np.add(np.multiply(wide, y), wide)
    rounded: Array = exact.astype(np.float64)
    return rounded


def loops() -> Part:
    """Return a loop in a loop, of so many steps that some drivers give up."""
    turns, steps = 40, 5_000
    seeds = np.arange(ITEMS, dtype="u4")
    program = f"""kernel void loops(global const uint *x, global uint *y) {{
  const int i = get_global_id(0);
  uint state = x[i];
  for (uint turn = 0; turn < x[{ITEMS}]; turn++)
    for (uint step = 0; step < x[{ITEMS + 1}]; step++) state = state * 1664525u + 1013904223u;
  y[i] = state;
}}
"""
    factor, term = 1664525, 1013904223  # of one step; then of all of them
    for bit in bin(turns * steps)[3:]:
        factor, term = factor * factor, factor * term + term
        if bit == "1":
            factor, term = 1664525 * factor, 1664525 * term + 1013904223
        factor, term = factor % 2**32, term % 2**32
    right = np.array([(factor * seed + term) % 2**32 for seed in range(ITEMS)], "u4")
    given = np.concatenate([seeds, np.array([turns, steps], "u4")])
    return program, [Check("loops", [given], ITEMS, 1, right)]


# Work-items that share memory -------------------------------------------------------------------


def groups(size: int = GROUP) -> Part:
    """Return groups of ``size`` that sum up in local memory, behind barriers; and atomics."""
    count = 4 * size
    x, f = _numbers("i4", 5, count) >> 8, _numbers("f4", 6, count)
    f = np.round(f * 64).astype("f4")  # sums of these are exact
    program = f"""{_STRICT}
#define TREE(T) \\
  local T shared[{size}]; \\
  const int lane = get_local_id(0), place = get_group_id(0); \\
  shared[lane] = x[get_global_id(0)]; \\
  barrier(CLK_LOCAL_MEM_FENCE); \\
  for (int left = {size}; left > 1;) {{ \\
    const int half_way = (left + 1) / 2; \\
    if (lane + half_way < left) shared[lane] += shared[lane + half_way]; \\
    left = half_way; \\
    barrier(CLK_LOCAL_MEM_FENCE); \\
  }} \\
  const T turned = shared[0] + x[place * {size} + {size - 1} - lane]; \\
  barrier(CLK_LOCAL_MEM_FENCE); \\
  shared[{size - 1} - lane] = turned; \\
  barrier(CLK_LOCAL_MEM_FENCE); \\
  y[get_global_id(0)] = shared[lane];
kernel void tree_of_integers(global const int *x, global int *y) {{ TREE(int) }}
kernel void tree_of_floats(global const float *x, global float *y) {{ TREE(float) }}
kernel void atomics(global const int *x, volatile global int *y) {{
  const int i = get_global_id(0);
  atomic_add(y + i % 3, x[i]); atomic_max(y + 3, x[i]);
  int known, old = y[4];
  do {{ known = old; old = atomic_cmpxchg(y + 4, known, known ^ x[i]); }} while (old != known);
}}
"""

    def tree(given: Array) -> Array:
        rows = given.reshape(-1, size)
        made: Array = rows.sum(1, dtype=given.dtype, keepdims=True) + rows
        return made.reshape(-1)

    added = [x[at::3].sum(dtype="i4") for at in range(3)]
    atomics = [*added, max(0, x.max()), np.bitwise_xor.reduce(x)]
    return program, [
        Check("tree_of_integers", [x], count, size, tree(x)),
        Check("tree_of_floats", [f], count, size, tree(f)),
        Check("atomics", [x], count, size, np.array(atomics, "i4")),
    ]


def wide_atomics(size: int = GROUP) -> Part:
    """Return additions and exchanges on 64-bit integers."""
    count = 4 * size
    x = _numbers("i8", 7, count)
    program = """#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
kernel void wide_atomics(global const long *x, volatile global long *y) {
  const int i = get_global_id(0);
  atom_add(y + i % 3, x[i]);
  long known, old = y[3];
  do { known = old; old = atom_cmpxchg(y + 3, known, known ^ x[i]); } while (old != known);
}
"""
    atomics = [*(x[at::3].sum() for at in range(3)), np.bitwise_xor.reduce(x)]
    return program, [Check("wide_atomics", [x], count, size, np.array(atomics, "i8"))]


# Half precision ---------------------------------------------------------------------------------


def halves() -> Part:
    """Return numbers of half precision, read, widened, added up and rounded back."""
    x = _numbers("f2", 8)
    program = f"""#pragma OPENCL EXTENSION cl_khr_fp16 : enable
{_STRICT}
kernel void halves(global const half *x, global half *y) {{
  const int i = get_global_id(0);
  const float a = (float)x[i];
  y[i] = (half)(a * a + 1.0f); y[{x.size} + i] = (half)(a * 70000.0f);
}}
"""
    a = x.astype("f4")
    with np.errstate(over="ignore"):
        made = np.concatenate([a * a + np.float32(1), a * np.float32(70000)]).astype("f2")
    return program, [Check("halves", [x], x.size, 1, made)]


# Vectors ----------------------------------------------------------------------------------------

_TYPES: Final = {
    "char": ("i1", "uint"),
    "uchar": ("u1", "uint"),
    "short": ("i2", "uint"),
    "ushort": ("u2", "uint"),
    "int": ("i4", "uint"),
    "uint": ("u4", "uint"),
    "long": ("i8", "ulong"),
    "ulong": ("u8", "ulong"),
}
_REALS: Final = {"float": "f4", "double": "f8"}
_BYTES: Final = {"uint": 4, "ulong": 8, "float": 4, "double": 8}
_WIDEST: Final = 16


def wide(nbytes: int, *, double: bool) -> Part:
    """Return folds and functions of vectors of ``nbytes`` bytes, at odd addresses."""
    texts = [_STRICT]
    checks: list[Check] = []
    if double:
        texts.insert(0, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    for ctype, (dtype, ring) in _TYPES.items():
        width = min(_WIDEST, nbytes // _BYTES[ring])
        own = min(_WIDEST, nbytes // np.dtype(dtype).itemsize)
        texts.append(_loose(ctype, *{width, own}))
        texts.append(_integer_folds(ctype, ring, width, own))
        checks += _integer_checks(ctype, dtype, ring, width)
    for ctype, dtype in _REALS.items():
        if ctype == "float" or double:
            width = nbytes // _BYTES[ctype]
            texts += [_loose(ctype, width), _real_folds(ctype, width)]
            checks += _real_checks(ctype, dtype, width)
    return "\n".join(texts), checks


def _loose(ctype: str, *widths: int) -> str:
    return "\n".join(
        f"typedef struct __attribute__((packed)) {{ {ctype}{width} v; }} loose_{ctype}{width};"
        for width in widths
    )


def _load(ctype: str, width: int, pointer: str) -> str:
    return f"((global const loose_{ctype}{width} *)({pointer}))->v"


def _lanes(count: int, join: Callable[[str], str]) -> str:
    """Return statements that join the lanes of a vector, one by one."""
    return " ".join(join(f"s{lane:x}") for lane in range(count))


def _integer_folds(ctype: str, ring: str, width: int, own: int) -> str:
    """Sums and products in ``ring``, extremes in the type itself, of rows that begin at x + 1."""
    wide, narrow = f"{ring}{width}", f"{ctype}{own}"
    return f"""kernel void fold_{ctype}(global const {ctype} *x, global {ring} *y) {{
  x += 1 + get_global_id(0) * {LENGTH}; y += get_global_id(0) * 4;
  {wide} sums = ({wide})(0), products = ({wide})(1);
  {narrow} least = {_load(ctype, own, "x")}, most = least;
  int c = 0;
  for (; c + {width} <= {LENGTH}; c += {width}) {{
    const {wide} v = convert_{wide}({_load(ctype, width, "x + c")});
    sums = sums + v; products = products * (v | ({wide})(1));
  }}
  {ring} sum = 0, product = 1;
  {_lanes(width, lambda s: f"sum += sums.{s}; product *= products.{s};")}
  for (; c < {LENGTH}; c++) {{ sum += ({ring})x[c]; product *= ({ring})x[c] | 1; }}
  for (c = 0; c + {own} <= {LENGTH}; c += {own}) {{
    const {narrow} v = {_load(ctype, own, "x + c")};
    least = min(least, v); most = max(most, v);
  }}
  {ctype} low = least.s0, high = most.s0;
  {_lanes(own, lambda s: f"low = min(low, least.{s}); high = max(high, most.{s});")}
  for (; c < {LENGTH}; c++) {{ low = min(low, x[c]); high = max(high, x[c]); }}
  y[0] = sum; y[1] = product; y[2] = ({ring})low; y[3] = ({ring})high;
}}
kernel void copy_{ctype}(global const {ctype} *x, global {ctype} *y) {{
  x += 1 + get_global_id(0) * {LENGTH}; y += get_global_id(0) * {width};
  const {wide} v = convert_{wide}({_load(ctype, width, "x")}) * ({ring})3;
  ((global loose_{ctype}{width} *)y)->v = convert_{ctype}{width}(v);
}}"""


def _integer_checks(ctype: str, dtype: str, ring: str, width: int) -> Iterator[Check]:
    x = _numbers(dtype, 10)
    kind = np.dtype("u8" if ring == "ulong" else "u4")
    rows = x[1:].reshape(ITEMS, LENGTH)
    ringed = rows.astype(kind)
    with np.errstate(over="ignore"):
        sums = [ringed.sum(1, dtype=kind), np.multiply.reduce(ringed | kind.type(1), 1, kind)]
        made = np.stack([*sums, rows.min(1).astype(kind), rows.max(1).astype(kind)], 1)
        tripled = (ringed[:, :width] * kind.type(3)).astype(dtype)
    yield Check(f"fold_{ctype}", [x], ITEMS, 1, made.reshape(-1))
    yield Check(f"copy_{ctype}", [x], ITEMS, 1, tripled.reshape(-1))


def _real_folds(ctype: str, width: int) -> str:
    """Sums free of error, extremes by selection, functions of vectors, pairs taken apart."""
    wide = f"{ctype}{width}"
    half = width // 2
    even = "".join(f"{2 * lane:x}" for lane in range(half))
    odd = "".join(f"{2 * lane + 1:x}" for lane in range(half))
    of = {1: ctype}.get(half, f"{ctype}{half}")
    return f"""kernel void fold_{ctype}(global const {ctype} *x, global {ctype} *y) {{
  x += 1 + get_global_id(0) * {LENGTH}; y += get_global_id(0) * 2;
  {wide} sums = ({wide})(0), low = ({wide})(0), most = ({wide})(-INFINITY);
  int c = 0;
  for (; c + {width} <= {LENGTH}; c += {width}) {{
    const {wide} v = {_load(ctype, width, "x + c")};
    const {wide} t = sums + v; const {wide} z = t - sums;
    low += (sums - (t - z)) + (v - z); sums = t;
    most = (v > most) | (v != v) ? v : most;
  }}
  {ctype} sum = 0, high = -INFINITY;
  {_lanes(width, lambda s: f"sum += sums.{s} + low.{s}; high = max(high, most.{s});")}
  for (; c < {LENGTH}; c++) {{ sum += x[c]; high = max(high, x[c]); }}
  y[0] = sum; y[1] = high;
}}
kernel void functions_{ctype}(global const {ctype} *x, global {ctype} *y) {{
  x += 1 + get_global_id(0) * {LENGTH}; y += get_global_id(0) * {5 * width};
  const {wide} v = {_load(ctype, width, "x")};
  const {wide} size = fabs(v);
  const {wide} given[5] = {{ exp(v), log1p(size), sqrt(size), rsqrt(size), v * v + size }};
  for (int f = 0; f < 5; f++) ((global loose_{ctype}{width} *)(y + f * {width}))->v = given[f];
}}
kernel void pairs_{ctype}(global const {ctype} *x, global {ctype} *y) {{
  x += 1 + get_global_id(0) * {LENGTH}; y += get_global_id(0) * {width};
  const {wide} v = vload{width}(0, x);
  const {of} re = v.{"s" + even}, im = v.{"s" + odd};
  {wide} z; z.{"s" + even} = re - im; z.{"s" + odd} = re + im;
  vstore{width}(z, 0, y);
}}"""


def _real_checks(ctype: str, dtype: str, width: int) -> Iterator[Check]:
    x = np.round(_numbers(dtype, 11) * 1024).astype(dtype) / 1024  # sums of these are exact
    x[x == 0] = 0.5
    rows = x[1:].reshape(ITEMS, LENGTH)
    folds = np.stack([rows.sum(1, dtype="f8"), rows.max(1)], 1).astype(dtype)
    v = rows[:, :width].astype("f8")
    size = np.abs(v)
    made = [np.exp(v), np.log1p(size), np.sqrt(size), 1 / np.sqrt(size), v * v + size]
    turned = np.empty_like(v)
    turned[:, 0::2], turned[:, 1::2] = v[:, 0::2] - v[:, 1::2], v[:, 0::2] + v[:, 1::2]
    functions = np.stack(made, 1).astype(dtype)
    yield Check(f"fold_{ctype}", [x], ITEMS, 1, folds.reshape(-1))
    yield Check(f"functions_{ctype}", [x], ITEMS, 1, functions.reshape(-1), ulp=16)
    yield Check(f"pairs_{ctype}", [x], ITEMS, 1, turned.astype(dtype).reshape(-1))

"""Checks of vectors as long as kernels use them; see ``checks``.

They cover folds over rows, every built-in function that kernels call with vectors, and
conversions, all at unaligned addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_opencl.trial.checks import ITEMS, LENGTH, STRICT, Check, make_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_opencl.trial.checks import Array, Part


# The built-in functions that kernels call with vectors, beside conversions.
WIDE_FUNCTIONS: Final = frozenset(
    {
        *("max", "min", "sqrt", "fabs", "floor", "ceil", "trunc", "rint"),
        *("copysign", "fma", "fmod"),
    }
)

_INTEGERS: Final = {
    "char": ("i1", "uint"),
    "uchar": ("u1", "uint"),
    "short": ("i2", "uint"),
    "ushort": ("u2", "uint"),
    "int": ("i4", "uint"),
    "uint": ("u4", "uint"),
    "long": ("i8", "ulong"),
    "ulong": ("u8", "ulong"),
}
_BYTES: Final = {"uint": 4, "ulong": 8, "float": 4, "double": 8}
_WIDEST: Final = 16
_DOUBLE: Final = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"


def check_vectors(nbytes: int, *, double: bool) -> Part:
    """Return checks of vectors of ``nbytes`` bytes: all but folds of float."""
    texts = [STRICT]
    checks: list[Check] = []
    for ctype, (dtype, ring) in _INTEGERS.items():
        width = min(_WIDEST, nbytes // _BYTES[ring])
        own = min(_WIDEST, nbytes // np.dtype(dtype).itemsize)
        texts += [_declare_loose(ctype, *{width, own})]
        texts += [_write_integer_folds(ctype, ring, width, own)]
        checks += _check_integers(ctype, dtype, ring, width)
    for ctype, dtype in {"float": "f4", "double": "f8"}.items():
        if ctype == "double" and not double:
            continue
        width = nbytes // _BYTES[ctype]
        texts += [_declare_loose(ctype, width), _write_functions(ctype, width)]
        checks += _check_functions(ctype, dtype, width)
    if double:
        texts.insert(0, _DOUBLE)
        texts.append(_write_real_folds("double", nbytes // _BYTES["double"]))
        checks += check_folds("double", "f8", nbytes)[1]
    return "\n".join(texts), checks


def check_folds(ctype: str, dtype: str, nbytes: int) -> Part:
    """Return the check of sums and extremes of vectors of float or double."""
    width = nbytes // _BYTES[ctype]
    text = "\n".join([STRICT, _declare_loose(ctype, width), _write_real_folds(ctype, width)])
    if ctype == "double":
        text = f"{_DOUBLE}\n{text}"
    rows = _make_reals(dtype)[1:].reshape(ITEMS, LENGTH)
    folds = np.stack([rows.sum(1, dtype="f8"), rows.max(1)], 1).astype(dtype)
    return text, [Check(f"fold_{ctype}", [_make_reals(dtype)], ITEMS, 1, folds.reshape(-1))]


def _declare_loose(ctype: str, *widths: int) -> str:
    return "\n".join(
        f"typedef struct __attribute__((packed)) {{ {ctype}{width} v; }} loose_{ctype}{width};"
        for width in widths
    )


def _write_load(ctype: str, width: int, pointer: str) -> str:
    return f"((global const loose_{ctype}{width} *)({pointer}))->v"


def _join_lanes(count: int, join: Callable[[str], str]) -> str:
    """Return statements that join the lanes of a vector, one by one."""
    return " ".join(join(f"s{lane:x}") for lane in range(count))


def _write_integer_folds(ctype: str, ring: str, width: int, own: int) -> str:
    """Return the kernel of sums and products in ``ring``, extremes and copies, from x + 1 on."""
    wide, narrow = f"{ring}{width}", f"{ctype}{own}"
    size = np.dtype(_INTEGERS[ctype][0]).itemsize
    slots = 4 + width * size // _BYTES[ring]  # elements that a work-item writes
    return f"""kernel void fold_{ctype}(global const {ctype} *x, global {ring} *y) {{
  x += 1 + get_global_id(0) * {LENGTH}; y += get_global_id(0) * {slots};
  {wide} sums = ({wide})(0), products = ({wide})(1);
  {narrow} least = {_write_load(ctype, own, "x")}, most = least;
  int c = 0;
  for (; c + {width} <= {LENGTH}; c += {width}) {{
    const {wide} v = convert_{wide}({_write_load(ctype, width, "x + c")});
    sums = sums + v; products = products * (v | ({wide})(1));
  }}
  {ring} sum = 0, product = 1;
  {_join_lanes(width, lambda s: f"sum += sums.{s}; product *= products.{s};")}
  for (; c < {LENGTH}; c++) {{ sum += ({ring})x[c]; product *= ({ring})x[c] | 1; }}
  for (c = 0; c + {own} <= {LENGTH}; c += {own}) {{
    const {narrow} v = {_write_load(ctype, own, "x + c")};
    least = min(least, v); most = max(most, v);
  }}
  {ctype} low = least.s0, high = most.s0;
  {_join_lanes(own, lambda s: f"low = min(low, least.{s}); high = max(high, most.{s});")}
  for (; c < {LENGTH}; c++) {{ low = min(low, x[c]); high = max(high, x[c]); }}
  y[0] = sum; y[1] = product; y[2] = ({ring})low; y[3] = ({ring})high;
  const {wide} tripled = convert_{wide}({_write_load(ctype, width, "x")}) * ({ring})3;
  ((global loose_{ctype}{width} *)(y + 4))->v = convert_{ctype}{width}(tripled);
}}"""


def _check_integers(ctype: str, dtype: str, ring: str, width: int) -> Iterator[Check]:
    x = make_numbers(dtype, 10)
    kind = np.dtype("u8" if ring == "ulong" else "u4")
    rows = x[1:].reshape(ITEMS, LENGTH)
    ringed = rows.astype(kind)
    with np.errstate(over="ignore"):
        sums = [ringed.sum(1, dtype=kind), np.multiply.reduce(ringed | kind.type(1), 1, kind)]
        made = np.stack([*sums, rows.min(1).astype(kind), rows.max(1).astype(kind)], 1)
        tripled = (ringed[:, :width] * kind.type(3)).astype(dtype)
    made = np.concatenate([made, tripled.view(kind)], 1)  # behind one another in memory
    yield Check(f"fold_{ctype}", [x], ITEMS, 1, made.reshape(-1))


def _write_real_folds(ctype: str, width: int) -> str:
    """Return the kernel of compensated sums and extremes."""
    wide = f"{ctype}{width}"
    return f"""kernel void fold_{ctype}(global const {ctype} *x, global {ctype} *y) {{
  x += 1 + get_global_id(0) * {LENGTH}; y += get_global_id(0) * 2;
  {wide} sums = ({wide})(0), low = ({wide})(0), most = ({wide})(-INFINITY);
  int c = 0;
  for (; c + {width} <= {LENGTH}; c += {width}) {{
    const {wide} v = {_write_load(ctype, width, "x + c")};
    const {wide} t = sums + v; const {wide} z = t - sums;
    low += (sums - (t - z)) + (v - z); sums = t;
    most = (v > most) | (v != v) ? v : most;
  }}
  {ctype} sum = 0, high = -INFINITY;
  {_join_lanes(width, lambda s: f"sum += sums.{s} + low.{s}; high = max(high, most.{s});")}
  for (; c < {LENGTH}; c++) {{ sum += x[c]; high = max(high, x[c]); }}
  y[0] = sum; y[1] = high;
}}"""


def _write_functions(ctype: str, width: int) -> str:
    """Return the kernel of functions."""
    wide = f"{ctype}{width}"
    return f"""kernel void functions_{ctype}(global const {ctype} *x, global {ctype} *y) {{
  x += 1 + get_global_id(0) * {LENGTH}; y += get_global_id(0) * {8 * width};
  const {wide} v = {_write_load(ctype, width, "x")};
  const {wide} size = fabs(v);
  const {wide} results[8] = {{
    sqrt(size), floor(v), ceil(v), trunc(v), rint(v), copysign(size + 1, v), fma(v, v, size),
    fmod(v, size + 1)
  }};
  for (int f = 0; f < 8; f++) ((global loose_{ctype}{width} *)(y + f * {width}))->v = results[f];
}}"""


def _make_reals(dtype: str) -> Array:
    """Return numbers whose sums are exact."""
    x = np.round(make_numbers(dtype, 11) * 1024).astype(dtype) / 1024
    x[x == 0] = 0.5
    return x


def _check_functions(ctype: str, dtype: str, width: int) -> Iterator[Check]:
    x = _make_reals(dtype)
    v = x[1:].reshape(ITEMS, LENGTH)[:, :width].astype("f8")
    size = np.abs(v)
    made = [np.sqrt(size), np.floor(v), np.ceil(v), np.trunc(v), np.rint(v)]
    made += [np.copysign(size + 1, v), v * v + size, np.fmod(v, size + 1)]
    functions = np.stack(made, 1).astype(dtype)
    yield Check(f"functions_{ctype}", [x], ITEMS, 1, functions.reshape(-1), ulp=16)

"""Random numbers: one work-item per block of Philox4x32-10, which writes the block's numbers.

As forms, on 2^20 elements, random bits and uniform numbers take 2.1 times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorplug.algorithms import box_muller
from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts, philox
from tensorplug_opencl.codegen.templates import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch

kernels = calls.Kernels()


class _Recipe(NamedTuple):
    """The computation of a work-item from the words ``w`` (uint4) of its block.

    ``values``: a C expression for each element. ``before``: the statements before them.
    ``functions``: the C functions that they call.
    """

    values: Sequence[str]
    before: str = ""
    functions: str = ""


_WORDS: Final = ("w.x", "w.y", "w.z", "w.w")
_LONGS: Final = ("upsample(w.y, w.x)", "upsample(w.w, w.z)")  # the second word is the upper half


def _draw(
    name: str,
    recipe: _Recipe,
    start: int,
    backend: OpenedDevice,
    out: TensorType,
    arrays: Sequence[Array] = (),
    **sizes: int,
) -> Launch:
    """Return the launch (key, arrays, out) that draws by ``recipe``, which may use ``sizes``."""
    ctype, count = ctypes.kept(out.dtype), len(recipe.values)
    values = [f"({ctype})({ctypes.narrow(out.dtype, value)})" for value in recipe.values]
    rest = "\n".join(f"  if (at + {k} < n) y[at + {k}] = v{k};" for k in range(count))
    stored = f"vstore{count}(({ctype}{count})({', '.join(f'v{k}' for k in range(count))}), i, y)"
    whole = f"  if (at + {count} <= n) {{ {stored}; return; }}\n" if count > 1 else ""
    return calls.launch_sized(
        backend.runtime,
        f"{name} {out.dtype}",
        [Array("key", "uint"), *arrays, Array("y", ctype, written=True)],
        {"items": -(-out.size // count), "n": out.size, **sizes},
        "\n".join(
            [
                "  const uint4 w = philox(start + i, vload4(0, key));",
                f"  const index_t at = i * {count};",
                recipe.before,
                *(f"  const {ctype} v{k} = {value};" for k, value in enumerate(values)),
                whole + rest,
            ]
        ),
        index=layouts.index_dtype(out.size),
        declarations=philox.PHILOX + recipe.functions,
        constants=[("ulong", "start", np.uint64(start))],
    )


@kernels.write(specs.RANDOM_BITS)
def random_bits(key: TensorType, *, start: int, backend: OpenedDevice, out: TensorType) -> Launch:
    return _draw("RandomBits", _Recipe(_WORDS), start, backend, out)


@kernels.write(specs.RANDOM_UNIFORM)
def random_uniform(
    key: TensorType, *, start: int, backend: OpenedDevice, out: TensorType
) -> Launch:
    if out.dtype is dt.float64:
        values = [f"convert_double({word} >> 11) * {2.0**-53!r}" for word in _LONGS]
    else:
        kept = out.dtype.significand
        values = [f"convert_float({w} >> {32 - kept}) * {(2.0**-kept).hex()}f" for w in _WORDS]
    return _draw("RandomUniform", _Recipe(values), start, backend, out)


@kernels.write(specs.RANDOM_EXPONENTIAL)
def random_exponential(
    key: TensorType, *, start: int, backend: OpenedDevice, out: TensorType
) -> Launch:
    words = _LONGS if out.dtype is dt.float64 else _WORDS
    functions = philox.define_variates(box_muller.precision(out.dtype))
    recipe = _Recipe([f"minus_log({word}).x" for word in words], functions=functions)
    return _draw("RandomExponential", recipe, start, backend, out)


@kernels.write(specs.RANDOM_NORMAL)
def random_normal(
    key: TensorType, *, start: int, backend: OpenedDevice, out: TensorType
) -> Launch:
    words = _LONGS if out.dtype is dt.float64 else _WORDS
    pairs = [f"z{at}" for at in range(0, len(words), 2)]
    before = "\n".join(
        f"  const T2 {pair} = normals({radius}, {angle});"
        for pair, radius, angle in zip(pairs, words[0::2], words[1::2], strict=True)
    )
    values = [f"{pair}.{part}" for pair in pairs for part in "xy"]
    functions = philox.define_variates(box_muller.precision(out.dtype))
    return _draw("RandomNormal", _Recipe(values, before, functions), start, backend, out)


# floor(w * span / 2**(2 * bits)), w of two words of so many bits; a span of 0 is 2**bits.
_SCALED: Final = {
    dt.uint32: """
uint scaled(uint lower, uint upper, uint span) {
  const ulong wide = span ? span : 1ul << 32;
  return (uint)((upper * wide + (lower * wide >> 32)) >> 32);
}""",
    dt.uint64: """
ulong scaled(ulong lower, ulong upper, ulong span) {
  const ulong below = upper * span;
  const ulong carried = below + mul_hi(lower, span) < below;
  return span ? mul_hi(upper, span) + carried : upper;
}""",
}


@kernels.write(specs.RANDOM_INTEGERS)
def random_integers(
    key: TensorType, span: TensorType, *, start: int, backend: OpenedDevice, out: TensorType
) -> Launch:
    ctype = ctypes.stored(out.dtype)
    halves = [_LONGS] if out.dtype is dt.uint64 else [_WORDS[:2], _WORDS[2:]]
    values = [
        f"scaled({lower}, {upper}, span[min(at + {k}, n - 1) * step])"
        for k, (lower, upper) in enumerate(halves)
    ]
    recipe, spans = _Recipe(values, functions=_SCALED[out.dtype]), [Array("span", ctype)]
    step = int(span.rank > 0)  # one span for all elements, or one for each
    return _draw("RandomIntegers", recipe, start, backend, out, spans, step=step)

"""Fourier transforms of rows: Stockham's passes, and Bluestein's for large primes.

A pass over all rows transforms R points at a time in registers, after products with twiddle
factors from a table. Neighbouring work-items read neighbouring numbers, and the results need no
reordering. A length with a large prime factor becomes a convolution with a chirp, whose length is
a power of two.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, complex_functions, ctypes, layouts, templates, vectors
from tensorplug_opencl.fourier.butterflies import factorize, write_butterfly

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime

_RUN: Final = 2048  # elements that one work-item of a CPU computes
_HEAVY_RUN: Final = 32  # elements from which on a work-item counts as heavy
_PER_ITEM: Final = 4  # elements of long runs that one of a GPU does
_LONG_RUN: Final = 128


@lru_cache(maxsize=64)
def compute_circle(n: int) -> np.ndarray[Any, Any]:
    """Return exp(-2 pi i k / n) for k below n, correctly rounded but for the last bit."""
    angle = 2 * np.arange(n, dtype=np.longdouble) / n * np.arccos(np.longdouble(-1))
    return np.asarray(np.cos(angle) - 1j * np.sin(angle), np.complex128)


def upload_table(
    backend: OpenedDevice, values: np.ndarray[Any, Any], dtype: DType
) -> DeviceBuffer:
    """Return constants on the device, for a plan to keep."""
    return backend.from_host(np.ascontiguousarray(values).astype(dtype.numpy))


def transform(
    backend: OpenedDevice, type_: TensorType, *, inverse: bool = False, scale: float = 1.0
) -> Call:
    """Return the transform along the last axis of ``type_`` (not empty), times ``scale``."""
    n = type_.shape[-1]
    if n == 1:
        return lambda x: x
    radices = factorize(n)
    if radices is None:
        return _transform_by_bluestein(backend, type_, inverse=inverse, scale=scale)
    steps: list[Call] = []
    done = 1
    for radix in radices:
        last = done * radix == n
        stage = _Pass(type_, radix, done, inverse, scale if last else 1.0)
        steps.append(_prepare_pass(backend, stage))
        done *= radix

    def run(x: DeviceBuffer) -> DeviceBuffer:
        for step in steps:
            x = step(x)
        return x

    return run


class _Pass(NamedTuple):
    """A pass over rows, which joins ``radix`` transforms of ``done`` points each."""

    type: TensorType
    radix: int
    done: int
    inverse: bool
    scale: float


def _prepare_pass(backend: OpenedDevice, stage: _Pass) -> Call:
    runtime, dtype, n = backend.runtime, stage.type.dtype, stage.type.shape[-1]
    across = n // stage.radix
    lanes = _choose_lanes(runtime, stage, across) if runtime.is_cpu else 1
    items = stage.type.size // stage.radix // lanes
    index = layouts.index_dtype(stage.type.size)
    text = _write_source(stage, lanes, index)
    numbers = [*map(index.type, (items, across // lanes, stage.done))]
    part = np.dtype(f"f{dtype.itemsize // 2}")
    if stage.scale != 1.0:
        numbers.append(part.type(stage.scale))
    heavy = lanes > 1
    if stage.done == 1:
        return calls.make_producer(
            runtime, stage.type, runtime.launch(text, 2, numbers, items, heavy=heavy)
        )
    powers = np.outer(np.arange(1, stage.radix), np.arange(stage.done))
    twiddles = upload_table(backend, compute_circle(stage.radix * stage.done)[powers], dtype)
    launch = runtime.launch(text, 3, numbers, items, heavy=heavy)
    return calls.make_producer(runtime, stage.type, lambda x, y: launch(x, twiddles, y))


def _choose_lanes(runtime: Runtime, stage: _Pass, across: int) -> int:
    """Return how many neighbouring transforms are read, turned and written as vectors.

    A vector in memory holds both parts of their numbers.
    """
    lanes = vectors.choose_lanes(runtime, complex_functions.pair_type(stage.type.dtype)[:-1]) // 2
    while across % lanes or (stage.done != 1 and stage.done % lanes):
        lanes //= 2
    return lanes


def _write_source(stage: _Pass, lanes: int, index: templates.Index) -> str:
    """Return the program of a pass; its constants are items, items of a row, done and scale.

    The inverse exchanges the parts of all numbers: the forward transform of i times the conjugate
    is i times the conjugate of the result.
    """
    ctype = complex_functions.pair_type(stage.type.dtype)
    part, radix = ctype[:-1], stage.radix
    points = [(f"a{r}", f"b{r}") for r in range(radix)]
    body = [
        "  const index_t i = get_global_id(0);",
        "  if (i >= items) return;",
        f"  const index_t row = i / across, j = i % across * {lanes};",
        f"  const index_t step = across * {lanes};",
        f"  x += row * step * {radix} + j;",
    ]
    first = stage.done == 1
    if first:
        body.append(f"  y += row * step * {radix} + j * {radix};")
    else:
        body.append("  const index_t k = j % done;")
        body.append(f"  y += row * step * {radix} + (j - k) * {radix} + k;")
    for r, (re, im) in enumerate(points):
        body.append(f"  V {re}, {im};\n  LOAD({re}, {im}, x + {r} * step)")
        if r and not first:
            body.append(f"  TURN({re}, {im}, w + {r - 1} * done + k)")
    lines, results = write_butterfly(points)
    body.extend(lines)
    for r, (re, im) in enumerate(results):
        by = "" if stage.scale == 1.0 else " * scale"
        parts = f"({re}){by}, ({im}){by}"
        body.append(
            f"  SCATTER({parts}, y + {r}, {radix})"
            if first
            else f"  STORE({parts}, y + {r} * done)"
        )
    arrays = [templates.Array("x", ctype), templates.Array("y", ctype, written=True)]
    if not first:
        arrays.insert(1, templates.Array("w", ctype))
    scaled = [] if stage.scale == 1.0 else [f"const {part} scale"]
    sense = "back" if stage.inverse else "forth"
    return templates.write_program(
        f"FFT {radix} of {stage.type.dtype} {sense}, {'first' if first else 'then'}",
        arrays,
        [*templates.declare_indices("items", "across", "done"), *scaled],
        "\n".join(body),
        index=index,
        declarations=_write_access(part, lanes, inverse=stage.inverse),
    )


def _write_access(part: str, lanes: int, *, inverse: bool) -> str:
    """Return the macros that read and write ``lanes`` numbers as vectors of their parts."""
    re, im = ("even", "odd") if lanes > 1 else ("x", "y")
    first, second = (im, re) if inverse else (re, im)
    wide, vector = f"{part}{2 * lanes}", f"{part}{lanes if lanes > 1 else ''}"
    load = f"vload{2 * lanes}(0, (global const {part} *)({{}}))"
    positions = range(lanes)
    lane = [f"z_.s{2 * at:x}{2 * at + 1:x}" for at in positions]
    scatter = " ".join(f"(to)[{at} * (by)] = {lane[at]};" for at in positions)
    return f"""typedef {part} E;
typedef {vector} V;
#define LOAD(re, im, from) {{ const {wide} z_ = {load.format("from")}; \\
  re = z_.{first}; im = z_.{second}; }}
#define TURN(re, im, from) {{ const {wide} z_ = {load.format("from")}; \\
  const V t_ = re * z_.{re} - im * z_.{im}; im = re * z_.{im} + im * z_.{re}; re = t_; }}
#define JOIN(re, im) {wide} z_; z_.{first} = re; z_.{second} = im;
#define STORE(re, im, to) {{ JOIN(re, im) vstore{2 * lanes}(z_, 0, (global {part} *)(to)); }}
#define SCATTER(re, im, to, by) {{ JOIN(re, im) {scatter} }}"""


def element_type(dtype: DType) -> str:
    """Return the C type of an element, real or complex."""
    return complex_functions.pair_type(dtype) if dtype in dt.COMPLEX else ctypes.stored(dtype)


def launch_rows(
    backend: OpenedDevice,
    title: str,
    out: TensorType,
    arrays: list[tuple[str, str]],
    declarations: str,
    expression: str,
    **numbers: int,
) -> Launch:
    """Return the launch that writes ``expression`` of ``row`` and ``k`` to each of ``out``.

    ``arrays``: (name, C type) of the arrays that it reads; ``numbers``: constants, by name.
    """
    ctype = element_type(out.dtype)
    index = layouts.index_dtype(out.size, *(number for number in numbers.values()))
    length = out.shape[-1]
    text = templates.write_program(
        title,
        [
            *(templates.Array(*array) for array in arrays),
            templates.Array("y", ctype, written=True),
        ],
        templates.declare_indices("items", "length", "pieces", "first", "span", "step", *numbers),
        f"""  const index_t item = get_global_id(0);
  if (item >= items) return;
  const index_t row = item / pieces, begin = item % pieces * first;
  const index_t end = min(length, begin + span);
  y += row * length;
  for (index_t k = begin; k < end; k += step)
    y[k] = {expression};""",
        index=index,
        declarations=declarations,
    )
    pieces = _cut_pieces(backend.runtime, length)
    items = out.size // length * pieces.number
    constants = [*map(index.type, (items, length, *pieces, *numbers.values()))]
    return backend.runtime.launch(text, len(arrays) + 1, constants, items, heavy=pieces.heavy)


class _Pieces(NamedTuple):
    """How rows are shared out: work-item p of each takes elements from ``p * first`` on.

    They are ``step`` apart, and below ``p * first + span``.
    """

    number: int
    first: int
    span: int
    step: int

    @property
    def heavy(self) -> bool:
        """Return whether work-items do so much that groups should be small."""
        return self.span // self.step > _HEAVY_RUN


def _cut_pieces(runtime: Runtime, length: int) -> _Pieces:
    """Return the pieces of rows: neighbours on a CPU, interleaved on a GPU."""
    if runtime.is_cpu:
        span = min(length, _RUN)
        return _Pieces(-(-length // span), span, span, 1)
    count = -(-length // _PER_ITEM) if length >= _LONG_RUN else length
    return _Pieces(count, 1, length, count)


def _transform_by_bluestein(
    backend: OpenedDevice, type_: TensorType, *, inverse: bool, scale: float
) -> Call:
    """Transform through j k = (j^2 + k^2 - (k - j)^2) / 2, a convolution with a chirp."""
    dtype, n = type_.dtype, type_.shape[-1]
    squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    chirp = compute_circle(2 * n)[squares]
    if inverse:
        chirp = chirp.conj()
    length = 1 << (2 * n - 2).bit_length()
    kernel = np.zeros(length, np.complex128)
    kernel[:n] = chirp.conj()
    kernel[length - n + 1 :] = chirp[:0:-1].conj()
    long = TensorType(dtype, (*type_.shape[:-1], length))
    steps = [
        _multiply_rows(backend, type_, long, chirp),
        transform(backend, long),
        _multiply_rows(backend, long, long, np.fft.fft(kernel) / length),
        transform(backend, long, inverse=True),
        _multiply_rows(backend, long, type_, chirp * scale),
    ]

    def run(x: DeviceBuffer) -> DeviceBuffer:
        for step in steps:
            x = step(x)
        return x

    return run


def _multiply_rows(
    backend: OpenedDevice, source: TensorType, out: TensorType, by: np.ndarray[Any, Any]
) -> Call:
    """Return a callable that multiplies each row by ``by``, cut or padded with zeros."""
    ctype = complex_functions.pair_type(out.dtype)
    launch = launch_rows(
        backend,
        f"rows of {out.dtype} times a table",
        out,
        [("x", ctype), ("w", ctype)],
        complex_functions.define("times(x)", out.dtype),
        "k < filled ? times(x[row * width + k], w[k]) : (A)(0, 0)",
        width=source.shape[-1],
        filled=min(source.shape[-1], out.shape[-1]),
    )
    factors_ = upload_table(backend, by, out.dtype)
    return calls.make_producer(backend.runtime, out, lambda x, y: launch(x, factors_, y))

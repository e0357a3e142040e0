"""Fourier transforms along the last axis.

An even number of real ones is transformed as half as many complex ones, pairs of neighbours; a
further program splits the spectrum afterwards, or joins it before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug_opencl.codegen import calls, complex_functions, ctypes
from tensorplug_opencl.fourier import transforms
from tensorplug_opencl.kernels import bitcasting

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


@kernels.prepare(specs.FFT)
def fft(input: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
    """Transform forwards."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    return transforms.transform(backend, input)


@kernels.prepare(specs.IFFT)
def ifft(input: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
    """Transform backwards; the factor is applied in the last pass."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    return transforms.transform(backend, input, inverse=True, scale=1 / input.shape[-1])


@kernels.prepare(specs.RFFT)
def rfft(input: TensorType, *, fft_length: int, backend: OpenedDevice, out: TensorType) -> Call:
    """Transform n real numbers: as n / 2 complex ones if n is even."""
    if input.dtype.compute is not input.dtype:
        raise KernelRefusedError(f"there is no complex type of {input.dtype}")
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    if not input.size:
        return calls.make_zeros(backend.runtime, out)
    if fft_length % 2:
        return _transform_odd(input, fft_length, backend, out)
    lead, half = input.shape[:-1], fft_length // 2
    reals = TensorType(input.dtype, (*lead, fft_length))
    sized = _resize(backend, input, reals)
    packed = TensorType(out.dtype, (*lead, half))
    # A view may begin within a pair of numbers.
    as_complex = bitcasting.bitcast(reals, dtype=out.dtype, backend=backend, out=packed)
    whole = transforms.transform(backend, packed)
    ctype = complex_functions.pair_type(out.dtype)
    launch = transforms.launch_rows(
        backend,
        f"RFFT to {out.dtype}",
        out,
        [("x", ctype), ("w", ctype)],
        f"{complex_functions.define('times(x)', out.dtype)}\n{_SPLIT}",
        "split(x[row * half_length + (k == half_length ? 0 : k)],"
        " x[row * half_length + (k ? half_length - k : 0)], w[k])",
        half_length=half,
    )
    turns = transforms.upload_table(
        backend, transforms.compute_circle(fft_length)[: half + 1], out.dtype
    )
    split = calls.make_producer(backend.runtime, out, lambda x, y: launch(x, turns, y))

    def run(x: DeviceBuffer) -> DeviceBuffer:
        return split(whole(as_complex(sized(x))))

    return run


# The spectrum of x from that of z[j] = x[2 j] + i x[2 j + 1]: symmetry separates those of both
# halves, and the second one is turned.
_SPLIT = """
A split(A z, A mirrored, A turn) {
  const A even = (A)(z.x + mirrored.x, z.y - mirrored.y) / 2;
  const A odd = (A)(z.y + mirrored.y, mirrored.x - z.x) / 2;
  return even + times(odd, turn);
}"""
# And back; imaginary parts that real signals do not have are ignored.
_JOIN = """
A joined(A z, A mirrored, A turn) {
  const A even = (A)(z.x + mirrored.x, z.y - mirrored.y) / 2;
  const A odd = times((A)(z.x - mirrored.x, z.y + mirrored.y) / 2, (A)(turn.x, -turn.y));
  return (A)(even.x - odd.y, even.y + odd.x);
}
A at(global const A *x, ulong k, ulong have, ulong half_length, int even) {
  const A z = k < have ? x[k] : (A)(0, 0);
  return k == 0 || (even && k == half_length) ? (A)(z.x, 0) : z;
}"""


def _transform_odd(
    input: TensorType, fft_length: int, backend: OpenedDevice, out: TensorType
) -> Call:
    lead = input.shape[:-1]
    ctype = complex_functions.pair_type(out.dtype)
    whole = TensorType(out.dtype, (*lead, fft_length))
    widen = transforms.launch_rows(
        backend,
        f"rows of {input.dtype} as {out.dtype}",
        whole,
        [("x", ctypes.stored(input.dtype))],
        "",
        f"k < filled ? ({ctype})(x[row * width + k], 0) : ({ctype})(0, 0)",
        width=input.shape[-1],
        filled=min(input.shape[-1], fft_length),
    )
    first = calls.make_producer(backend.runtime, whole, widen)
    transform = transforms.transform(backend, whole)
    cut = _resize(backend, whole, out)
    return lambda x: cut(transform(first(x)))


def _resize(backend: OpenedDevice, source: TensorType, out: TensorType) -> Call:
    """Return ``source`` with the last axis of ``out``, cut or filled up with zeros."""
    if source.shape == out.shape:
        return lambda x: x
    ctype = transforms.element_type(out.dtype)
    launch = transforms.launch_rows(
        backend,
        f"rows of {ctype} resized",
        out,
        [("x", ctype)],
        "",
        f"k < filled ? x[row * width + k] : ({ctype})(0)",
        width=source.shape[-1],
        filled=min(source.shape[-1], out.shape[-1]),
    )
    return calls.make_producer(backend.runtime, out, launch)


@kernels.prepare(specs.IRFFT)
def irfft(input: TensorType, *, fft_length: int, backend: OpenedDevice, out: TensorType) -> Call:
    """Join the spectrum of n / 2 complex numbers, if n is even; transform it back."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    if not input.size:
        return calls.make_zeros(backend.runtime, out)
    lead, even = out.shape[:-1], fft_length % 2 == 0
    points = fft_length // 2 if even else fft_length
    packed = TensorType(input.dtype, (*lead, points))
    ctype = complex_functions.pair_type(input.dtype)
    numbers = {"width": input.shape[-1], "half_length": fft_length // 2}
    have = min(input.shape[-1], fft_length // 2 + 1)
    read = "at(x + row * width, {}, have, half_length, " + f"{int(even)})"
    declarations = f"{complex_functions.define('times(x)', input.dtype)}\n{_JOIN}"
    if even:
        expression = f"joined({read.format('k')}, {read.format('half_length - k')}, w[k])"
    else:
        mirrored = f"({read.format('length - k')} * (A)(1, -1))"
        expression = f"k <= half_length ? {read.format('k')} : {mirrored}"
    launch = transforms.launch_rows(
        backend,
        f"IRFFT of {input.dtype}, {'even' if even else 'odd'}",
        packed,
        [("x", ctype), *([("w", ctype)] if even else [])],
        declarations,
        expression,
        have=have,
        **numbers,
    )
    turns = transforms.upload_table(
        backend, transforms.compute_circle(fft_length)[:points], input.dtype
    )
    join = calls.make_producer(
        backend.runtime,
        packed,
        (lambda x, y: launch(x, turns, y)) if even else launch,
    )
    transform = transforms.transform(backend, packed, inverse=True, scale=1 / points)
    if even:

        def run(x: DeviceBuffer) -> DeviceBuffer:
            return transform(join(x)).reinterpret(out.dtype, out.shape)

        return run
    part = calls.make_producer(
        backend.runtime,
        out,
        transforms.launch_rows(
            backend,
            f"real parts of {input.dtype}",
            out,
            [("x", ctype)],
            "",
            "x[row * length + k].x",
        ),
    )
    return lambda x: part(transform(join(x)))

"""Maxima and minima by index: atomic maxima of keys.

A key is an unsigned integer. Keys are ordered as the numbers are, or in reverse for a minimum. The
key of NaN is the largest; 0 is neutral. So the result does not depend on the order in which
work-items run. Sums and products are decomposed: sums into ScatterNd, and there is no atomic
product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import DType, KernelRefusedError, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.kernels.scattering import Targets

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime

kernels = KernelTable()

_RAISE: Final = {
    "uint": "atomic_max(target, key);",
    "ulong": """ulong old = 0, known;  // the first exchange reads it
    do {
      known = old;
      if (known >= key) break;
      old = atom_cmpxchg(target, known, key);
    } while (old != known);""",
}
_ATOMICS64: Final = "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable"


@kernels.prepare(specs.TENSOR_SCATTER_REDUCE, dtypes=dt.REAL)
def tensor_scatter_reduce(
    tensor: TensorType,
    indices: TensorType,
    updates: TensorType,
    *,
    reduction: str,
    include_self: bool,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Raise the key of each element, then read the numbers back."""
    if reduction not in ("max", "min"):
        raise KernelRefusedError(f"it finds maxima and minima; {reduction!r} is decomposed")
    if not updates.size:
        return lambda tensor, _indices, _updates: tensor
    runtime = backend.runtime
    key = _choose_key(runtime, out.dtype)
    targets = Targets.of(indices, updates, tensor.shape)
    make_keys = runtime.prepare_empty(TensorType(key, out.shape))
    make_touched = runtime.prepare_empty(TensorType(dt.uint8, (targets.rows,)))
    neutral, untouched = calls.make_element(0, key), calls.make_element(0, dt.uint8)
    functions = _define_keys(out.dtype, smallest=reduction == "min")
    find = _launch_raise(runtime, targets, updates, key, functions)
    read = _launch_read(runtime, targets, out, functions, include_self=include_self)

    def write(
        tensor: DeviceBuffer, indices: DeviceBuffer, updates: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        keys, touched = make_keys(), make_touched()
        runtime.fill(keys, neutral)
        runtime.fill(touched, untouched)
        find(indices, updates, keys, touched)
        read(tensor, keys, touched, result)

    return calls.make_producer(runtime, out, write)


def _choose_key(runtime: Runtime, dtype: DType) -> DType:
    if dtype.itemsize < 8:
        return dt.uint32
    if not runtime.has_atomics64:
        raise KernelRefusedError(f"the device has no atomic operations for {dtype}")
    return dt.uint64


def _define_keys(dtype: DType, *, smallest: bool) -> str:
    """Return the C types ``K`` and ``V``, and the functions ``key_of(V)`` and ``value_of(K)``."""
    wide = dtype.itemsize == 8
    value, key = ctypes.computed(dtype), "ulong" if wide else "uint"
    signed, turn = "long" if wide else "int", "~" if smallest else ""
    sign = "((K)1 << 63)" if wide else "((K)1 << 31)"
    if dtype.kind == "float":
        body = f"""K key_of(V v) {{
  const K bits = as_{key}(v);
  const K key = bits & {sign} ? ~bits : bits | {sign};
  return v != v ? ~(K)0 : {turn}key;
}}
V value_of(K k) {{
  const K key = {turn}k;
  return k == ~(K)0 ? (V)NAN : as_{value}(key & {sign} ? key ^ {sign} : ~key);
}}"""
    elif dtype in dt.SIGNED:
        body = f"""K key_of(V v) {{ return {turn}((K)({signed})v ^ {sign}); }}
V value_of(K k) {{ return (V)({signed})({turn}k ^ {sign}); }}"""
    else:
        body = f"""K key_of(V v) {{ return {turn}(K)v; }}
V value_of(K k) {{ return (V)({turn}k); }}"""
    pragma = f"{_ATOMICS64}\n" if wide else ""
    return f"{pragma}typedef {key} K;\ntypedef {value} V;\n{body}"


def _launch_raise(
    runtime: Runtime, targets: Targets, updates: TensorType, key: DType, functions: str
) -> Launch:
    """Return the launch that raises the keys of all elements, and marks their rows."""
    reach = targets.rows * targets.inner
    return targets.launch_by_element(
        runtime,
        f"raise {updates.dtype} by {targets.indices.dtype}",
        updates,
        [Array("keys", ctypes.stored(key), written=True), Array("touched", "uchar", written=True)],
        f"""    volatile global K *target = keys + element;
    const K key = key_of((V)updates[i]);
    {_RAISE[ctypes.stored(key)]}
    touched[row] = 1;""",
        index=layouts.index_dtype(updates.size, reach, targets.indices.size),
        declarations=functions,
    )


def _launch_read(
    runtime: Runtime, targets: Targets, out: TensorType, functions: str, *, include_self: bool
) -> Launch:
    """Return the launch that joins the keys with the old elements."""
    stored = ctypes.stored(out.dtype)
    # Intel's compiler for CPUs takes ~max(a, ~b) of unsigned integers for max(~a, b).
    join = "  if (key_of((V)x[i]) > key) key = key_of((V)x[i]);\n" if include_self else ""
    return calls.launch_sized(
        runtime,
        f"read keys of {out.dtype}",
        [
            Array("x", stored),
            Array("keys", "ulong" if out.dtype.itemsize == 8 else "uint"),
            Array("touched", "uchar"),
            Array("y", stored, written=True),
        ],
        {"items": out.size, "inner": targets.inner},
        f"  K key = keys[i];\n{join}  y[i] = touched[i / inner] ? ({stored})value_of(key) : x[i];",
        index=layouts.index_dtype(out.size),
        declarations=functions,
    )

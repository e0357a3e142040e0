"""Groups through llvmlite, with vectors of any width: a function of NumPy arrays.

All memory that a kernel is to write is full of numbers that would show in its outputs.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops import statements as st
from tensorplug_loops.dialects.llvm import write
from tensorplug_loops.machine import Machine
from tensorplug_loops.schedule import plan


def machine(vector_bytes, *, masked=True):
    return Machine(vector_bytes=vector_bytes, masked=masked, narrow=frozenset({"float16"}))


def _full(dtype):
    return float("nan") if dtype in dt.FLOATING else 1 if dtype is dt.bool_ else dtype.max


def dirtied(kernel):
    """Return a kernel that fills each item's own memory at its beginning."""
    body = []
    for number, statement in enumerate(kernel.body):
        body.append(statement)
        if isinstance(statement, st.Shared):
            index, dtype = f"dirty{number}", statement.dtype
            store = st.Store(statement.name, st.variable(index), ex.constant(_full(dtype), dtype))
            ends = (ex.constant(at, dt.int64) for at in (0, statement.length))
            body.append(st.Loop(index, *ends, (store,)))
    return replace(kernel, body=tuple(body))


def load(text):
    """Return the engine of a module, and the address of its function."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    options = {"cpu": llvm.get_host_cpu_name(), "features": features, "opt": 1}
    module = llvm.parse_assembly(text)
    module.verify()
    builder = llvm.create_pass_builder(
        target.create_target_machine(**options), llvm.create_pipeline_tuning_options(1)
    )
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, target.create_target_machine(**options))
    engine.finalize_object()
    return engine, engine.get_function_address("run")


def compile_group(group, vector_bytes=32, *, masked=True):
    types = [each.type for each in group.outputs]

    def compiled(*arrays):
        found = run(group, machine(vector_bytes, masked=masked), arrays)
        pairs = zip(found, types, strict=True)
        return [own[: type_.size].reshape(type_.shape) for own, type_ in pairs]

    return compiled


def run(group, described, arrays, strip=4):
    """Return the outputs of a group, each of one axis, and as long as whole strips."""
    return run_program(plan(group, described), arrays, strip)


def run_program(program, arrays, strip=1):
    """Return the outputs of a program, likewise."""

    def empty(dtype, size):
        return np.full(-(-size // strip) * strip, _full(dtype), dtype.numpy)

    outputs = [empty(type_.dtype, type_.size) for type_ in program.outputs]
    buffers = [*map(np.ascontiguousarray, arrays), *outputs]
    buffers += [empty(dtype, size) for dtype, size in program.temporaries]
    for launch in program.launches:
        _, address = load(write(dirtied(launch.kernel)))
        pointers = [buffers[number].ctypes.data for number in launch.arrays]
        block = [0, launch.items, 1, *pointers, *launch.numbers]
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        function((ctypes.c_int64 * len(block))(*block))
    return outputs

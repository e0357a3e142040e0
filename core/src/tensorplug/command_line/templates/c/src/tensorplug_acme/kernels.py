"""The kernels of the library's table; those of a new row need nothing here."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from tensorplug.plugin import KernelTable, RegistrationError, Shape, TensorType, specs

from tensorplug_acme.backend import Box, owned
from tensorplug_acme.library import DTYPES, NAME, check, ffi, lib

kernels = KernelTable()
_SPECS: Final = {spec.name: spec for spec in specs}


@kernels.register(specs.IDENTITY)
def identity(x: Box) -> Box:
    """Return the same memory."""
    return x


@kernels.register(specs.RESHAPE)
def reshape(x: Box, *, out: TensorType) -> Box:
    """Return the same memory in another shape."""
    return Box(x.handle, out)


def _steps(shape: Shape, seen: Shape) -> list[int]:
    """Return the strides of a dense tensor that is read in the shape ``seen``."""
    dense = [*accumulate(reversed(shape), int.__mul__, initial=1)][-2::-1] if shape else []
    steps = [0 if length == 1 else step for length, step in zip(shape, dense, strict=True)]
    return [*[0] * (len(seen) - len(shape)), *(steps if shape != seen else dense)]


def _tensors(types: Sequence[TensorType], seen: Shape | None) -> tuple[Any, list[Any]]:
    """Return an array of ``tp_tensor``, and what must live as long."""
    rows, kept = [], []
    for each in types:
        shape = each.shape if seen is None else seen
        lists = [ffi.new("int64_t[]", list(x)) for x in (shape, _steps(each.shape, shape))]
        kept += lists
        rows.append((ffi.NULL, (0, 0), len(shape), DTYPES[each.dtype], *lists, 0))
    return ffi.new("tp_tensor[]", rows), kept


def _numbers(attribute: Any) -> Iterator[tuple[int, float]]:
    """Return all numbers of an attribute; an integer wraps to 64 bits."""
    if isinstance(attribute, tuple):
        for each in attribute:
            yield from _numbers(each)
    else:
        whole = int(attribute) if math.isfinite(attribute) else 0
        yield (whole + 2**63) % 2**64 - 2**63, float(attribute)


def _register(row: Any) -> None:
    name, names = (ffi.string(text).decode() for text in (row.name, row.attributes))
    spec, asked = _SPECS.get(name), names.split()
    if spec is None:
        raise RegistrationError(f"{NAME}: tp_kernels has {name!r}, which is no kernel")
    variadic = any(each.variadic for each in spec.declared)
    if row.n_inputs != (expected := -1 if variadic else len(spec.input_names)):
        raise RegistrationError(f"{NAME}: {name} has {expected} inputs, not {row.n_inputs}")
    together = spec.elementwise or spec is specs.BROADCAST_TO

    def prepare(*inputs: Any, backend: Any, out: Any, **given: Any) -> Callable[..., Any]:
        types = inputs[0] if variadic else inputs
        outs = out if isinstance(out, tuple) else (out,)
        read, kept = _tensors(types, outs[0].shape if together else None)
        written, also = _tensors(outs, None)
        numbers = [number for each in asked for number in _numbers(given[each])]
        attributes = ffi.new("tp_number[]", numbers)
        call = ffi.new(
            "tp_call *", (len(types), len(outs), len(numbers), read, written, attributes)
        )
        made = ffi.new("tp_program **")
        check(lib.tp_program_new(backend.opened, row, call, made))
        del kept, also  # the library has copied the call
        program, queue = owned(made), backend.queue
        launch, free = lib.tp_launch, lib.tp_buffer_free

        def run(*boxes: Any) -> Any:
            taken = boxes[0] if variadic else boxes
            results = ffi.new("tp_buffer *[]", len(outs))
            handles = ffi.new("tp_buffer *[]", [box.handle for box in taken])
            check(launch(queue, program, handles, results))
            found = [Box(ffi.gc(results[at], free), each) for at, each in enumerate(outs)]
            return found if isinstance(out, tuple) else found[0]

        return run

    parameter = inspect.Parameter
    prepare.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(parameter(each, parameter.POSITIONAL_OR_KEYWORD) for each in spec.input_names),
            *(parameter(each, parameter.KEYWORD_ONLY) for each in (*asked, "backend", "out")),
        ]
    )
    kernels.prepare(spec)(prepare)


_row = lib.tp_kernels()
while _row.name:
    _register(_row)
    _row += 1

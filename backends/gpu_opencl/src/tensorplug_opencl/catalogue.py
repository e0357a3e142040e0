"""All kernel tables: those of this package, found by a walk over its modules, and forms.

Forms say what a kernel computes as loops (``tensorplug_loops.forms``); ``FORMS`` names those that
are as fast as kernels written by hand.
Kernels in a table called ``complex_kernels`` serve complex numbers; kernels of the same names in
other tables serve all other dtypes. The kernels named in ``pairs.PAIRED`` serve both.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import (
    KernelEntry,
    KernelRefusedError,
    KernelTable,
    RegistrationError,
    TensorType,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.kernels import kernel_table
from tensorplug_opencl import kernels, pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from tensorplug_loops.templates import Sized
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.memory.buffers import DeviceBuffer


FORMS: Final = frozenset(
    {
        *("Range", "LinSpace", "Eye", "Diag", "Triangle", "MatrixBandPart"),
        *("GatherV2", "GatherNd", "OneHot"),
        *("TensorScatterUpdate", "TensorScatterReduce", "SparseToDense"),
        *("MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D", "Pool", "MaxPoolWithArgmax"),
        *("MaxPoolGrad", "MaxPool3DGrad", "AvgPoolGrad", "AvgPool3DGrad"),
        *("Dilation2D", "Dilation2DBackpropInput", "Dilation2DBackpropFilter"),
        *("Conv2D", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropInputV2", "FusedConv2D"),
        *("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"),
        *("DepthwiseConv2dNative", "FusedDepthwiseConv2D", "LRN", "LRNGrad"),
        *("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
        *("CropAndResize", "Transform", "RotateWithOffset"),
        *("ResizeBilinear", "ResizeBilinearGrad", "ResizeNearestNeighborGrad"),
        *("Sum", "Prod", "Mean", "Max", "Min", "Any", "All", "ArgMax", "ArgMin"),
        *("Cumsum", "Cumprod"),
        *("Transpose", "BroadcastTo", "Slice", "StridedSlice", "DynamicSlice"),
        *("BatchMatMul", "_FusedMatMul", "QuantizedMatMul"),
        *("Tile", "Repeat", "Reverse", "FlipLeftRight", "MirrorPad", "PadV2"),
        *("BatchToSpaceND", "SpaceToBatchND", "DepthToSpace", "SpaceToDepth"),
        "StridedSliceGrad",
        *("Cast", "Select"),
        # Arithmetic, comparison, elementary functions, bits.
        *(
            spec.name
            for spec in specs
            if spec.expression_rule is not None
            and len(spec.input_names) in {1, 2}
            and not spec.attributes
            and spec is not specs.IDENTITY
        ),
    }
)


class _Joined(KernelTable):
    """A table of entries that exist already."""

    def __init__(self, entries: Iterable[KernelEntry]) -> None:
        super().__init__()
        for entry in entries:
            self._add(entry)


def collect_tables() -> list[KernelTable]:
    """Return the tables called ``kernels`` of every family module, joined with complex ones."""
    for_complex = {
        entry.spec.name: entry for table in _find_tables("complex_kernels") for entry in table
    }
    by_hand = _find_tables("kernels")
    made = kernel_table(_compile, own=by_hand, upload=_upload, sized=True)
    tables = [*by_hand, _Joined(entry for entry in made if entry.spec.name in FORMS)]
    joined: list[KernelTable] = [
        _Joined(_add_complex(entry, for_complex) for entry in table) for table in tables
    ]
    known = {entry.spec.name for table in joined for entry in table}
    alone = [entry for name, entry in for_complex.items() if name not in known]
    return [*joined, _Joined(_join(None, entry) for entry in alone)]


def _compile(backend: OpenCLBackend, form: Sized) -> Callable[..., list[DeviceBuffer]] | None:
    return backend.compile_form(form)


def _upload(backend: OpenCLBackend, table: NDArray[Any]) -> DeviceBuffer:
    return backend.runtime.upload_table(table)


def _find_tables(name: str) -> list[KernelTable]:
    names = sorted(info.name for info in pkgutil.iter_modules(kernels.__path__))
    modules = [importlib.import_module(f"{kernels.__name__}.{module}") for module in names]
    tables = [vars(module).get(name) for module in modules]
    return [table for table in tables if isinstance(table, KernelTable)]


def _add_complex(entry: KernelEntry, for_complex: dict[str, KernelEntry]) -> KernelEntry:
    """Return ``entry``, joined with the kernel for complex numbers if there is one."""
    other = for_complex.get(entry.spec.name)
    if entry.spec.name in pairs.PAIRED:
        if other is not None:
            raise RegistrationError(f"{entry.spec.name} has two kernels for complex numbers")
        other = pairs.serve_by_pairs(entry)
    return entry if other is None else _join(entry, other)


def _join(real: KernelEntry | None, other: KernelEntry) -> KernelEntry:
    """Return one kernel from two: ``other`` if a type is complex, ``real`` if not."""
    asks = tuple(dict.fromkeys((*(real.asks if real else ()), *other.asks, "out")))

    def prepare(*types: Any, **arguments: Any) -> Callable[..., Any]:
        chosen = other if _has_complex((*types, arguments["out"])) else real
        if chosen is None:
            raise KernelRefusedError("it serves complex numbers only")
        dtypes = {type_.dtype for type_ in _flatten((*types, arguments["out"]))}
        if chosen.dtypes is not None and not dtypes <= chosen.dtypes:
            lacking = ", ".join(sorted(dtype.name for dtype in dtypes - chosen.dtypes))
            raise KernelRefusedError(f"it does not take {lacking}")
        asked = {name: arguments[name] for name in chosen.asks}
        return pairs.prepare_entry(chosen, list(types), asked)

    return replace(other, function=prepare, prepares=True, asks=asks, dtypes=None)


def _flatten(types: Iterable[Any]) -> list[TensorType]:
    """Return the types, including those in lists, without absent inputs."""
    flat: list[TensorType] = []
    for type_ in types:
        if isinstance(type_, list | tuple):
            flat.extend(type_)
        elif type_ is not None:
            flat.append(type_)
    return flat


def _has_complex(types: Iterable[Any]) -> bool:
    return any(type_.dtype in dt.COMPLEX for type_ in _flatten(types))

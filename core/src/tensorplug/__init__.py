"""tensorplug: tensors whose hardware is a plugin.

This distribution holds ops, gradients and the engine. Backends are distributions of their own::

    pip install tensorplug-cpu        # or tensorplug-opencl, or anybody else's

    import tensorplug as tp
    tp.asarray([1.0, 2.0]) * 3
"""

from __future__ import annotations

from importlib import import_module
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any

from tensorplug import errors, losses, nn
from tensorplug.array_api import namespace
from tensorplug.array_api.dtype_queries import can_cast, finfo, iinfo, isdtype, result_type
from tensorplug.autodiff.grad import grad, stop_gradient, value_and_grad, vjp
from tensorplug.contract.dtypes import (
    DType,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tensorplug.contract.dtypes import bool_ as bool  # the array API standard's name
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.context import set_default_engine
from tensorplug.dispatch.tensor import Tensor
from tensorplug.memory.scopes import dispose, keep, memory, tidy
from tensorplug.ops import (
    accumulation,
    arrangement,
    bitwise,
    blocks,
    broadcasting,
    classification,
    comparison,
    complexes,
    contraction,
    coordinates,
    counting,
    covariance,
    creation,
    cumulative,
    diagonals,
    elementwise,
    interpolation,
    matrix_products,  # tp.linalg is the submodule
    missing_values,
    movement,
    powers,
    quantiles,
    reduction,
    rounding,
    searching,
    sets,
    sorting,
    statistics,
    trigonometry,
)
from tensorplug.ops.accumulation import *
from tensorplug.ops.arrangement import *
from tensorplug.ops.bitwise import *
from tensorplug.ops.blocks import *
from tensorplug.ops.broadcasting import *
from tensorplug.ops.classification import *
from tensorplug.ops.comparison import *
from tensorplug.ops.complexes import *
from tensorplug.ops.contraction import *
from tensorplug.ops.coordinates import *
from tensorplug.ops.counting import *
from tensorplug.ops.covariance import *
from tensorplug.ops.creation import *
from tensorplug.ops.cumulative import *
from tensorplug.ops.diagonals import *
from tensorplug.ops.elementwise import *
from tensorplug.ops.fft import spectral
from tensorplug.ops.image import resizing
from tensorplug.ops.indexing import indexing, slicing
from tensorplug.ops.indexing.indexing import *
from tensorplug.ops.indexing.slicing import *
from tensorplug.ops.interpolation import *
from tensorplug.ops.linalg import norms
from tensorplug.ops.matrix_products import *
from tensorplug.ops.missing_values import *
from tensorplug.ops.movement import *
from tensorplug.ops.nn import (
    activation,
    gaussian_error,
    layer_normalization,
    normalization,
    sigmoid_linear,
)
from tensorplug.ops.nn.convolution import (
    convolution,
    depthwise,
    dilated_pooling,
    morphology,
    pooling,
)
from tensorplug.ops.powers import *
from tensorplug.ops.quantiles import *
from tensorplug.ops.reduction import *
from tensorplug.ops.rounding import *
from tensorplug.ops.searching import *
from tensorplug.ops.sets import *
from tensorplug.ops.sorting import *
from tensorplug.ops.statistics import *
from tensorplug.ops.trigonometry import *
from tensorplug.plugins.backends import (
    describe_device,
    devices,
    find_backend,
    get_backend,
    register_backend,
    remove_backend,
    set_backend,
    synchronize,
    trim_memory,
    use_backend,
)
from tensorplug.plugins.registration import (
    copy_registered_kernels,
    explain,
    kernels_for,
    register_decomposition,
    register_gradient,
    register_kernel,
    run_kernel,
    unregister_gradient,
    unregister_kernel,
)
from tensorplug.tensors import chaining
from tensorplug.tensors.interchange import from_dlpack
from tensorplug.tensors.tree import tree_map
from tensorplug.tensors.variable import Variable, dispose_variables

if TYPE_CHECKING:
    from tensorplug import fft, image, linalg, ragged, random, signal, sparse, strings, train
    from tensorplug.array_api.info import NamespaceInfo
    from tensorplug.autodiff.checkpointing import checkpoint
    from tensorplug.autodiff.custom_gradients import custom_grad
    from tensorplug.autodiff.derivatives import hessian, jacobian, jvp
    from tensorplug.autodiff.variable_gradients import variable_grads
    from tensorplug.compile.functions import compile
    from tensorplug.observers.debugging import debug
    from tensorplug.observers.dispatch_tracing import trace_dispatch
    from tensorplug.observers.profiler import profile
    from tensorplug.observers.timing import time
    from tensorplug.plugins.discovery import BackendInfo
    from tensorplug.tensors.files import load, save

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "DType",
    "KernelSpec",
    "Tensor",
    "TensorType",
    "Variable",
    "backends",
    "bool",
    "can_cast",
    "checkpoint",
    "compile",
    "complex64",
    "complex128",
    "copy_registered_kernels",
    "custom_grad",
    "debug",
    "describe_device",
    "devices",
    "dispose",
    "dispose_variables",
    "e",
    "errors",
    "explain",
    "fft",
    "find_backend",
    "finfo",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "get_backend",
    "grad",
    "hessian",
    "iinfo",
    "image",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "jacobian",
    "jvp",
    "keep",
    "kernels_for",
    "linalg",
    "load",
    "losses",
    "memory",
    "nan",
    "newaxis",
    "nn",
    "pi",
    "profile",
    "ragged",
    "random",
    "register_backend",
    "register_decomposition",
    "register_gradient",
    "register_kernel",
    "remove_backend",
    "result_type",
    "run_kernel",
    "save",
    "set_backend",
    "signal",
    "sparse",
    "stop_gradient",
    "string",
    "strings",
    "synchronize",
    "tidy",
    "time",
    "trace_dispatch",
    "train",
    "tree_map",
    "trim_memory",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unregister_gradient",
    "unregister_kernel",
    "use_backend",
    "value_and_grad",
    "variable_grads",
    "vjp",
]
__all__ += accumulation.__all__
__all__ += arrangement.__all__
__all__ += bitwise.__all__
__all__ += blocks.__all__
__all__ += broadcasting.__all__
__all__ += classification.__all__
__all__ += comparison.__all__
__all__ += complexes.__all__
__all__ += contraction.__all__
__all__ += coordinates.__all__
__all__ += counting.__all__
__all__ += covariance.__all__
__all__ += creation.__all__
__all__ += cumulative.__all__
__all__ += diagonals.__all__
__all__ += elementwise.__all__
__all__ += indexing.__all__
__all__ += interpolation.__all__
__all__ += matrix_products.__all__
__all__ += missing_values.__all__
__all__ += movement.__all__
__all__ += powers.__all__
__all__ += quantiles.__all__
__all__ += reduction.__all__
__all__ += rounding.__all__
__all__ += searching.__all__
__all__ += sets.__all__
__all__ += slicing.__all__
__all__ += sorting.__all__
__all__ += statistics.__all__
__all__ += trigonometry.__all__

newaxis = None
__array_api_version__ = namespace.VERSION


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  # the array API standard's name
    """Return what answers an array API consumer's questions about devices and dtypes."""
    from tensorplug.array_api.info import NamespaceInfo  # seldom asked for

    return NamespaceInfo()


def backends() -> list[BackendInfo]:
    """Return the installed backends: name, distribution, version, state and detail.

    It reads the metadata of installed distributions and imports no plugin.
    """
    from tensorplug.plugins import discovery  # reading metadata is no work for import time

    return discovery.backends()


def _default_engine() -> Any:
    from tensorplug.plugins.assembly import build_engine  # pluggy is loaded at first use

    return build_engine()


set_default_engine(_default_engine)
for _family in (
    activation,
    arrangement,
    bitwise,
    blocks,
    broadcasting,
    classification,
    comparison,
    complexes,
    contraction,
    convolution,
    coordinates,
    counting,
    creation,
    cumulative,
    depthwise,
    diagonals,
    dilated_pooling,
    elementwise,
    gaussian_error,
    indexing,
    layer_normalization,
    matrix_products,
    morphology,
    missing_values,
    movement,
    normalization,
    norms,
    pooling,
    powers,
    quantiles,
    reduction,
    resizing,
    rounding,
    searching,
    sets,
    sigmoid_linear,
    slicing,
    sorting,
    spectral,
    statistics,
    trigonometry,
):
    chaining.attach(chaining.chained_in(_family))
del _family


# Loaded when they are first asked for: together they would cost a third of the import.
_LATE_MODULES = (
    "fft",
    "image",
    "linalg",
    "ragged",
    "random",
    "signal",
    "sparse",
    "strings",
    "train",
)
_LATE = {
    "checkpoint": "autodiff.checkpointing",
    "compile": "compile.functions",
    "custom_grad": "autodiff.custom_gradients",
    "debug": "observers.debugging",
    "hessian": "autodiff.derivatives",
    "jacobian": "autodiff.derivatives",
    "jvp": "autodiff.derivatives",
    "load": "tensors.files",
    "profile": "observers.profiler",
    "save": "tensors.files",
    "time": "observers.timing",
    "trace_dispatch": "observers.dispatch_tracing",
    "variable_grads": "autodiff.variable_gradients",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):  # asked for by Python itself
            raise AttributeError(f"module 'tensorplug' has no attribute {name!r}", name=name)
        if name in _LATE_MODULES:
            return import_module(f"tensorplug.{name}")
        if name in _LATE:
            value = globals()[name] = getattr(import_module(f"tensorplug.{_LATE[name]}"), name)
            return value
        from importlib.util import find_spec

        from tensorplug.introspection.spellings import ELSEWHERE, missing

        # An import asks here before it loads a module; no need to gather all names for that.
        if name not in ELSEWHERE and find_spec(f"tensorplug.{name}") is not None:
            raise AttributeError(f"module 'tensorplug.{name}' is not loaded", name=name)

        ours = {item: item for item in __all__}
        late = [import_module(f"tensorplug.{late_module}") for late_module in _LATE_MODULES]
        for module in (nn, losses, *late):
            part = module.__name__.partition(".")[2]
            ours.update((item, f"{part}.{item}") for item in module.__all__ if item not in ours)
        raise missing(name, ours)

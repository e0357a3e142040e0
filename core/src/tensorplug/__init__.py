"""tensorplug: tensors whose hardware is a plugin.

This distribution holds ops, gradients and the engine. Backends are distributions of their own::

    pip install tensorplug-cpu        # or tensorplug-opencl, or anybody else's

    import tensorplug as tp
    tp.asarray([1.0, 2.0]) * 3

The names here are derived: functions by walking the families in ``tensorplug.ops`` and
``tensorplug.library``, all others from the imports below. ``__init__.pyi`` declares them;
``make docs`` writes it.
"""

import pkgutil as _pkgutil
import sys as _sys
from importlib import import_module as _import_module
from math import e, inf, nan, pi
from types import ModuleType as _ModuleType

from tensorplug import (
    errors,
    fft,
    image,
    linalg,
    losses,
    nn,
    ragged,
    random,
    signal,
    sparse,
    special,
    strings,
)
from tensorplug.array_api.dtype_queries import can_cast, finfo, iinfo, isdtype, result_type
from tensorplug.array_api.info import __array_namespace_info__
from tensorplug.autodiff.grad import grad, stop_gradient, value_and_grad, vjp
from tensorplug.contract.dtypes import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    string,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tensorplug.contract.dtypes import bool_ as bool  # the array API standard's name
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.context import set_default_engine as _set_default_engine
from tensorplug.dispatch.tensor import Tensor
from tensorplug.introspection import families as _families
from tensorplug.introspection import tracebacks as _tracebacks
from tensorplug.memory.scopes import dispose, keep, memory, tidy
from tensorplug.ops.default_integers import in_public as _in_public
from tensorplug.plugins.backends import (
    backends,
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
from tensorplug.plugins.kernel_calls import explain, run_kernel
from tensorplug.plugins.registration import (
    copy_registered_kernels,
    kernels_for,
    register_decomposition,
    register_gradient,
    register_kernel,
    unregister_gradient,
    unregister_kernel,
)
from tensorplug.system.distributions import EXTENSIONS as _EXTENSIONS
from tensorplug.tensors import foreign_members as _foreign_members
from tensorplug.tensors import generator as _generator
from tensorplug.tensors import methods as _methods
from tensorplug.tensors.array_namespace import VERSION as __array_api_version__
from tensorplug.tensors.call_hints import hinting_all as _hinting_all
from tensorplug.tensors.importing import from_dlpack
from tensorplug.tensors.tree import tree_map
from tensorplug.tensors.tree_nodes import register_tree, static_field, unregister_tree
from tensorplug.tensors.variable import Variable, dispose_variables

__version__ = "0.1.0"
newaxis = None
_PARTS = (fft, image, linalg, losses, nn, ragged, random, signal, sparse, special, strings)

# Loaded when they are first asked for, from these modules: few programs need them.
_LATE = {
    "algorithms": "",
    "associative_scan": "compile.control.associative",
    "autocast": "engine.autocast",
    "checkpoint": "autodiff.checkpointing",
    "compile": "compile.functions",
    "cond": "compile.control.flow",
    "custom_grad": "autodiff.custom_gradients",
    "debug": "observers.debugging",
    "einops": "",
    "fori_loop": "compile.control.flow",
    "hessian": "autodiff.derivatives",
    "jacfwd": "autodiff.directional",
    "jacobian": "autodiff.derivatives",
    "jacrev": "autodiff.derivatives",
    "jvp": "autodiff.directional",
    "linearize": "compile.linearization",
    "load": "tensors.files",
    "map": "compile.control.flow",
    "plugin": "",
    "profile": "observers.profiler",
    "save": "tensors.files",
    "scan": "compile.control.flow",
    "switch": "compile.control.flow",
    "testing": "",
    "time": "observers.timing",
    "trace_dispatch": "observers.dispatch_tracing",
    "variable_grads": "autodiff.variable_gradients",
    "while_loop": "compile.control.flow",
    "vmap": "mapping.vmap",
}

# Folders of the core are not attributes of the package: `tensorplug.compile` is the function. Once
# imported, a folder never sets its name here again.
for _info in _pkgutil.iter_modules(__path__):
    if _info.ispkg and _info.name not in _LATE.keys() - {"compile"}:
        _import_module(f"tensorplug.{_info.name}")
for _name, _value in list(globals().items()):
    if isinstance(_value, _ModuleType) and hasattr(_value, "__path__") and _name[0] != "_":
        del globals()[_name]

globals().update(_families.public(""))
_methods.attach_parts()
for _, _family in _families.families():
    _methods.attach(_methods.find_chained(_family))
_foreign_members.attach()
_tracebacks.install()
_names = sorted({*(name for name in globals() if not name.startswith("_")), *_LATE})

_hinting_all(globals(), _names)


def _default_engine():
    from tensorplug.plugins.assembly import build_engine  # pluggy is loaded at first use

    return build_engine()


_set_default_engine(_default_engine)


def __dir__():
    return _sys.modules[__name__].__all__


def __getattr__(name):
    if name in _LATE:
        module = _import_module(f"tensorplug.{_LATE[name] or name}")
        _tracebacks.hide_from_pytest()
        globals()[name] = getattr(module, name) if _LATE[name] else module
        _hinting_all(globals(), [name])
        return globals()[name]
    if name == "__all__":  # with what the installed extensions bring: reads their metadata
        from tensorplug.plugins import parts

        globals()[name] = sorted({*_names, *parts.installed()})
        return globals()[name]
    if name in _EXTENSIONS:
        return _find(name, globals())
    if name.startswith("__"):  # asked for by Python itself
        raise AttributeError(f"module 'tensorplug' has no attribute {name!r}", name=name)
    from importlib.util import find_spec

    from tensorplug.introspection import spellings  # only where a name is missing

    if find_spec(f"tensorplug.{name}") is not None:  # `import` asks here, and then finds it itself
        raise AttributeError(
            f"tensorplug.{name} is a part of the core, not a public name", name=name
        )
    raise spellings.missing(__name__, name)


def _find(name, names, part=""):
    """Put what an extension brings to a public module, such as ``part``, into its names."""
    from tensorplug.plugins import parts

    found = parts.find(f"{part}{name}")
    if isinstance(found, _ModuleType):
        _make_public(found, f"tensorplug.{name}")
    names[name] = _in_public(found)
    _hinting_all(names, [name])
    return names[name]


def _late_in(names, module):
    """Return the ``__getattr__`` of a public module: what extensions bring, else a hint."""
    part = f"{module.partition('.')[2]}."
    own = names.pop("__all__")

    def late(name):
        if name == "__all__":
            from tensorplug.plugins import parts

            names[name] = sorted({*own, *parts.installed(part)})
            return names[name]
        if part + name in _EXTENSIONS:
            return _find(name, names, part)
        from tensorplug.introspection import spellings  # only where a name is missing

        raise spellings.missing(module, name)

    return late


def _late_in_generator(generator, name):
    if f"random.{name}" in _EXTENSIONS:
        from tensorplug.plugins import parts

        _generator.attach(_in_public(parts.find(f"random.{name}")))
        return getattr(generator, name)
    from tensorplug.introspection import spellings  # only where a name is missing

    raise spellings.missing_method(generator, random.__name__, name)


def _names_in_generator(generator):
    from tensorplug.plugins import parts

    return {*object.__dir__(generator), *parts.installed("random.")}


def _listed(module):
    """Return the ``__dir__`` of a public module: completion offers public names alone."""
    return lambda: module.__all__


def _make_public(module, name):
    """Let a module hint at misspelt names and arguments, and list public names alone."""
    _hinting_all(vars(module), module.__all__)
    module.__dir__ = _listed(module)
    module.__getattr__ = _late_in(vars(module), name)


for _info in _PARTS:
    _make_public(_info, _info.__name__)
random.Generator.__getattr__ = _late_in_generator
random.Generator.__dir__ = _names_in_generator

"""All that the author of a plugin imports: a backend's, an extension's, a conformance suite's.

``__all__`` is the contract. Within one major version its names keep their meaning; names are only
added. ``tensorplug.algorithms`` holds what several backends compute in the same way; it may change
with a minor version. All else in ``tensorplug``, apart from the public functions, may move.

===================  =============================================================================
what                 names
===================  =============================================================================
hooks                ``hookimpl`` marks the functions that tensorplug calls
tables               ``KernelTable``, ``RuleTable``, ``DecompositionTable``; ``tables_of``;
                     ``GradientTable``, ``TangentTable`` and ``BatchingTable``, parts of a
                     ``RuleTable`` under older names
backend              ``Backend``, ``DeviceInfo``, ``Capabilities`` and the protocols behind them
specs                ``specs.CONV2D``; ``KernelSpec``, ``Attribute``, ``TensorType`` for your own
rules of specs       ``attributes``, ``inference``, ``shapes``, ``Windows``, ``expressions``
whole programs       ``programs``: the data and the protocols of compilers of graphs
compilers            ``groups``, the language of loops, of which ``Group``, ``GroupInput``,
                     ``Reduction`` and ``GroupOutput`` are names here as well;
                     ``disk_cache``, ``BuildNotice``
dtypes               ``dtypes``, ``DType``, ``narrowing``
running ops          ``dispatch``, ``as_tensor``, ``tensor_from_buffer``, ``Tensor``, ``chained``
errors               every class in ``tensorplug.errors``, a public module of its own; ``warn``;
                     ``pip_install`` for hints; ``failures``: the protocols of how devices fail
memory, forks        ``live_objects``: to list what uses it; ``Lock``: free in a forked child
arguments            ``arguments``, ``kinds``, ``host_values``, ``default_integers``, ``as_key``:
                     for functions that are composed of others
state                ``compiled_state``: what objects hold between calls of compiled functions
files                ``scratch_file``: a file that replaces another one when it is complete
===================  =============================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tensorplug import algorithms, errors, ops
from tensorplug.contract import (
    arguments,
    attributes,
    dtypes,
    expressions,
    failures,
    inference,
    narrowing,
    shapes,
)
from tensorplug.contract.backend import (
    Backend,
    BindsConstants,
    Buffer,
    CompilesGroups,
    CountsBuffers,
    DeviceInfo,
    ExchangesDeviceMemory,
    ExclusiveBuffer,
    FlushesSubnormals,
    GuidesAuthors,
    LimitsBuffers,
    Measures,
    OverwritesBuffers,
    ReusesMemory,
    SharesHostMemory,
    SurvivesFork,
    Trims,
    Widens,
)
from tensorplug.contract.capabilities import Capabilities
from tensorplug.contract.dtypes import DType, Scalar
from tensorplug.contract.entries import DecompositionEntry, KernelEntry
from tensorplug.contract.expressions import Expression
from tensorplug.contract.families import modules_of, tables_of
from tensorplug.contract.in_place import InPlace
from tensorplug.contract.shapes import Shape
from tensorplug.contract.spec import (
    REQUIRED,
    UNKNOWN,
    Attribute,
    InputTypes,
    KernelSpec,
    TensorType,
)
from tensorplug.contract.specs import Specs
from tensorplug.contract.windows import Window, Windows
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_multiple
from tensorplug.dispatch.locks import Lock
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import *
from tensorplug.memory.live_objects import live_objects
from tensorplug.ops import default_integers, kinds
from tensorplug.ops.random.random import as_key
from tensorplug.system.distributions import pip_install
from tensorplug.system.notices import warn
from tensorplug.tensors import compiled_state, tree
from tensorplug.tensors.importing import tensor_from_buffer

if TYPE_CHECKING:
    from tensorplug.contract import groups, programs
    from tensorplug.contract.groups import (
        Group,
        GroupInput,
        GroupOutput,
        Reduction,
    )
    from tensorplug.contract.hooks import hookimpl
    from tensorplug.contract.rule_entries import BatchingEntry, GradientEntry, TangentEntry
    from tensorplug.contract.rules import BatchingTable, GradientTable, RuleTable, TangentTable
    from tensorplug.contract.tables import DecompositionTable, KernelTable
    from tensorplug.engine.build_notice import BuildNotice
    from tensorplug.system import child_processes, disk_cache
    from tensorplug.tensors.scratch_files import scratch_file

__all__ = [
    "REQUIRED",
    "UNKNOWN",
    "Attribute",
    "Backend",
    "BatchingEntry",
    "BatchingTable",
    "BindsConstants",
    "Buffer",
    "BuildNotice",
    "Capabilities",
    "CompilesGroups",
    "CountsBuffers",
    "DType",
    "DecompositionEntry",
    "DecompositionTable",
    "DeviceInfo",
    "ExchangesDeviceMemory",
    "ExclusiveBuffer",
    "Expression",
    "FlushesSubnormals",
    "GuidesAuthors",
    "LimitsBuffers",
    "GradientEntry",
    "GradientTable",
    "Group",
    "GroupInput",
    "GroupOutput",
    "InPlace",
    "InputTypes",
    "KernelEntry",
    "KernelSpec",
    "KernelTable",
    "Lock",
    "Measures",
    "OverwritesBuffers",
    "Reduction",
    "ReusesMemory",
    "RuleTable",
    "Scalar",
    "Shape",
    "SharesHostMemory",
    "SurvivesFork",
    "TangentEntry",
    "TangentTable",
    "Tensor",
    "TensorType",
    "Trims",
    "Widens",
    "Window",
    "Windows",
    "arguments",
    "as_key",
    "as_tensor",
    "attributes",
    "chained",
    "child_processes",
    "compiled_state",
    "default_integers",
    "disk_cache",
    "dispatch",
    "dispatch_multiple",
    "dtypes",
    "expressions",
    "failures",
    "groups",
    "hookimpl",
    "host_values",
    "inference",
    "kinds",
    "live_objects",
    "narrowing",
    "pip_install",
    "programs",
    "scratch_file",
    "shapes",
    "specs",
    "tables_of",
    "tensor_from_buffer",
    "tree",
    "warn",
    *errors.__all__,
]


def _specs() -> dict[str, KernelSpec]:
    return {
        name: value
        for module in modules_of(ops)
        for name, value in vars(module).items()
        if isinstance(value, KernelSpec)
    }


specs: Specs = Specs(_specs)
"""Every kernel spec of the core: ``specs.CONV2D``."""

# Loaded when first asked for, from these modules: `tensorplug.library` needs none of them.
_LATE: Final = {
    "BatchingEntry": "contract.rule_entries",
    "BatchingTable": "contract.rules",
    "BuildNotice": "engine.build_notice",
    "DecompositionTable": "contract.tables",
    "GradientEntry": "contract.rule_entries",
    "GradientTable": "contract.rules",
    "Group": "contract.groups",
    "GroupInput": "contract.groups",
    "GroupOutput": "contract.groups",
    "KernelTable": "contract.tables",
    "Reduction": "contract.groups",
    "RuleTable": "contract.rules",
    "TangentEntry": "contract.rule_entries",
    "TangentTable": "contract.rules",
    "child_processes": "system",
    "disk_cache": "system",
    "groups": "contract",
    "hookimpl": "contract.hooks",
    "programs": "contract",
    "scratch_file": "tensors.scratch_files",
}


def __getattr__(name: str) -> Any:
    if name in algorithms.__all__:  # as in version 0.1
        from warnings import warn as warn_of  # only for plugins of that time

        text = f"tensorplug.plugin.{name} has moved: import it from tensorplug.algorithms"
        warn_of(text, DeprecationWarning, stacklevel=2)
        return getattr(algorithms, name)
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    module = import_module(f"tensorplug.{_LATE[name]}")
    globals()[name] = vars(module).get(name) or import_module(f"{module.__name__}.{name}")
    return globals()[name]

"""All that the author of a plugin imports: a backend's, an extension's, a conformance suite's.

``__all__`` is the contract. Within one major version its names keep their meaning; names are only
added. Everything else in ``tensorplug``, apart from the package's public functions, may move.

===================  =============================================================================
what                 names
===================  =============================================================================
hooks                ``hookimpl`` marks the functions that tensorplug calls
tables               ``KernelTable``, ``RuleTable``, ``DecompositionTable``; ``tables_of``;
                     ``GradientTable``, ``TangentTable`` and ``BatchingTable``, parts of a
                     ``RuleTable`` under older names
backend              ``Backend``, ``DeviceInfo``, ``Capabilities`` and the protocols behind them
specs                ``specs.CONV2D``; ``KernelSpec``, ``Attribute``, ``TensorType`` for your own
rules of specs       ``attributes``, ``inference``, ``shapes``, ``windows``, ``expressions``
compilers            ``Group``, with ``GroupInput``, ``Reduction`` and ``GroupOutput``;
                     ``lift_constants``, ``disk_cache``, ``BuildNotice``
dtypes               ``dtypes``, ``DType``, ``narrowing``
running ops          ``dispatch``, ``as_tensor``, ``tensor_from_buffer``, ``Tensor``, ``chained``
errors               every class in ``tensorplug.errors``; ``warn``, and ``pip_install`` for hints
memory, forks        ``live_objects``: to list what uses it; ``Lock``: free in a forked child
algorithms           what several backends compute in the same way, such as ``philox``
===================  =============================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tensorplug import errors, host_functions, ops
from tensorplug.contract import (
    arguments,
    attributes,
    dtypes,
    expressions,
    inference,
    narrowing,
    shapes,
    windows,
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
    Measures,
    OverwritesBuffers,
    ReusesMemory,
    SharesHostMemory,
    SurvivesFork,
    Trims,
    Widens,
)
from tensorplug.contract.capabilities import Capabilities
from tensorplug.contract.distributions import pip_install
from tensorplug.contract.dtypes import DType, Scalar
from tensorplug.contract.entries import DecompositionEntry, KernelEntry
from tensorplug.contract.expressions import Expression
from tensorplug.contract.families import modules_of, tables_of
from tensorplug.contract.groups import (
    Group,
    GroupInput,
    GroupOutput,
    Reduction,
    lift_constants,
)
from tensorplug.contract.rule_entries import BatchingEntry, GradientEntry, TangentEntry
from tensorplug.contract.rules import BatchingTable, GradientTable, RuleTable, TangentTable
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
from tensorplug.contract.tables import DecompositionTable, KernelTable
from tensorplug.contract.windows import Window, Windows, channel_axis, spatial_axes
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_multiple
from tensorplug.dispatch.locks import Lock
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.build_notice import BuildNotice
from tensorplug.engine.notices import warn
from tensorplug.errors import *
from tensorplug.memory.live_objects import live_objects
from tensorplug.ops import contraction_order, default_integers, error_function, kinds
from tensorplug.ops.arrangement import match_ranks
from tensorplug.ops.blocks import (
    cells_first_permutation,
    plan_depth_rearrangement,
    split_spatial_axes,
)
from tensorplug.ops.image import fill_modes
from tensorplug.ops.image.pixels import CHANNELS as PIXEL_CHANNELS
from tensorplug.ops.image.pixels import OPAQUE as PIXEL_OPAQUE
from tensorplug.ops.image.pixels import levels as pixel_levels
from tensorplug.ops.image.resizing import Taps, bilinear_taps, nearest_pixels
from tensorplug.ops.image.warping import rotation_sources
from tensorplug.ops.indexing.indexing import scatter_depth
from tensorplug.ops.indexing.slicing import Selection, selection
from tensorplug.ops.nn.activation import SELU_ALPHA, SELU_SCALE
from tensorplug.ops.nn.convolution.convolution import FAMILY as CONVOLUTION_2D
from tensorplug.ops.nn.convolution.correlation import Family as ConvolutionFamily
from tensorplug.ops.nn.convolution.correlation import windows_of as convolution_windows
from tensorplug.ops.nn.convolution.depthwise import FAMILY as CONVOLUTION_DEPTHWISE
from tensorplug.ops.nn.convolution.dilated_pooling import pool_geometry as dilated_pooling_windows
from tensorplug.ops.nn.convolution.morphology import windows_of as dilation_windows
from tensorplug.ops.nn.convolution.pooling import geometry as pooling_windows
from tensorplug.ops.nn.convolution.volumes import FAMILY as CONVOLUTION_3D
from tensorplug.ops.nn.fused import channel_broadcast_shape
from tensorplug.ops.nn.gaussian_error import CUBIC as GELU_CUBIC
from tensorplug.ops.nn.gaussian_error import REACH as GELU_REACH
from tensorplug.ops.nn.sigmoid_linear import REACH as SILU_REACH
from tensorplug.ops.random import box_muller, philox
from tensorplug.ops.random.random import KEY as RANDOM_KEY
from tensorplug.ops.random.random import as_key
from tensorplug.ops.random.random import halves as key_halves
from tensorplug.ops.special import (
    bessel_formulas,
    gamma_formulas,
    incomplete_beta_formulas,
    incomplete_gamma_formulas,
    normal_formulas,
)
from tensorplug.tensors import tree
from tensorplug.tensors.importing import tensor_from_buffer

if TYPE_CHECKING:
    from tensorplug.contract import elementary
    from tensorplug.contract.hooks import hookimpl
    from tensorplug.engine import child_processes, disk_cache

__all__ = [
    "CONVOLUTION_2D",
    "CONVOLUTION_3D",
    "CONVOLUTION_DEPTHWISE",
    "GELU_CUBIC",
    "GELU_REACH",
    "PIXEL_CHANNELS",
    "PIXEL_OPAQUE",
    "RANDOM_KEY",
    "REQUIRED",
    "SELU_ALPHA",
    "SELU_SCALE",
    "SILU_REACH",
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
    "ConvolutionFamily",
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
    "GradientEntry",
    "GradientTable",
    "Group",
    "GroupInput",
    "GroupOutput",
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
    "Selection",
    "Shape",
    "SharesHostMemory",
    "SurvivesFork",
    "TangentEntry",
    "TangentTable",
    "Taps",
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
    "bessel_formulas",
    "bilinear_taps",
    "box_muller",
    "cells_first_permutation",
    "chained",
    "channel_broadcast_shape",
    "channel_axis",
    "child_processes",
    "contraction_order",
    "convolution_windows",
    "default_integers",
    "dilated_pooling_windows",
    "dilation_windows",
    "disk_cache",
    "dispatch",
    "dispatch_multiple",
    "dtypes",
    "elementary",
    "error_function",
    "expressions",
    "fill_modes",
    "gamma_formulas",
    "hookimpl",
    "host_functions",
    "host_values",
    "incomplete_beta_formulas",
    "incomplete_gamma_formulas",
    "inference",
    "key_halves",
    "kinds",
    "lift_constants",
    "live_objects",
    "match_ranks",
    "narrowing",
    "nearest_pixels",
    "normal_formulas",
    "philox",
    "pip_install",
    "pixel_levels",
    "plan_depth_rearrangement",
    "pooling_windows",
    "rotation_sources",
    "scatter_depth",
    "selection",
    "shapes",
    "spatial_axes",
    "specs",
    "split_spatial_axes",
    "tables_of",
    "tensor_from_buffer",
    "tree",
    "warn",
    "windows",
    *errors.__all__,
]


def _specs() -> dict[str, KernelSpec]:
    return {
        name: value
        for module in modules_of(ops)
        for name, value in vars(module).items()
        if isinstance(value, KernelSpec)
    }


specs = Specs(_specs)
"""Every kernel spec of the core: ``specs.CONV2D``."""

# Loaded when first asked for, from these modules: `tensorplug.library` needs none of them.
_LATE: Final = {
    "child_processes": "engine",
    "disk_cache": "engine",
    "elementary": "contract",
    "hookimpl": "contract.hooks",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    module = import_module(f"tensorplug.{_LATE[name]}")
    globals()[name] = vars(module).get(name) or import_module(f"{module.__name__}.{name}")
    return globals()[name]

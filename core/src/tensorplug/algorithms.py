"""What several backends compute in the same way; it may change with a minor version.

``tensorplug.plugin`` is the contract; here are formulas, constants and geometry that kernels,
decompositions and gradient rules share. A plugin that uses them says in its dependencies which
minor version of tensorplug it needs.

===================  =============================================================================
what                 names
===================  =============================================================================
windows              ``windows_of`` of each family: ``convolution_windows``, ``pooling_windows``,
                     ``dilated_pooling_windows``, ``dilation_windows``; ``ConvolutionFamily`` and
                     the three families; ``channel_axis``, ``spatial_axes``, ``windows``
images               ``Taps``, ``bilinear_taps``, ``nearest_pixels``, ``rotation_sources``,
                     ``fill_modes``, ``pixel_levels``, ``PIXEL_CHANNELS``, ``PIXEL_OPAQUE``
moving elements      ``Selection``, ``selection``, ``scatter_depth``, ``match_ranks``,
                     ``cells_first_permutation``, ``plan_depth_rearrangement``,
                     ``split_spatial_axes``, ``channel_broadcast_shape``
random numbers       ``philox``, ``box_muller``, ``RANDOM_KEY``, ``key_halves``; ``drawing``:
                     reading the arguments of a draw, and rejection; ``draw``: dispatch to the
                     kernels of random numbers; ``random_words``: keys and words in int32
activations          ``GELU_CUBIC``, ``GELU_REACH``, ``SELU_ALPHA``, ``SELU_SCALE``, ``SILU_REACH``
formulas             ``elementary``, ``error_function``, ``complement_formulas``, ``polynomial``,
                     ``ratio``, ``high_half``
products             ``contraction_order``, ``attention_scores``
ranges               ``lowest``, ``highest``, ``in_range``
on the host          ``host_functions``
decompositions       ``least_group``: from how many elements on a backend compiles groups
compilers            ``loop_bodies``: the data and the protocol of backends that run whole loops
===================  =============================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorplug import host_functions
from tensorplug.contract import windows
from tensorplug.contract.windows import channel_axis, spatial_axes
from tensorplug.decompositions.random import draw
from tensorplug.dispatch.device import least_group
from tensorplug.ops import contraction_order
from tensorplug.ops.arrangement import match_ranks
from tensorplug.ops.blocks import (
    cells_first_permutation,
    plan_depth_rearrangement,
    split_spatial_axes,
)
from tensorplug.ops.elementwise import error_function
from tensorplug.ops.image import fill_modes
from tensorplug.ops.image.pixels import CHANNELS as PIXEL_CHANNELS
from tensorplug.ops.image.pixels import OPAQUE as PIXEL_OPAQUE
from tensorplug.ops.image.pixels import levels as pixel_levels
from tensorplug.ops.image.resizing import Taps, bilinear_taps, nearest_pixels
from tensorplug.ops.image.warping import rotation_sources
from tensorplug.ops.indexing.indexing import scatter_depth
from tensorplug.ops.indexing.slicing import Selection, selection
from tensorplug.ops.nn import attention_scores
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
from tensorplug.ops.order import highest, in_range, lowest
from tensorplug.ops.random import box_muller, philox
from tensorplug.ops.random import words as random_words
from tensorplug.ops.random.random import KEY as RANDOM_KEY
from tensorplug.ops.random.random import halves as key_halves
from tensorplug.ops.special import complement_formulas
from tensorplug.ops.special.evaluation import high_half, polynomial, ratio
from tensorplug.tensors import drawing

if TYPE_CHECKING:
    from tensorplug.contract import elementary, loop_bodies

__all__ = [
    "CONVOLUTION_2D",
    "CONVOLUTION_3D",
    "CONVOLUTION_DEPTHWISE",
    "GELU_CUBIC",
    "GELU_REACH",
    "PIXEL_CHANNELS",
    "PIXEL_OPAQUE",
    "RANDOM_KEY",
    "SELU_ALPHA",
    "SELU_SCALE",
    "SILU_REACH",
    "ConvolutionFamily",
    "Selection",
    "Taps",
    "attention_scores",
    "bilinear_taps",
    "box_muller",
    "cells_first_permutation",
    "channel_axis",
    "channel_broadcast_shape",
    "complement_formulas",
    "contraction_order",
    "convolution_windows",
    "dilated_pooling_windows",
    "dilation_windows",
    "draw",
    "drawing",
    "elementary",
    "error_function",
    "fill_modes",
    "high_half",
    "highest",
    "host_functions",
    "in_range",
    "key_halves",
    "least_group",
    "loop_bodies",
    "lowest",
    "match_ranks",
    "nearest_pixels",
    "philox",
    "pixel_levels",
    "plan_depth_rearrangement",
    "polynomial",
    "pooling_windows",
    "random_words",
    "ratio",
    "rotation_sources",
    "scatter_depth",
    "selection",
    "spatial_axes",
    "split_spatial_axes",
    "windows",
]


def __getattr__(name: str) -> Any:
    if name not in {"elementary", "loop_bodies"}:  # loaded when first asked for, by compilers
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = import_module(f"tensorplug.contract.{name}")
    return globals()[name]

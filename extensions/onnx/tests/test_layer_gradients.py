"""Gradients of layers, to inputs and weights, against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorplug as tp
import tensorplug_onnx

RNG = np.random.default_rng(4)


def normal(*shape):
    return RNG.standard_normal(shape)


# Spread out, so that no two are near to each other: the largest stays the largest.
APART = RNG.permutation(2 * 2 * 5 * 5).reshape(2, 2, 5, 5) / 10.0
GRID = (RNG.integers(-3, 4, (2, 3, 2, 2)) + 0.4) / 5  # between the centres of elements
ROIS = np.array([[0.3, 0.4, 3.1, 3.3], [1.2, 0.1, 4.1, 2.6]])
IMAGES = np.array([1, 0])
# Image and edges; fractions, so that they stay the same elements when they move a little.
REGIONS = np.array([[0.2, 0, 0.3, 3, 3], [1.2, 1, 1, 4, 4.2]])

# Operator, inputs (floats are differentiated), attributes, opset.
LAYERS = {
    "Conv": (
        "Conv",
        [normal(2, 4, 5), normal(6, 2, 3), normal(6)],
        {"group": 2, "pads": [2, 0]},
        22,
    ),
    "ConvTranspose": (
        "ConvTranspose",
        [normal(1, 4, 3, 2), normal(4, 1, 2, 3), normal(2)],
        {"group": 2, "strides": [2, 1], "pads": [1, 0, 0, 1]},
        22,
    ),
    "DeformConv": (
        "DeformConv",
        [
            normal(1, 2, 4, 4),
            normal(2, 1, 2, 2),
            RNG.integers(-1, 2, (1, 8, 3, 3)) + 0.3,
            normal(2),
            normal(1, 4, 3, 3),
        ],
        {"group": 2},
        22,
    ),
    "Col2Im": ("Col2Im", [normal(1, 4, 9), np.array([4, 4]), np.array([2, 2])], {}, 18),
    "MaxPool": ("MaxPool", [APART], {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}, 22),
    "AveragePool": (
        "AveragePool",
        [APART],
        {"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 2], "count_include_pad": 1},
        22,
    ),
    "LpPool": ("LpPool", [APART + 1], {"kernel_shape": [2, 2], "p": 3}, 22),
    "MaxUnpool": (
        "MaxUnpool",
        [normal(1, 1, 2, 2), np.array([[[[0, 3], [9, 14]]]])],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        22,
    ),
    "MaxRoiPool": ("MaxRoiPool", [APART, REGIONS], {"pooled_shape": [2, 2]}, 22),
    "RoiAlign": ("RoiAlign", [APART, ROIS, IMAGES], {"output_height": 2, "sampling_ratio": 2}, 22),
    "RoiAlign, largest": (
        "RoiAlign",
        [APART + 9, ROIS, IMAGES],
        {"mode": "max", "sampling_ratio": 2},
        22,
    ),
    "BatchNormalization": (
        "BatchNormalization",
        [normal(2, 3, 4), normal(3), normal(3), normal(3), np.abs(normal(3)) + 1],
        {},
        15,
    ),
    "GroupNormalization": (
        "GroupNormalization",
        [normal(2, 4, 3), normal(4), normal(4)],
        {"num_groups": 2},
        21,
    ),
    "LayerNormalization": ("LayerNormalization", [normal(3, 5), normal(5), normal(5)], {}, 17),
    "RMSNormalization": ("RMSNormalization", [normal(3, 5), normal(5)], {}, 23),
    "LRN": ("LRN", [normal(2, 5, 3)], {"size": 4, "alpha": 0.5}, 13),
    "LpNormalization": ("LpNormalization", [normal(3, 5)], {}, 22),
    "Resize": (
        "Resize",
        [normal(1, 1, 3, 4), None, None, np.array([1, 1, 5, 3])],
        {"mode": "cubic"},
        19,
    ),
    "GridSample": ("GridSample", [normal(2, 2, 5, 5), GRID], {"padding_mode": "border"}, 20),
    "Attention": (
        "Attention",
        [normal(1, 2, 3, 4), normal(1, 1, 5, 4), normal(1, 1, 5, 2), normal(3, 5)],
        {"is_causal": 1},
        24,
    ),
    "Attention, capped": (
        "Attention",
        [normal(1, 2, 3, 4), normal(1, 1, 5, 4), normal(1, 1, 5, 2), normal(3, 5)],
        {"softcap": 2.0},
        24,
    ),
    "RotaryEmbedding": (
        "RotaryEmbedding",
        [normal(1, 2, 3, 4), normal(1, 3, 2), normal(1, 3, 2)],
        {},
        23,
    ),
}


def model_of(op_type, inputs, attributes, opset):
    names = ["" if one is None else f"x{at}" for at, one in enumerate(inputs)]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in zip(names, inputs, strict=True)
        if one is not None
    ]
    result = helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)
    graph = helper.make_graph([node], op_type, given, [result])
    opsets = [helper.make_opsetid("", opset)]
    return tensorplug_onnx.load(helper.make_model(graph, opset_imports=opsets))


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers(name):
    op_type, inputs, attributes, opset = LAYERS[name]
    model = model_of(op_type, inputs, attributes, opset)
    present = {f"x{at}": one for at, one in enumerate(inputs) if one is not None}
    fixed = {key: one for key, one in present.items() if one.dtype.kind != "f"}
    moved = [key for key in present if key not in fixed]

    def layer(*values):
        return model.apply({}, {**fixed, **dict(zip(moved, values, strict=True))})["y"]

    tp.testing.check_grads(layer, [present[key] for key in moved], modes=("vjp",), rtol=1e-5)

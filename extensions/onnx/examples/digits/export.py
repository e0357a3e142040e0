"""Train the network of docs/examples/digits, and write it as ONNX, with some test images.

Writes ``digits.onnx`` and the pictures beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import tensorplug as tp

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parents[3] / "docs" / "examples" / "digits"))

import data  # noqa: E402  # from there
import model  # noqa: E402
import train  # noqa: E402

EPOCHS = 12
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SHOWN = (2, 5, 7, 8)
SIDE = 96  # pixels of a picture


def as_onnx(network: tp.train.layers.Sequential) -> onnx.ModelProto:
    """Return the network as ONNX has it: channels first."""
    layers = [layer for layer in network.layers if hasattr(layer, "weight")]
    conv1, conv2, dense = (layer.weight.numpy() for layer in layers)
    dense = dense.reshape(4, 4, -1, model.CLASSES)
    arrays = {
        "conv1": conv1.transpose(3, 2, 0, 1),
        "conv2": conv2.transpose(3, 2, 0, 1),
        "dense": dense.transpose(2, 0, 1, 3).reshape(-1, model.CLASSES),
    }
    for name, layer in zip(tuple(arrays), layers, strict=True):
        arrays[f"{name}_bias"] = layer.bias.numpy()
    same = {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3]}
    nodes = [
        helper.make_node("Conv", ["images", "conv1", "conv1_bias"], ["c1"], **same),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p", "conv2", "conv2_bias"], ["c2"], **same),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("Flatten", ["r2"], ["f"]),
        helper.make_node("Gemm", ["f", "dense", "dense_bias"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", model.CLASSES])],
        [numpy_helper.from_array(np.ascontiguousarray(a), name) for name, a in arrays.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="tensorplug"
    )


def main() -> None:
    """Write the model and the pictures."""
    split = data.split(data.load())
    with tp.use_backend("cpu"):
        network = train.train(split, EPOCHS, seed=0).model
    onnx.save(as_onnx(network), FOLDER / "digits.onnx")
    for digit in SHOWN:
        at = np.flatnonzero(split.test_labels == digit)[3]
        paper = 255 * (1 - split.test_images[at, ..., 0])
        image = Image.fromarray(np.round(paper).astype(np.uint8))
        image.resize((SIDE, SIDE), Image.Resampling.NEAREST).save(FOLDER / f"{NAMES[digit]}.png")


if __name__ == "__main__":
    main()

"""The networks of the comparison, with random weights: ``onnx.ModelProto`` by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_LIGHT: Final = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def _light(name: str) -> onnx.ModelProto:
    """Return a network of ONNX's model zoo, whose weights its tests replace by one number.

    Weights are drawn so that numbers keep their size from layer to layer (He et al. 2015).
    """
    model = onnx.load(_LIGHT / f"light_{name}.onnx")
    graph = model.graph
    rng = np.random.default_rng(0)
    shapes = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    uses = {name: (node, at) for node in graph.node for at, name in enumerate(node.input)}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = tuple(shapes[node.input[0]].tolist())
        user, at = uses[node.output[0]]
        if user.op_type in ("Conv", "Gemm") and at == 1:
            value = rng.standard_normal(shape) * np.sqrt(2 / max(1, np.prod(shape[1:])))
        elif user.op_type == "BatchNormalization" and at in (1, 4):
            value = rng.uniform(0.5, 1.5, shape)
        elif user.op_type == "Reshape" or _is_whole(node):
            kept.append(node)
            continue
        else:
            value = rng.uniform(-0.5, 0.5, shape)
        graph.initializer.append(
            numpy_helper.from_array(np.asarray(value, np.float32), node.output[0])
        )
    if kept[-1].op_type == "Softmax":  # it would hide differences: one class has it all
        graph.output[0].name = kept.pop().input[0]
    del graph.node[:]
    graph.node.extend(kept)
    given = {one.name for one in graph.initializer}
    inputs = [one for one in graph.input if one.name not in given]
    del graph.input[:]
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)  # from which initializers need not be inputs
    return model


def _is_whole(node: onnx.NodeProto) -> bool:
    """Return whether a ConstantOfShape makes integers."""
    values = [numpy_helper.to_array(one.t) for one in node.attribute if one.name == "value"]
    return bool(values) and values[0].dtype.kind in "iu"


class _Builder:
    """Nodes and weights of a model, one after the other."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(0)

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def constant(self, array: Any) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def drawn(self, *shape: int, fan: int) -> str:
        """Add a weight whose elements are normal, for products of ``fan`` terms."""
        array = self._rng.standard_normal(shape) / np.sqrt(fan)
        return self.constant(array.astype(np.float32))

    def model(self, output: str, shape: Sequence[int]) -> onnx.ModelProto:
        """Return the model from input ``x``, of a shape, to an output."""
        result = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
        x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "network", [x], [result], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _unet() -> onnx.ModelProto:
    """Return a U-Net of four levels (Ronneberger et al. 2015), 32 channels at 128 x 128."""
    b = _Builder()

    def convolved(x: str, channels: int, filters: int) -> str:
        for count in (channels, filters):
            w = b.drawn(filters, count, 3, 3, fan=count * 9 // 2)
            x = b.node("Conv", x, w, b.drawn(filters, fan=100), pads=[1, 1, 1, 1])
            statistics = [
                b.constant(np.full(filters, value, np.float32)) for value in (1, 0.1, 0, 1)
            ]
            x = b.node("Relu", b.node("BatchNormalization", x, *statistics))
        return x

    widths = [32, 64, 128, 256]
    x, channels, skips = "x", 3, []
    for width in widths[:-1]:
        x = convolved(x, channels, width)
        skips.append(x)
        x, channels = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), width
    x = convolved(x, channels, widths[-1])
    for width, skip in zip(widths[-2::-1], skips[::-1], strict=True):
        w = b.drawn(2 * width, width, 2, 2, fan=2 * width)
        x = b.node("ConvTranspose", x, w, b.drawn(width, fan=100), strides=[2, 2])
        x = convolved(b.node("Concat", skip, x, axis=1), 2 * width, width)
    x = b.node("Sigmoid", b.node("Conv", x, b.drawn(2, widths[0], 1, 1, fan=widths[0])))
    return b.model(x, (1, 3, 128, 128))


def _transformer() -> onnx.ModelProto:
    """Return four layers of an encoder, 256 wide, over 128 tokens (Vaswani et al. 2017)."""
    b = _Builder()
    length, width, heads = 128, 256, 4
    split = b.constant(np.array([1, length, heads, width // heads], np.int64))
    joined = b.constant(np.array([1, length, width], np.int64))
    scale = b.constant(np.float32((width // heads) ** -0.5))

    def linear(x: str, count: int, outputs: int) -> str:
        product = b.node("MatMul", x, b.drawn(count, outputs, fan=count))
        return b.node("Add", product, b.drawn(outputs, fan=100))

    def normalized(x: str) -> str:
        ends = [b.constant(np.full(width, value, np.float32)) for value in (1, 0)]
        return b.node("LayerNormalization", x, *ends, axis=-1)

    def in_heads(x: str, order: Sequence[int]) -> str:
        rows = b.node("Reshape", linear(x, width, width), split)
        return b.node("Transpose", rows, perm=order)

    x = "x"
    for _ in range(4):
        y = normalized(x)
        q, v = (in_heads(y, (0, 2, 1, 3)) for _ in range(2))
        scores = b.node("MatMul", b.node("Mul", q, scale), in_heads(y, (0, 2, 3, 1)))
        mixed = b.node("MatMul", b.node("Softmax", scores, axis=-1), v)
        mixed = b.node("Reshape", b.node("Transpose", mixed, perm=(0, 2, 1, 3)), joined)
        x = b.node("Add", x, linear(mixed, width, width))
        up = b.node("Gelu", linear(normalized(x), width, 4 * width))
        x = b.node("Add", x, linear(up, 4 * width, width))
    return b.model(x, (1, length, width))


NETWORKS: Final[dict[str, Callable[[], onnx.ModelProto]]] = {
    "resnet50": lambda: _light("resnet50"),
    "densenet121": lambda: _light("densenet121"),
    "shufflenet": lambda: _light("shufflenet"),
    "squeezenet": lambda: _light("squeezenet"),
    "unet": _unet,
    "transformer": _transformer,
}

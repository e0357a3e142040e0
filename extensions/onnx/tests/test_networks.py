"""The known networks of the onnx package with random weights, beside onnxruntime.

The package has their graphs; what should be weights are constants of one number. Here they get
weights at random, scaled so that the numbers of all layers keep about the same size.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tensorplug_onnx

onnxruntime = pytest.importorskip("onnxruntime")

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NETWORKS = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
SMALL = ("shufflenet", "squeezenet")  # which a backend of primitives runs in seconds

# Mean and deviation of vectors by what takes them; others are 0 and 0.1.
VECTORS = {
    ("BatchNormalization", 1): (1.0, 0.2),  # scale
    ("BatchNormalization", 4): (1.0, 0.2),  # variance
    ("Unsqueeze", 0): (1.0, 0.2),  # a factor or a summand by channel
}


def weighted(name):
    """Return a network with random weights, and an input.

    Its outputs are the scores before a softmax, which would hide all but the largest.
    """
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    model.ir_version = 4  # from which on an initializer need not be an input
    graph = model.graph
    rng = np.random.default_rng(0)
    taken = {what: (node.op_type, at) for node in graph.node for at, what in enumerate(node.input)}
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    constant = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    shapes = {node.output[0]: tuple(known[node.input[0]]) for node in constant}
    shapes |= {what: x.shape for what, x in known.items() if x.dtype == np.float32}
    found = {what: drawn(rng, shape, taken.get(what)) for what, shape in shapes.items()}
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    assert sum(node.op_type == "Softmax" for node in kept) <= 1
    images = [one for one in graph.input if one.name not in known]
    others = {what: x for what, x in known.items() if what not in {n.input[0] for n in constant}}
    for parts, new in (
        (graph.node, kept),
        (graph.input, images),
        (
            graph.initializer,
            [numpy_helper.from_array(x, what) for what, x in {**others, **found}.items()],
        ),
    ):
        del parts[:]
        parts.extend(new)
    for node in kept:
        if node.op_type == "Softmax":
            graph.output[0].name = node.input[0]
    [image] = images
    shape = [dim.dim_value for dim in image.type.tensor_type.shape.dim]
    return model, {image.name: rng.standard_normal(shape, dtype=np.float32)}


def drawn(rng, shape, taken):
    if len(shape) < 2:
        mean, deviation = VECTORS.get(taken, (0.0, 0.1))
    else:  # products keep the variance of what a Relu leaves half of
        mean, deviation = 0.0, (2 / np.prod(shape[1:])) ** 0.5
    return np.float32(mean) + np.float32(deviation) * rng.standard_normal(shape, np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "device"),
    [*((name, "cpu") for name in NETWORKS), *((name, "minimal") for name in SMALL)],
)
def test_outputs_are_onnxruntimes(name, device):
    model, inputs = weighted(name)
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    [right] = session.run(None, inputs)
    assert np.isfinite(right).all()
    assert right.std() > 0.1 * np.abs(right).mean()  # or it hardly depends on anything
    mine = tensorplug_onnx.load(model).to(device)
    for how, run in (("eager", mine), ("compiled", mine.compile())):
        [found] = run(inputs).values()
        assert (found.shape, found.dtype.numpy) == (right.shape, right.dtype), how
        np.testing.assert_allclose(
            found.numpy(), right, rtol=1e-5, atol=1e-5 * np.abs(right).max(), err_msg=how
        )

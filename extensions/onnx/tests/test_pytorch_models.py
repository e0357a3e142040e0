"""Models that PyTorch exported, by both of its exporters, with the outputs that it computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensorplug as tp
import tensorplug_onnx

MODELS = Path(__file__).parent / "models"
NAMES = sorted(path.stem for path in MODELS.glob("*.onnx"))


def stored(name):
    """Return the inputs by name, the outputs, and the gradients by name."""
    with np.load(MODELS / f"{name.rpartition('_')[0]}.npz") as arrays:
        found = {what: {} for what in ("input", "output", "gradient")}
        for label in arrays:
            what, _, key = label.partition(" ")
            found[what][key] = arrays[label]
    return found["input"], list(found["output"].values()), found["gradient"]


def test_there_are_models_of_both_exporters():
    assert len(NAMES) == 16
    assert {name.rpartition("_")[2] for name in NAMES} == {"script", "dynamo"}


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("device", ["cpu", "minimal"])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_pytorchs(name, device, how):
    inputs, outputs, _ = stored(name)
    model = tensorplug_onnx.load(MODELS / f"{name}.onnx").to(device)
    if how == "compiled":
        model = model.compile()
    found = list(model(inputs).values())
    assert [(y.shape, y.dtype.numpy) for y in found] == [(y.shape, y.dtype) for y in outputs]
    for value, right in zip(found, outputs, strict=True):
        np.testing.assert_allclose(
            value.numpy(), right, rtol=1e-5, atol=1e-5 * np.abs(right).max()
        )


# QuantizeLinear rounds, and has no gradient; tokens have none.
SMOOTH = [name for name in NAMES if stored(name)[2] and "quantized" not in name]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_pytorchs(name):
    inputs, _, gradients = stored(name)
    model = tensorplug_onnx.load(MODELS / f"{name}.onnx")
    others = {what: tp.asarray(x) for what, x in inputs.items() if what not in gradients}

    def loss(smooth):
        outputs = model.apply(model.parameters, {**others, **smooth}).values()
        weights = (np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape) for y in outputs)
        return sum(tp.sum(y * tp.asarray(w)) for y, w in zip(outputs, weights, strict=True))

    found = tp.grad(loss)({what: tp.asarray(inputs[what]) for what in gradients})
    for what, right in gradients.items():
        assert found[what].shape == right.shape
        np.testing.assert_allclose(
            found[what].numpy(), right, rtol=1e-4, atol=1e-5 * np.abs(right).max()
        )


@pytest.mark.parametrize("name", ["mlp_script", "encoder_script"])
def test_gradients_by_parameters_are_slopes(name):
    """Along the gradient, by differences of single precision."""
    inputs, _, _ = stored(name)
    model = tensorplug_onnx.load(MODELS / f"{name}.onnx")
    given = {what: tp.asarray(x) for what, x in inputs.items()}

    def loss(parameters):
        [y] = model.apply(parameters, given).values()
        return tp.sum(y * y * y)

    gradients = tp.grad(loss)(dict(model.parameters))
    size = float(sum(tp.sum(g * g) for g in gradients.values())) ** 0.5
    step = 0.01 / size

    def at(by):
        return float(loss({k: p + by * gradients[k] for k, p in model.parameters.items()}))

    assert size > 0.1
    assert (at(step) - at(-step)) / (2 * step) == pytest.approx(size**2, rel=1e-2)

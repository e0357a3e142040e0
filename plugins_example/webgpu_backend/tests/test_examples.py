"""The examples' programs compute on webgpu alone what they compute on cpu."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import data
import numpy as np
import pytest
import records
import train
import train_transformer
import transformer

import tensorplug as tp
import tensorplug_onnx

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = Path(__file__).parents[3] / "extensions" / "onnx" / "examples" / "digits"
STEPS = 3


def digits() -> list[Any]:
    """Return losses of a few steps, and the digits that are read then."""
    split = data.split(data.load())
    few = split.train_images[: 32 * STEPS], split.train_labels[: 32 * STEPS]
    split = dataclasses.replace(split, train_images=few[0], train_labels=few[1])
    fitted = train.train(split, epochs=1, seed=0)
    assert len(train.losses(fitted)) == STEPS
    return [train.losses(fitted), train.read(fitted.model, split.test_images)]


def character_transformer() -> list[Any]:
    """Return losses of a few steps, and what the network writes then."""
    corpus = records.load()
    short = {"train": corpus.train[:777], "held_out": corpus.held_out[:100]}
    corpus = dataclasses.replace(corpus, **short)
    sizes = transformer.Sizes(context=16, features=16, heads=2, layers=1)
    fitted, samples = train_transformer.train(corpus, sizes, epochs=1, seed=0, progress=False)
    assert list(samples) == [0, STEPS]
    begin = tp.asarray(corpus.train[: sizes.context])
    written = tp.compile(transformer.write)(fitted.model, tp.random.key(2), begin, 12, 0.7)
    return [fitted.history[0]["loss"], fitted.history[0]["validation_loss"], written.numpy()]


def onnx_digits() -> list[Any]:
    """Return the scores of a trained model for images drawn at random, run and compiled."""
    model = tensorplug_onnx.load(EXAMPLE / "digits.onnx").to(tp.get_backend())
    [info] = model.inputs
    shape = (4, *(int(size or 1) for size in (info.shape or ())[1:]))
    images = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    return [model(images)["scores"].numpy(), model.compile()(images)["scores"].numpy()]


@pytest.mark.parametrize("example", [digits, character_transformer, onnx_digits])
def test_results_are_those_of_cpu(example: Callable[[], list[Any]]) -> None:
    assert tp.get_backend() == "webgpu"
    computed = example()
    with tp.use_backend("cpu"):
        expected = example()
    for one, other in zip(computed, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

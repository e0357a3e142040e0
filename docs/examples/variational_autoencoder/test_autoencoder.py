"""Tests of the autoencoder: its bound by other formulas, its gradients, one short training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import autoencoder
import data
import numpy as np
import pytest
import train_autoencoder
from rich.console import Console

import tensorplug as tp

if TYPE_CHECKING:
    from pathlib import Path


def test_divergence_is_the_integral() -> None:
    """The integral of q log(q / p), by the rectangle rule, of one latent number."""
    mean, deviation = 0.7, 0.4
    z = np.linspace(-6.0, 6.0, 20001)
    q = np.exp(-(((z - mean) / deviation) ** 2) / 2) / deviation / np.sqrt(2 * np.pi)
    log_ratio = (z**2 - ((z - mean) / deviation) ** 2) / 2 - np.log(deviation)
    found = autoencoder.divergence(
        tp.asarray([[mean]], dtype="float64"), tp.asarray([[2 * np.log(deviation)]])
    )
    assert found.shape == (1,)
    np.testing.assert_allclose(found.numpy(), np.sum(q * log_ratio) * (z[1] - z[0]), rtol=1e-6)


def test_the_bound_without_knowledge_is_that_of_coins() -> None:
    """With weights of zero, z says nothing, and each pixel costs log 2."""
    model = tp.tree_map(tp.zeros_like, autoencoder.Autoencoder.init(tp.random.key(0)))
    images = tp.random.uniform(tp.random.key(1), (5, autoencoder.PIXELS))
    found = autoencoder.negative_elbo(model, images, tp.random.key(2))
    assert found.dtype == tp.float32
    assert float(found) == pytest.approx(autoencoder.PIXELS * np.log(2), rel=1e-6)


def test_gradients_pass_through_the_draw() -> None:
    """The slope along the bias of the variance is that of differences, for the same noise."""
    model = autoencoder.Autoencoder.init(tp.random.key(0))
    model = tp.tree_map(lambda x: x.astype("float64"), model)
    images = tp.random.uniform(tp.random.key(1), (5, autoencoder.PIXELS), dtype="float64")
    key = tp.random.key(2)

    def at(bias: tp.Tensor) -> tp.Tensor:
        changed = replace(model, log_variance=replace(model.log_variance, bias=bias))
        return autoencoder.negative_elbo(changed, images, key)

    with tp.use_backend("cpu"):
        bias, step = model.log_variance.bias, tp.asarray([1e-5, 0.0], dtype="float64")
        slope = (at(bias + step) - at(bias - step)).item() / 2e-5
        assert tp.grad(at)(bias)[0].item() == pytest.approx(slope, rel=1e-6)


@pytest.mark.slow
def test_a_short_training_beats_independent_pixels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "folder" / "autoencoder.png"
    arguments = ["--backend", "cpu", "--epochs", "8", "--output", str(file)]
    assert train_autoencoder.main(arguments) == 0
    assert "Picture" in capsys.readouterr().out
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
def test_one_epoch_is_no_success_and_the_same_on_opencl() -> None:
    split, runs = data.split(data.load()), []
    for backend in ("cpu", "opencl"):
        try:
            with tp.use_backend(backend):
                runs.append(train_autoencoder.train(split, 1, 0, backend, Console(quiet=True)))
        except (tp.errors.BackendUnavailableError, tp.errors.BackendNotInstalledError):
            assert backend == "opencl"
    limit = train_autoencoder.independent(split)
    for run in runs:
        assert run.tests[0] > limit
        assert run.means.shape == (len(split.test_labels), 2)
        np.testing.assert_allclose(run.losses, runs[0].losses, rtol=1e-4)

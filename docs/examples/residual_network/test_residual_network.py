"""Tests of the residual network: its parts, and that it learns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import residual_network
import train_network

import tensorplug as tp

if TYPE_CHECKING:
    from pathlib import Path


def test_a_block_without_weights_lets_what_it_takes_pass() -> None:
    block = residual_network.Block.init(tp.random.key(0), 3, 3, 1)
    zeros = tp.tree_map(tp.zeros_like, block)
    x = tp.random.normal(tp.random.key(1), (2, 4, 4, 3))
    state = tp.train.layers.initial_state(zeros)
    y, _ = tp.train.layers.apply(zeros, x, state)
    np.testing.assert_array_equal(y.numpy(), np.maximum(x.numpy(), 0))


def test_images_move_in_training_alone() -> None:
    model = residual_network.network(tp.random.key(0), (4,))
    state = tp.train.layers.initial_state(model)
    batch = tp.random.uniform(tp.random.key(1), (8, 8, 8, 1)), tp.arange(8)

    def logits(key: int, *, training: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        found = residual_network.objective(
            model, batch, state, key=tp.random.key(key), training=training
        )
        predictions: tp.Tensor = found[1].predictions
        assert predictions.shape == (8, 10)
        return predictions.numpy()

    assert (logits(2, training=False) == logits(3, training=False)).all()
    assert (logits(2, training=True) != logits(3, training=True)).any()


@pytest.mark.slow
def test_a_short_training_reads_most_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "network.png"
    assert train_network.main(["--epochs", "6", "--output", str(file)]) == 0
    assert "accuracy on test images: 0.9" in capsys.readouterr().out
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

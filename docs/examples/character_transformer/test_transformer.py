"""Tests of the transformer: what it may see, what it draws, and one short training."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import records
import train_transformer
import transformer

import tensorplug as tp

if TYPE_CHECKING:
    from pathlib import Path

SIZES = transformer.Sizes(context=12, features=8, heads=2, layers=2)
TEXT = np.array([0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1], np.int32)


def network() -> Any:
    return transformer.network(tp.random.key(3), 7, SIZES)


def test_no_character_sees_those_after_it() -> None:
    before = network()(TEXT)
    changed = TEXT.copy()
    changed[8] = 6
    after = network()(changed)
    assert before.shape == (12, 7)
    assert before.dtype == tp.float32
    same = np.isclose(before.numpy(), after.numpy(), rtol=1e-4, atol=1e-5).all(axis=1)
    assert same.tolist() == [True] * 8 + [False] * 4


def test_maps_are_those_of_the_attention() -> None:
    """Values weighted by a map are what the layer gives."""
    placed, _, block, *_ = network().layers
    first, last = transformer.attention_maps(network(), tp.asarray(TEXT))
    assert first.shape == last.shape == (2, 12, 12)
    np.testing.assert_allclose(last.numpy().sum(axis=-1), 1.0, rtol=1e-5)
    norm, attention, _ = block.inner.layers
    x = norm(placed(TEXT))
    values = attention.value(x).numpy().reshape(12, 2, 4)
    seen = np.einsum("hij,jhf->ihf", first.numpy(), values).reshape(12, 8)
    wanted = attention(x).numpy()
    np.testing.assert_allclose(attention.output(seen).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_dropout_is_for_training_alone() -> None:
    apply, key = tp.train.layers.apply, tp.random.key(0)
    still, same = (apply(network(), TEXT, key=key)[0] for _ in range(2))
    noisy, _ = apply(network(), TEXT, key=key, training=True)
    np.testing.assert_array_equal(still.numpy(), same.numpy())
    assert (noisy.numpy() != still.numpy()).all()


def test_pieces_are_of_the_text() -> None:
    text = np.arange(50, dtype=np.int32)
    x, following = records.pieces(text, 12)
    assert x.shape == following.shape == (7, 12)
    assert x.dtype == np.int32
    np.testing.assert_array_equal(x[:, 0], np.arange(0, 38, 6))
    np.testing.assert_array_equal(x, x[:, :1] + np.arange(12))
    np.testing.assert_array_equal(following, x + 1)


def test_near_temperature_0_it_writes_what_is_most_probable() -> None:
    written = tp.compile(transformer.write)(network(), tp.random.key(1), tp.asarray(TEXT), 5, 1e-4)
    seen = TEXT.tolist()
    for _ in range(5):
        scores = network()(tp.asarray(seen[-12:], dtype="int32"))
        seen.append(int(np.argmax(scores.numpy()[-1])))
    assert written.tolist() == seen[12:]


def test_the_records_are_read_without_loss() -> None:
    corpus = records.load()
    assert len(corpus.held_out) / len(corpus.train) == pytest.approx(1 / 9, rel=1e-3)
    assert corpus.read(corpus.train[:400]).startswith("# 1. ")


@pytest.mark.slow
def test_a_short_training_beats_frequencies_on_both_backends() -> None:
    corpus = records.load()
    corpus = dataclasses.replace(corpus, train=corpus.train[:80_000])
    sizes = transformer.Sizes(context=32, features=32, layers=1)
    runs = []
    for backend in ("cpu", "opencl"):
        try:
            with tp.use_backend(backend):
                fitted, samples = train_transformer.train(corpus, sizes, 1, 0, progress=False)
        except (tp.errors.BackendUnavailableError, tp.errors.BackendNotInstalledError):
            assert backend == "opencl"
            continue
        assert list(samples) == [0, 157]  # 4998 pieces
        runs.append(fitted.history[0])
    for row in runs:
        assert row["validation_loss"] < records.by_frequency(corpus) - 0.2
        assert row["loss"] == pytest.approx(runs[0]["loss"], rel=1e-4)


@pytest.mark.slow
def test_the_command_draws_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = records.load()
    short = dataclasses.replace(corpus, train=corpus.train[:3000])
    monkeypatch.setattr(records, "load", lambda: short)
    file = tmp_path / "folder" / "transformer.png"
    arguments = ["--backend", "cpu", "--epochs", "4", "--output", str(file)]
    code = train_transformer.main(arguments)
    shown = capsys.readouterr().out
    assert all(f"after {number} steps" in shown for number in (0, 3, 12))
    assert code in {0, 1}
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

"""Tests of the transformer: what it may see, what it draws, and one short training."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import train_transformer
import transformer
from rich.console import Console
from rich.progress import Progress

import tensorplug as tp

if TYPE_CHECKING:
    from pathlib import Path

SIZES = transformer.Sizes(characters=7, context=12, features=8, heads=2, layers=2)
TEXT = np.array([[0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1]], np.int32)


def parameters() -> Any:
    return transformer.initial_parameters(tp.random.key(3), SIZES)


def test_no_character_sees_those_after_it() -> None:
    before = transformer.logits(parameters(), tp.asarray(TEXT), SIZES.heads)
    changed = TEXT.copy()
    changed[0, 8] = 6
    after = transformer.logits(parameters(), tp.asarray(changed), SIZES.heads)
    assert before.shape == (1, 12, 7)
    assert before.dtype == tp.float32
    same = np.isclose(before.numpy(), after.numpy(), rtol=1e-4, atol=1e-5).all(axis=(0, 2))
    assert same.tolist() == [True] * 8 + [False] * 4


def test_maps_are_those_of_the_attention() -> None:
    """Values weighted by a map are what scaled_dot_product_attention gives."""
    p = parameters()
    (first, last) = transformer.attention_maps(p, tp.asarray(TEXT[0]), SIZES.heads)
    assert first.shape == last.shape == (2, 12, 12)
    np.testing.assert_allclose(last.numpy().sum(axis=-1), 1.0, rtol=1e-5)
    x = transformer.embed(p, tp.asarray(TEXT))
    v = transformer.queries_keys_values(p["layers"][0], x, SIZES.heads)[2].numpy()[0]
    seen = np.moveaxis(first.numpy() @ v, 0, 1).reshape(12, 8)
    wanted = transformer.attend(p["layers"][0], x, SIZES.heads).numpy()[0]
    joined = p["layers"][0]["joined"].numpy()
    np.testing.assert_allclose(seen @ joined, wanted, rtol=1e-4, atol=1e-5)


def test_pieces_are_of_the_text() -> None:
    text = tp.arange(50, dtype="int32")
    pieces = transformer.windows(tp.random.key(0), text, 400, 12).numpy()
    assert pieces.shape == (400, 12)
    assert pieces.dtype == np.int32
    np.testing.assert_array_equal(pieces, pieces[:, :1] + np.arange(12))
    assert pieces[:, 0].min() == 0
    assert pieces[:, -1].max() == 49


def test_near_temperature_0_it_writes_what_is_most_probable() -> None:
    p, heads = parameters(), SIZES.heads
    written = tp.compile(transformer.write)(
        p, tp.random.key(1), tp.asarray(TEXT[0]), heads, 5, 1e-4
    )
    seen = TEXT[0].tolist()
    for _ in range(5):
        scores = transformer.logits(p, tp.asarray([seen[-12:]], dtype="int32"), heads)
        seen.append(int(np.argmax(scores.numpy()[0, -1])))
    assert written.tolist() == seen[12:]


def test_the_records_are_read_without_loss() -> None:
    corpus = train_transformer.load()
    assert len(corpus.held_out) / len(corpus.train) == pytest.approx(1 / 9, rel=1e-3)
    assert corpus.read(tp.asarray(corpus.train[:400])).startswith("# 1. ")


@pytest.mark.slow
def test_a_short_training_beats_frequencies_on_both_backends() -> None:
    corpus = train_transformer.load()
    sizes = transformer.Sizes(len(corpus.alphabet), context=32, features=32, layers=1)
    setting = train_transformer.Setting(sizes, steps=150, batch=16)
    runs = []
    for backend in ("cpu", "opencl"):
        try:
            with (
                tp.use_backend(backend),
                Progress(console=Console(file=io.StringIO())) as progress,
            ):
                runs.append(train_transformer.train(corpus, setting, 0, progress))
        except (tp.errors.BackendUnavailableError, tp.errors.BackendNotInstalledError):
            assert backend == "opencl"
    limit = train_transformer.by_frequency(corpus)
    for run in runs:
        assert run.tests[0] > limit
        assert run.tests[150] < limit - 0.2
        np.testing.assert_allclose(run.losses, runs[0].losses, rtol=1e-4)


@pytest.mark.slow
def test_the_command_draws_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "folder" / "transformer.png"
    arguments = ["--backend", "cpu", "--steps", "8", "--output", str(file)]
    code = train_transformer.main(arguments)
    shown = capsys.readouterr().out
    assert all(f"after {number} steps" in shown for number in (0, 2, 8))
    assert code in {0, 1}
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

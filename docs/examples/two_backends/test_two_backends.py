"""Tests of the batches, of both ways to train, and of what the page says about backends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import data
import numpy as np
import pipeline
import pytest
import recognizer
import train_on_two

import tensorplug as tp

if TYPE_CHECKING:
    from pathlib import Path

SPLIT = data.split(data.load())


def work(prepare: str = "minimal", train: str = "cpu", size: int = 8) -> pipeline.Work:
    places = pipeline.Places(prepare, train)
    return pipeline.Work(places, SPLIT.train_images[:50], SPLIT.train_labels[:50], 0, size)


def test_distortions_turn_around_the_middle() -> None:
    """A dot in the middle stays there on average, and moves by the pixels it may."""
    dot = np.zeros((1, 8, 8, 1), np.float32)
    dot[0, 3:5, 3:5] = 1
    labels = tp.asarray([7])
    images, found = recognizer.prepare(tp.asarray(dot), labels, tp.random.key(0), 400)
    assert images.shape == (400, recognizer.SIZE, recognizer.SIZE, 1)
    assert found.numpy().tolist() == [7] * 400
    ink = np.clip(images.numpy()[..., 0] - 0.5, 0, None)  # without the noise
    ink /= ink.sum(axis=(1, 2), keepdims=True)
    places = np.arange(recognizer.SIZE)
    centres = np.stack([(ink * places[:, None]).sum((1, 2)), (ink * places).sum((1, 2))])
    # A move is uniform within 1 source pixel, which is 3 pixels, divided by stretches near 1.1.
    assert np.abs(centres - 11.5).max() < 5
    np.testing.assert_allclose(centres.mean(axis=1), 11.5, atol=0.3)
    np.testing.assert_allclose(centres.std(axis=1), 3 / np.sqrt(3) / 1.1, rtol=0.15)


def test_a_batch_is_the_same_on_another_backend() -> None:
    batches = [work(name).prepare(3) for name in ("cpu", "minimal")]
    assert [images.device for images, _ in batches] == ["cpu", "minimal"]
    np.testing.assert_allclose(batches[0][0].numpy(), batches[1][0].numpy(), atol=1e-5)
    np.testing.assert_array_equal(batches[0][1].numpy(), batches[1][1].numpy())


def test_one_loss_is_that_of_a_guess() -> None:
    """With weights of zero, all digits are equally probable."""
    images, labels = work("cpu").prepare(0)
    weights = tp.tree_map(tp.zeros_like, recognizer.initial_weights(tp.random.key(0)))
    assert float(recognizer.loss(weights, images, labels)) == pytest.approx(np.log(10), rel=1e-6)


def test_both_ways_give_the_same_and_one_overlaps() -> None:
    tried = work()
    turns, piped = pipeline.in_turn(tried, 5), pipeline.pipelined(tried, 5)
    np.testing.assert_allclose(piped.losses, turns.losses, rtol=1e-5)
    assert {tensor.device for tensor in piped.weights.values()} == {"cpu"}
    for run in (turns, piped):
        when = {(span.what, span.batch): span for span in run.spans}
        assert len(when) == 15
        for batch in range(5):
            parts = [when[what, batch] for what in ("prepare", "copy", "train")]
            assert parts[0].end <= parts[1].start
            assert parts[1].end <= parts[2].start
        begins_early = when["prepare", 2].start < when["train", 1].end
        assert begins_early == (run is piped)


def test_an_error_in_the_second_thread_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = work()
    prepare = tried.prepare

    def broken(number: int) -> Any:
        if number == 3:
            raise OSError("no more images")
        return prepare(number)

    monkeypatch.setattr(tried, "prepare", broken)
    with pytest.raises(OSError, match="no more images"):
        pipeline.pipelined(tried, 6)


def test_a_thread_does_not_inherit_the_block() -> None:
    found = []
    with tp.use_backend("cpu"):
        outside = tp.get_backend()
    with tp.use_backend("minimal"):
        thread = threading.Thread(target=lambda: found.append(tp.get_backend()))
        thread.start()
        thread.join()
        assert tp.get_backend() == "minimal"
    assert found == [outside]


def test_a_call_runs_where_an_input_was_placed_and_counts_copies() -> None:
    with tp.use_backend("cpu"):
        here = tp.asarray([1.0, 2.0])
        there = here.to("minimal")
        assert (here.device, there.device) == ("cpu", "minimal")
        with tp.profile() as profile:
            total = here + there
        assert (total.device, total.tolist(), profile.transfers) == ("minimal", [2.0, 4.0], 1)
        gradient = tp.grad(lambda x: tp.sum(x.to("minimal") ** 3))(here)
        assert (gradient.device, gradient.tolist()) == ("cpu", [3.0, 12.0])
        with pytest.raises(tp.errors.DTypeError, match="'minimal'"):
            tp.asarray([1 + 2j]).to("minimal")
        with pytest.raises(tp.errors.BackendNotInstalledError, match="nowhere"):
            here.to("nowhere")


ARGUMENTS = ["--prepare", "cpu", "--train", "cpu", "--repeat", "1"]


def test_two_steps_are_too_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "folder" / "two.png"
    assert train_on_two.main([*ARGUMENTS, "--steps", "2", "--output", str(file)]) == 1
    assert "as a pipeline" in capsys.readouterr().out
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
@pytest.mark.parametrize("train", ["cpu", "opencl"])
def test_the_network_learns(tmp_path: Path, train: str) -> None:
    try:
        with tp.use_backend(train):
            pass
    except (tp.errors.BackendUnavailableError, tp.errors.BackendNotInstalledError) as error:
        pytest.skip(str(error))
    arguments = ["--train", train, "--repeat", "1", "--output", str(tmp_path / "two.png")]
    assert train_on_two.main(arguments) == 0

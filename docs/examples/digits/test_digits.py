"""Tests of the digits example: the data, the report, and one short training."""

from __future__ import annotations

import dataclasses
import io
from typing import TYPE_CHECKING, Any

import data
import model
import numpy as np
import pytest
import report
import train
from rich.console import Console

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Counted by the publishers of the data set, digits 0 to 9 of its test file.
COUNTS = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)


def changed_pixel(images: Any, labels: Any) -> dict[str, Any]:
    images[900, 3, 3] ^= 1
    return {"images": images, "labels": labels}


def test_the_data_is_what_its_publishers_describe() -> None:
    digits = data.load()
    assert digits.images.shape == (1797, 8, 8)
    assert digits.images.dtype == np.uint8
    assert tuple(np.bincount(digits.labels)) == COUNTS
    assert digits.images.min() == 0
    assert digits.images.max() == 16


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(changed_pixel, "SHA-256 must be", id="contents"),
        pytest.param(
            lambda images, labels: {"images": images[1:], "labels": labels},
            r"images must be uint8\[1797, 8, 8\], got uint8\[1796, 8, 8\]",
            id="shape",
        ),
        pytest.param(
            lambda images, labels: {"images": images, "labels": labels.astype(np.int64)},
            r"labels must be uint8\[1797\], got int64\[1797\]",
            id="dtype",
        ),
        pytest.param(lambda images, _: {"images": images}, "no array named labels", id="missing"),
    ],
)
def test_spoilt_data_is_refused(
    tmp_path: Path, spoil: Callable[[Any, Any], dict[str, Any]], message: str
) -> None:
    digits = data.load()
    file = tmp_path / "spoilt.npz"
    np.savez(file, **spoil(digits.images.copy(), digits.labels.copy()))
    with pytest.raises(ValueError, match=message):
        data.load(file)


def test_the_split_keeps_a_fifth_of_each_class_for_the_test() -> None:
    digits = data.load()
    split = data.split(digits)
    assert tuple(np.bincount(split.test_labels)) == tuple(count // 5 for count in COUNTS)
    assert split.train_images.shape == (1442, 8, 8, 1)
    assert split.train_images.dtype == np.float32
    # Every image lands on exactly one side, with its own label.
    sides = np.concatenate([split.train_images, split.test_images]) * 16
    labels = np.concatenate([split.train_labels, split.test_labels])
    found = sorted(
        (int(label), image.tobytes())
        for label, image in zip(labels, sides.astype(np.uint8), strict=True)
    )
    given = sorted(
        (int(label), image.tobytes())
        for label, image in zip(digits.labels, digits.images, strict=True)
    )
    assert found == given


def few(count: int) -> data.Split:
    """Return so many images to train on."""
    split = data.split(data.load())
    kept = split.train_images[:count], split.train_labels[:count]
    return dataclasses.replace(split, train_images=kept[0], train_labels=kept[1])


def test_a_seed_fixes_every_number() -> None:
    first, again, other = (train.train(few(64), 2, seed) for seed in (5, 5, 6))
    assert train.losses(first).shape == (4,)
    np.testing.assert_array_equal(train.losses(first), train.losses(again))
    # The first loss depends on weights and images, of which no two are the same.
    assert (train.losses(first) != train.losses(other)).all()


def test_scores_and_loss_of_untrained_weights() -> None:
    network = tp.tree_map(tp.zeros_like, model.network(tp.random.key(0)))
    split = few(5)
    scores = network(split.train_images)
    assert scores.shape == (5, 10)
    assert scores.dtype == tp.float32
    # Weights of zero leave every class as likely as any other: -log(1/10).
    assert model.loss(split.train_labels, scores).item() == pytest.approx(np.log(10.0), rel=1e-6)


def test_one_epoch_of_training_reduces_the_loss() -> None:
    seen: list[tp.train.Epoch] = []
    split = data.split(data.load())
    fitted = train.train(split, 1, 0, [seen.append])
    losses = train.losses(fitted)
    assert losses.shape == (45,)  # 1442 images, 32 per step
    assert [epoch.row for epoch in seen] == fitted.history
    assert losses.mean() == pytest.approx(fitted.history[0]["loss"], rel=1e-6)
    assert losses[-5:].mean() < 0.5 * losses[:5].mean()
    read = train.read(fitted.model, split.test_images)
    assert read.shape == (355,)
    assert np.mean(read == split.test_labels) > 0.5  # guessing gives 0.1


def example_run(backend: str, losses: list[float], accuracy: float) -> report.Run:
    split = data.split(data.load())
    return report.Run(
        backend=backend,
        distribution=f"tensorplug-{backend}\n1.2.3",
        device="a device",
        seconds=1.25,
        losses=np.array(losses),
        predictions=split.test_labels.astype(np.int64),
        accuracy=accuracy,
    )


def test_the_table_shows_the_largest_difference() -> None:
    runs = [
        example_run("cpu", [2.0, 1.0, 0.5], 0.98),
        example_run("acme", [2.0, 0.75, 0.5625], 0.5),
    ]
    table = report.table(runs)
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["cpu", "acme"]
    assert cells[1] == ["tensorplug-cpu\n1.2.3", "tensorplug-acme\n1.2.3"]
    assert cells[4] == ["[green]98.00%[/]", "[red]50.00%[/]"]
    assert cells[5] == ["-", "2.5e-01"]


@pytest.mark.slow
@pytest.mark.parametrize("backends", [["cpu"], ["acme"], ["cpu", "acme"]])
def test_the_picture_is_a_png(tmp_path: Path, backends: list[str]) -> None:
    runs = [example_run(name, [2.0, 1.0 / len(name), 0.5], 0.98) for name in backends]
    file = tmp_path / "folder" / "digits.png"
    report.picture(runs, data.split(data.load()), file)
    content = file.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    assert width > 1000
    assert height > 500


@pytest.mark.parametrize(
    ("given", "environment", "names", "named"),
    [
        pytest.param(["opencl", "cpu"], "acme", ["cpu", "opencl"], True, id="options win"),
        pytest.param([], "opencl:1, cpu", ["cpu", "opencl:1"], True, id="environment"),
        pytest.param(["acme", "acme"], "", ["acme"], True, id="once each"),
    ],
)
def test_which_backends_are_trained_on(
    monkeypatch: pytest.MonkeyPatch,
    *,
    given: list[str],
    environment: str,
    names: list[str],
    named: bool,
) -> None:
    monkeypatch.setenv("TENSORPLUG_BACKEND", environment)
    assert train.wanted(given) == (names, named)


def test_without_a_name_every_installed_backend_is_trained_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TENSORPLUG_BACKEND", raising=False)
    names, named = train.wanted([])
    assert set(names) == {backend.name for backend in tp.backends()}
    assert not named


@pytest.mark.parametrize(
    ("error", "named", "fine"),
    [
        (tp.errors.BackendUnavailableError("no device here"), False, True),
        (tp.errors.BackendUnavailableError("no device here"), True, False),
        (tp.errors.PluginLoadError("no device here"), False, False),
    ],
)
def test_only_missing_hardware_that_nobody_asked_for_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, error: tp.errors.TensorplugError, *, named: bool, fine: bool
) -> None:
    def refuse(_name: str) -> None:
        raise error

    monkeypatch.setattr(tp, "use_backend", refuse)
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    assert train.usable(["ghost"], console, named=named) == ([], fine)
    assert "ghost is left out: no device here" in shown.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["--backend", "cpu"], 0, "Picture:", id="trained enough"),
        pytest.param(["--backend", "cpu", "--epochs", "1"], 1, "Under 97%: cpu", id="too short"),
        pytest.param(["--backend", "nowhere"], 1, "nowhere is left out", id="not installed"),
    ],
)
def test_the_exit_code_says_whether_all_is_well(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")  # main would set it for good
    file = tmp_path / "digits.png"
    assert train.main([*arguments, "--output", str(file)]) == code
    assert said in capsys.readouterr().out
    assert file.exists() == ("nowhere" not in arguments)

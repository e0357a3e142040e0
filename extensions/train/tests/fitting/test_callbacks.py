"""Early stopping, logs, curves and the search for a learning rate."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import tensorplug as tp

from . import problems

ROWS = [
    {"epoch": 1, "step": 5, "loss": 0.5, "seconds": 0.1, "confusion": [[1, 0], [0, 1]]},
    {"epoch": 2, "step": 10, "loss": 0.25, "validation_loss": 0.75, "seconds": 0.1},
]


def stops(stopping, values):
    """Return the first number of epochs after which to stop; None if there is none."""
    rows = [{"loss": value} for value in values]
    for count in range(1, len(rows) + 1):
        if stopping(tp.train.Epoch(rows[:count], None, None, None)):
            return count
    return None


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"patience": 2}, [3, 2, 1, 0], None),
        ({"patience": 2}, [3, 1, 2, 2, 0], 4),
        ({"patience": 2}, [3, 1, 1, 1], 4),
        ({"patience": 0}, [3, 4], 1),
        ({"patience": 1, "mode": "max"}, [1, 2, 3, 3], 4),
        ({"patience": 2, "least": 0.5}, [3, 2.75, 2.25, 2], None),
        ({"patience": 2, "least": 0.5}, [3, 2.9, 2.8], 3),
        ({"patience": 2}, [3, math.nan, math.nan, 1], 3),
    ],
)
def test_early_stopping(options, values, expected):
    assert stops(tp.train.EarlyStopping("loss", **options), values) == expected


def test_fit_stops_when_a_callback_says_so_and_calls_them_all():
    seen = []
    fitted = tp.train.fit(
        problems.weights(), problems.pairs(), problems.loss, tp.train.sgd(0.1), epochs=9,
        progress=False, callbacks=[lambda epoch: epoch.row["epoch"] == 2, seen.append],
    )  # fmt: skip
    assert [row["epoch"] for row in fitted.history] == [1, 2]
    assert [epoch.history for epoch in seen] == [fitted.history[:1], fitted.history]
    assert seen[-1].model["w"].tolist() == fitted.model["w"].tolist()
    assert seen[0].model["w"].tolist() != fitted.model["w"].tolist()  # kept, not overwritten


def test_csv(tmp_path):
    log = tp.train.CsvLog(tmp_path / "log.csv")
    for count in (1, 2):
        log(tp.train.Epoch(ROWS[:count], None, None, None))
    assert (tmp_path / "log.csv").read_text(encoding="utf-8") == (
        "epoch,step,loss,seconds,validation_loss\n1,5,0.5,0.1,\n2,10,0.25,0.1,0.75\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_tensorboard(tmp_path):
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    log = tp.train.TensorBoardLog(tmp_path)
    for count in (1, 2):
        log(tp.train.Epoch(ROWS[:count], None, None, None))
    (file,) = tmp_path.iterdir()
    found = {
        (event.step, value.tag): value.tensor.float_val[0]
        for event in loading.EventFileLoader(str(file)).Load()
        for value in event.summary.value
    }
    assert found == {
        (5, "loss"): 0.5,
        (5, "seconds"): np.float32(0.1),
        (10, "loss"): 0.25,
        (10, "validation_loss"): 0.75,
        (10, "seconds"): np.float32(0.1),
    }


@pytest.mark.parametrize(
    ("module", "call", "words"),
    [
        ("tensorboard.summary", lambda: tp.train.TensorBoardLog("x"), r"train\[tensorboard\]"),
        ("matplotlib.figure", lambda: tp.train.curves(ROWS), r"train\[plots\]"),
    ],
)
def test_what_is_not_installed(monkeypatch, module, call, words):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(tp.errors.PackageNotInstalledError, match=words):
        call()


def test_curves():
    pytest.importorskip("matplotlib")
    figure = tp.train.curves([row | {"accuracy": 0.5} for row in ROWS])
    assert figure.get_size_inches().tolist() >= [6.0, 4.0]
    loss, accuracy = figure.axes
    assert (loss.get_xlabel(), loss.get_ylabel()) == ("epoch", "loss")
    assert accuracy.get_ylabel() == "accuracy"
    drawn = {line.get_label(): line.get_xydata().tolist() for line in loss.lines}
    assert drawn == {"training": [[1, 0.5], [2, 0.25]], "validation": [[2, 0.75]]}
    with pytest.raises(tp.errors.ArgumentError, match="no rows"):
        tp.train.curves([])


def test_a_learning_rate():
    model = problems.weights()
    found = tp.train.find_learning_rate(
        model, problems.pairs(), problems.loss, tp.train.sgd, lowest=1e-5, highest=1e3, steps=60
    )
    rates = [row["learning_rate"] for row in found.rows]
    np.testing.assert_allclose(rates, np.geomspace(1e-5, 1e3, 60)[: len(rates)], rtol=1e-6)
    assert found.suggestion in rates
    # At the first rate almost nothing changes; the suggestion trains, 1000 times as much does not.
    assert found.rows[0]["loss"] == pytest.approx(
        problems.loss(model, problems.pairs()[0]).item(), rel=1e-5
    )
    after = [
        tp.train.fit(
            model, problems.pairs(), problems.loss, tp.train.sgd(rate), epochs=3, progress=False
        ).history[-1]["loss"]
        for rate in (found.suggestion, found.suggestion * 1e-3, found.suggestion * 1e3)
    ]
    assert after[0] == min(after)
    assert model["w"].tolist() == problems.FIRST.tolist()


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (problems.pairs, {"lowest": 2.0, "highest": 1.0}, "lowest < highest"),
        (problems.pairs, {"steps": 2}, "at least 3 steps"),
        (list, {}, "no batches"),
        (lambda: problems.pairs()[:1], {"steps": 3, "lowest": 1e5, "highest": 1e6}, "never falls"),
    ],
)
def test_no_learning_rate(data, options, words):
    with pytest.raises(tp.errors.ArgumentError, match=words):
        tp.train.find_learning_rate(
            problems.weights(), data(), problems.loss, tp.train.sgd, **options
        )

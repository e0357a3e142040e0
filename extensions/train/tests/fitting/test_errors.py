"""What ``fit`` refuses, and in which words."""

from __future__ import annotations

import pytest

import tensorplug as tp

from . import problems

A = tp.errors.ArgumentError


def changed(batches):
    return [*batches[:2], (*batches[2], tp.ones(1))]


def stray(batches):
    x, labels = batches[0]
    return [(x, labels * 0 + 7)]


def unchecked(model, batch):
    """Return a loss that takes a label outside of the classes for a row of zeros."""
    x, labels = batch
    scores = problems.scores(model, x)
    found = tp.losses.softmax_cross_entropy(tp.one_hot(labels, 2), scores)
    return found, tp.train.Outcome(None, labels, scores, labels.shape[0])


def vector(model, batch):
    return batch[0] @ model["w"]


def none(batches):
    return []


def three(*_):
    return 3


def three_epochs(batches):
    return tp.train.batches((problems.X, problems.CLASSES), 5, epochs=3)


COUNTED = {"objective": problems.counted, "metrics": {"accuracy": tp.train.metrics.Accuracy()}}
SUPERVISED = tp.train.supervised(tp.losses.mean_squared_error)


# What is changed in a call, where data are made of batches; the error and words of its message.
CALLS = {
    "no scalar": (
        {"objective": vector},
        tp.errors.ShapeError,
        r"scalar loss, got float32\[5,2\]",
    ),
    "no loss": ({"objective": three}, A, "must return a loss"),
    "no function": ({"objective": "mse"}, A, "must be a function"),
    "empty": ({"data": none}, A, "data has no batches"),
    "empty validation": ({"validation": none}, A, "validation has no batches"),
    "no iterable": ({"data": three}, A, "data must be an iterable"),
    "iterator": ({"data": iter, "epochs": 2}, A, "list_iterator.*one epoch"),
    "validation": ({"validation": iter, "epochs": 2}, A, "validation is an iterator"),
    "structure": ({"data": changed}, A, r"batch is tuple of \[0, 1, 2\], but that of the first"),
    "epochs": ({"epochs": 0}, A, "positive integer, got 0"),
    "on_nan": ({"on_nan": "rise"}, A, "on_nan must be"),
    "misspelt": (
        COUNTED | {"callbacks": [tp.train.EarlyStopping("acuracy")]},
        A,
        "no 'acuracy'.*Did you mean 'accuracy'",
    ),
    "no validation": (
        {"callbacks": [tp.train.EarlyStopping("validation_loss")]},
        A,
        "There is no validation",
    ),
    "metrics": ({"metrics": ["accuracy"]}, A, "must be a dict of metrics by name"),
    "no outcome": (COUNTED | {"objective": problems.loss}, A, "returns an Outcome"),
    "label": (
        COUNTED | {"data": stray, "objective": unchecked},
        A,
        "label 7 at place 0 of all labels",
    ),
    "pair": (
        {"objective": SUPERVISED, "data": lambda b: [b[0][0]]},
        A,
        r"pair \(x, labels\), got float32\[5,3\]",
    ),
    "resume": ({"resume": True}, A, "needs checkpoints"),
    "own epochs": ({"data": three_epochs}, A, "epochs=3 of its own"),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused(name):
    change, kind, words = CALLS[name]
    options = {"data": list, "objective": problems.loss, "progress": False} | change
    for given in options.keys() & {"data", "validation"}:
        options[given] = options[given](problems.pairs())
    with pytest.raises(kind, match=words):
        tp.train.fit(problems.weights(), optimizer=tp.train.sgd(0.1), **options)


def test_an_error_in_a_step_says_where(capsys):
    def broken(model, batch):
        if batch[0].shape[0] == 2:
            raise RuntimeError("broken")
        return problems.loss(model, batch)

    with pytest.raises(RuntimeError, match="broken") as caught:
        tp.train.fit(
            problems.weights(), problems.pairs(), broken, tp.train.sgd(0.1), progress=False
        )
    assert "fit: in epoch 1, after 4 batches" in caught.value.__notes__

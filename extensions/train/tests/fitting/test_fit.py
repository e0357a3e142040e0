"""``fit`` computes what the loop does that one would write by hand."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

from . import problems

EPOCHS, RATE = 2, 0.5


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def by_hand():
    """Return the weights after training, and the mean loss of each epoch, in float64."""
    w, losses = problems.FIRST.astype(np.float64), []
    for _ in range(EPOCHS):
        total = 0.0
        for at in range(0, problems.ROWS, problems.SIZE):
            x = problems.X[at : at + problems.SIZE].astype(np.float64)
            true = np.eye(2)[problems.CLASSES[at : at + problems.SIZE]]
            guessed = softmax(x @ w)
            total -= np.log((guessed * true).sum(axis=1)).sum()
            w -= RATE * x.T @ (guessed - true) / len(x)
        losses.append(total / problems.ROWS)
    return w, losses


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("compiled", [True, False])
def test_steps_and_exact_means_over_uneven_batches(compiled):
    w, losses = by_hand()
    fitted = tp.train.fit(
        problems.weights(),
        problems.pairs(),
        problems.counted,
        tp.train.sgd(RATE),
        epochs=EPOCHS,
        validation=problems.pairs(),
        metrics={"accuracy": tp.train.metrics.Accuracy()},
        progress=False,
        compile=compiled,
    )
    assert fitted.model["w"].shape == w.shape
    np.testing.assert_allclose(fitted.model["w"].numpy(), w, rtol=2e-5)
    np.testing.assert_allclose([row["loss"] for row in fitted.history], losses, rtol=1e-5)
    after = problems.X.astype(np.float64) @ w
    last = fitted.history[-1]
    assert list(last) == [
        *("epoch", "step", "loss", "accuracy"),
        *("validation_loss", "validation_accuracy", "learning_rate", "seconds"),
    ]
    assert (last["epoch"], last["step"]) == (2, 10)
    true = np.take_along_axis(softmax(after), problems.CLASSES[:, None], axis=1)
    assert last["validation_loss"] == pytest.approx(-np.log(true).mean(), rel=1e-4)
    assert last["validation_accuracy"] == pytest.approx(
        (after.argmax(axis=1) == problems.CLASSES).mean()
    )


def test_a_loss_alone_is_an_objective_and_batches_count_the_same():
    batches = problems.pairs()
    fitted = tp.train.fit(
        problems.weights(), batches, problems.loss, tp.train.sgd(0.0), progress=False
    )
    each = [problems.loss(problems.weights(), batch).item() for batch in batches]
    assert fitted.history[0]["loss"] == pytest.approx(np.mean(each), rel=1e-6)


def test_batches_of_the_loader_and_a_generator():
    data = tp.train.batches((problems.X, problems.CLASSES), 5, key=tp.random.key(1))
    objective = tp.train.supervised(tp.losses.sparse_softmax_cross_entropy)
    model = tp.train.layers.Linear(tp.asarray(problems.FIRST), tp.zeros(2))
    fits = [
        tp.train.fit(model, given, objective, tp.train.adam(0.1), progress=False)
        for given in (data, (batch for batch in data))
    ]
    assert fits[0].history[0]["step"] == 5
    assert problems.timeless(fits[0].history) == problems.timeless(fits[1].history)
    assert model.weight.tolist() == problems.FIRST.tolist()  # what was given is as before


def test_noise_has_a_key_for_each_step_and_state_is_returned():
    objective = tp.train.supervised(tp.losses.sparse_softmax_cross_entropy)

    def fitted(seed, batches):
        return tp.train.fit(
            problems.noisy(),
            batches,
            objective,
            tp.train.sgd(0.0),
            key=tp.random.key(seed),
            state=dict(problems.NOISY_STATE),
            validation=batches,
            progress=False,
        )

    one = problems.pairs()[:1]
    first, again, other = fitted(0, one), fitted(0, one), fitted(1, one)
    assert problems.timeless(first.history) == problems.timeless(again.history)
    assert first.history[0]["loss"] != other.history[0]["loss"]
    assert first.history[0]["validation_loss"] == other.history[0]["validation_loss"]
    several = fitted(0, one * 4)
    assert int(several.state["calls"]) == 4
    assert several.history[0]["loss"] != pytest.approx(first.history[0]["loss"], rel=1e-6)


@pytest.mark.parametrize(
    "around", [None, lambda o: tp.train.accumulate(o, 1), tp.train.LossScaled]
)
def test_the_learning_rate_is_in_the_history(around):
    optimizer = tp.train.sgd(tp.train.cosine_decay(0.5, 4))
    optimizer = tp.train.chain(lambda g: g, optimizer) if around is None else around(optimizer)
    history = tp.train.fit(
        problems.weights(),
        problems.pairs()[:2],
        problems.loss,
        optimizer,
        epochs=2,
        progress=False,
    ).history
    assert [row["learning_rate"] for row in history] == pytest.approx([0.25, 0.0], abs=1e-7)


def test_weights_of_examples_reach_the_mean_and_the_metrics():
    counts = np.array([1, 1, 0, 0], np.float32)
    batch = tp.asarray(problems.X[:4]), tp.asarray(problems.CLASSES[:4]), tp.asarray(counts)

    def masked(model, batch):
        x, labels, counts = batch
        found = tp.losses.sparse_softmax_cross_entropy(labels, x @ model["w"], counts)
        return found, tp.train.Outcome(None, labels, x @ model["w"], counts)

    fitted = tp.train.fit(
        problems.weights(),
        [batch, batch],
        masked,
        tp.train.sgd(0.0),
        metrics={"accuracy": tp.train.metrics.Accuracy()},
        progress=False,
    )
    right = (problems.X[:2] @ problems.FIRST).argmax(axis=1) == problems.CLASSES[:2]
    assert fitted.history[0]["accuracy"] == pytest.approx(right.mean())


def test_loss_scaling_gives_the_same_losses():
    def losses(optimizer):
        with tp.autocast(enabled=False):
            return tp.train.fit(
                problems.weights(), problems.pairs(), problems.loss, optimizer,
                epochs=2, progress=False,
            ).history  # fmt: skip

    scaled = losses(tp.train.LossScaled(tp.train.adam(0.1), tp.train.LossScale(64.0)))
    assert problems.timeless(scaled) == problems.timeless(losses(tp.train.adam(0.1)))


class Searching:
    """An optimizer that asks for the loss elsewhere, as a line search does."""

    def __init__(self):
        self.inner = tp.train.sgd(0.5)

    def init(self, params):
        return {"inner": self.inner.init(params), "known": tp.zeros(()), "there": tp.zeros(())}

    def step(self, gradients, state, params, *, value=None, value_fn=None):
        params, inner = self.inner.step(gradients, state["inner"], params)
        return params, {"inner": inner, "known": value, "there": value_fn(params)}


def test_an_optimizer_may_ask_for_the_loss_elsewhere():
    batch = problems.pairs()[0]
    fitted = tp.train.fit(problems.weights(), [batch], problems.loss, Searching(), progress=False)
    assert fitted.optimizer_state["known"].item() == fitted.history[0]["loss"]
    assert fitted.optimizer_state["there"].item() == pytest.approx(
        problems.loss(fitted.model, batch).item(), rel=1e-6
    )


def test_autocast_reaches_the_steps():
    def products(model, batch):
        assert (batch[0] @ model["w"]).dtype.name == "bfloat16"
        return problems.loss(model, batch)

    with tp.autocast("bfloat16"):
        fitted = tp.train.fit(
            problems.weights(), problems.pairs(), products, tp.train.adam(0.1), progress=False
        )
    assert fitted.model["w"].dtype is tp.float32


def nan_after(count):
    batches = problems.pairs()
    x, labels = batches[count % len(batches)]
    return [*batches[:count], (x * tp.nan, labels), *batches[count:]]


def test_nan_is_an_error_that_names_epoch_and_step():
    with pytest.raises(tp.errors.NonFiniteError, match=r"NaN in epoch 1 at step 4"):
        tp.train.fit(
            problems.weights(), nan_after(3), problems.loss, tp.train.sgd(0.1), progress=False
        )


@pytest.mark.parametrize(("on_nan", "rows"), [("stop", 0), ("ignore", 2)])
def test_nan_may_stop_or_be_ignored(on_nan, rows):
    fitted = tp.train.fit(
        problems.weights(), nan_after(3), problems.loss, tp.train.sgd(0.1),
        epochs=2, progress=False, on_nan=on_nan,
    )  # fmt: skip
    assert len(fitted.history) == rows


def test_the_bar_shows_epochs_and_losses(capsys):
    tp.train.fit(problems.weights(), problems.pairs(), problems.loss, tp.train.sgd(0.1), epochs=2)
    shown = capsys.readouterr().err
    assert "epoch 2/2: 100%" in shown
    assert "5/5" in shown
    assert "loss=0." in shown

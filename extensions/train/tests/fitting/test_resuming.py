"""A run that is interrupted and resumed is bitwise a run that never stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import tensorplug as tp

from . import problems


@pytest.fixture(autouse=True)
def ctrl_c():
    """Let SIGINT raise, as by default; a run in the background begins with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupted:
    """Batches that send Ctrl-C to this process while one of them is made."""

    def __init__(self, batches, at, times=1):
        self.batches, self.at, self.times, self.given = batches, at, times, 0

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for batch in self.batches:
            self.given += 1
            if self.given == self.at:
                for _ in range(self.times):
                    signal.raise_signal(signal.SIGINT)
            yield batch


def run(data, folder=None, **options):
    return tp.train.fit(
        problems.noisy(),
        data,
        tp.train.supervised(tp.losses.sparse_softmax_cross_entropy),
        tp.train.adam(0.1),
        key=tp.random.key(0),
        state=dict(problems.NOISY_STATE),
        validation=problems.pairs(),
        metrics={"accuracy": tp.train.metrics.Accuracy()},
        checkpoints=folder and tp.train.Checkpoints(folder),
        progress=False,
        **options,
    )


def leaves(fitted):
    return [str(leaf) for leaf in map(tp.Tensor.tolist, values(fitted[:3]))]


def values(tree):
    found = []
    tp.tree_map(lambda leaf: found.append(tp.asarray(leaf)), tree)
    return found


# In the first batch, in the middle of an epoch, in its last batch, in the first of another.
@pytest.mark.parametrize("at", [1, 8, 10, 11])
def test_resumed_in_the_middle(tmp_path, at):
    whole = run(problems.pairs(), epochs=3)
    stopped = run(Interrupted(problems.pairs(), at), tmp_path, epochs=3)
    assert len(stopped.history) == (at - 1) // 5
    assert int(stopped.state["calls"]) == at
    assert tp.train.Checkpoints(tmp_path).latest().name == f"step-{at:09}"
    resumed = run(problems.pairs(), tmp_path, epochs=3, resume=True)
    assert problems.timeless(resumed.history) == problems.timeless(whole.history)
    assert leaves(resumed) == leaves(whole)


def test_a_run_may_get_more_epochs(tmp_path):
    whole = run(problems.pairs(), epochs=3)
    run(problems.pairs(), tmp_path, epochs=1, resume=True)  # nothing is there yet
    resumed = run(problems.pairs(), tmp_path, epochs=3, resume=True)
    assert problems.timeless(resumed.history) == problems.timeless(whole.history)
    done = run(problems.pairs(), tmp_path, epochs=3, resume=True)  # nothing is left to do
    assert done.history == resumed.history
    assert leaves(done) == leaves(whole)


def test_a_run_that_a_callback_stopped_is_at_its_end(tmp_path):
    def at_the_second(epoch):
        return epoch.row["epoch"] == 2

    stopped = run(problems.pairs(), tmp_path, epochs=3, callbacks=[at_the_second])
    resumed = run(Interrupted([], 1), tmp_path, epochs=9, resume=True)
    assert resumed.history == stopped.history
    assert len(resumed.history) == 2
    assert leaves(resumed) == leaves(stopped)
    assert len(tp.train.Checkpoints(tmp_path).all()) == 2  # the last one is there once


def test_a_loader_goes_on_where_it_was(tmp_path):
    def data():
        return tp.train.batches((problems.X, problems.CLASSES), 5, key=tp.random.key(7))

    class Stopping:
        def __init__(self):
            self.inner = data()

        def epoch(self, number, first=0):
            yield next(self.inner.epoch(number, first))
            signal.raise_signal(signal.SIGINT)
            yield from self.inner.epoch(number, first + 1)

        def __iter__(self):
            return self.epoch(0)

    whole = run(data(), epochs=2)
    run(Stopping(), tmp_path, epochs=2)
    resumed = run(data(), tmp_path, epochs=2, resume=True)
    assert problems.timeless(resumed.history) == problems.timeless(whole.history)


def test_a_second_interrupt_raises_and_the_handler_is_as_before():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(Interrupted(problems.pairs(), 3, times=2))
    assert signal.getsignal(signal.SIGINT) is before
    assert len(run(Interrupted(problems.pairs(), 3)).history) == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_an_earlier_run_is_not_overwritten(tmp_path):
    run(problems.pairs(), tmp_path)
    with pytest.raises(tp.errors.ArgumentError, match="checkpoints of an earlier run"):
        run(problems.pairs(), tmp_path)


SCRIPT = """
import os, signal, sys
import problems
import tensorplug as tp

def killed(model, batch):
    return problems.loss(model, batch)

def kill(epoch):
    if epoch.row["epoch"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)

tp.train.fit(
    problems.weights(), problems.pairs(), killed, tp.train.adam(0.1), epochs=3, progress=False,
    checkpoints=tp.train.Checkpoints(sys.argv[1]), callbacks=[kill],
)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_process_leaves_complete_checkpoints(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    names = [path.name for path in tp.train.Checkpoints(tmp_path).all()]
    assert names == ["step-000000005", "step-000000010"]
    found = tp.train.Checkpoints(tmp_path)
    losses = [row["loss"] for row in found.notes()["notes"]["history"]]
    assert len(losses) == 2
    assert all(after < before for before, after in pairwise(losses))

"""Clusters of processes: what is right after a worker, or the scheduler, has been killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import tensorplug as tp
import tensorplug_dask
from tensorplug.testing import isolated_engine
from tensorplug_dask import settings

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow
EXAMPLES = str(Path(__file__).parents[1] / "examples")
BLOCKS = 6


@pytest.fixture
def examples(monkeypatch):
    """Make modules of the examples importable, here and in workers that start later."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import clusters
    import logistic
    import outofcore
    import pca

    yield {"clusters": clusters, "outofcore": outofcore, "pca": pca, "logistic": logistic}
    for name in ("clusters", "outofcore", "pca", "logistic"):
        del sys.modules[name]


@pytest.fixture
def cluster(examples, tmp_path):
    with (
        dask.config.set({"temporary-directory": str(tmp_path)}),
        examples["clusters"].local_cluster(2) as started,
    ):
        yield started


def kill_all(cluster):
    """Kill the processes; the nannies start others."""
    before = set(cluster.scheduler.workers)
    for nanny in cluster.workers.values():
        os.kill(nanny.pid, signal.SIGKILL)
    return before


def components_by_numpy(table):
    variances, directions = np.linalg.eigh(np.cov(table, rowvar=False))
    return variances[::-1][:3], directions[:, ::-1][:, :3]


def weights_by_numpy(table, steps, rate):
    """Descend along the gradient of the mean of -log(probability of the label)."""
    x, y = table[:, :-1], table[:, -1]
    weights = np.zeros(x.shape[1])
    for _ in range(steps):
        weights -= rate * x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / len(x)
    return weights


def test_principal_components(examples, cluster):
    pca, rows = examples["pca"], 50_000
    made = examples["outofcore"].Table(pca.block, pca.FEATURES)
    assert len(made.sizes(rows)) == BLOCKS + 1
    with examples["clusters"].one_worker_killed(cluster, after=BLOCKS) as killer:
        table = tensorplug_dask.from_dask(made.lazy(rows))
        variances, directions = (found.numpy() for found in pca.components(table, 3))
    assert killer.address not in cluster.scheduler.workers
    right = components_by_numpy(made.whole(rows).astype(float))
    np.testing.assert_allclose(variances, right[0], rtol=1e-4)
    np.testing.assert_allclose(np.abs(np.sum(directions * right[1], axis=0)), 1, rtol=1e-4)


def test_training(examples, cluster):
    logistic, rows = examples["logistic"], 50_000
    made = examples["outofcore"].Table(logistic.block, logistic.FEATURES + 1)
    with examples["clusters"].one_worker_killed(cluster, after=3 * BLOCKS) as killer:
        table = tensorplug_dask.from_dask(made.lazy(rows))
        weights, losses = logistic.fit(table[:, :-1], table[:, -1])
        found = weights.numpy()
    assert killer.address not in cluster.scheduler.workers
    assert losses[0] == pytest.approx(np.log(2))
    right = weights_by_numpy(made.whole(rows).astype(float), logistic.STEPS, logistic.RATE)
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-6)


def table_and_tensor():
    values = np.random.default_rng(5).uniform(-1, 1, (8 * BLOCKS, 3)).astype(np.float32)
    return values, tensorplug_dask.from_dask(da.from_array(values, (8, -1)))


def test_what_was_kept_is_computed_again(cluster):
    """What ``persist`` kept in several blocks is lost with the workers, and made again."""
    values, x = table_and_tensor()
    kept = x * 2
    tensorplug_dask.persist(kept)
    assert len(distributed.futures_of(tensorplug_dask.to_dask(kept))) == BLOCKS
    gone = kill_all(cluster)
    np.testing.assert_array_equal(kept.numpy(), values * 2)
    np.testing.assert_allclose(tp.sum(kept, axis=0).numpy(), 2 * values.sum(0), rtol=1e-5)
    assert not gone & set(cluster.scheduler.workers)


def test_small_results_outlive_the_cluster(cluster):
    """They are in this process, so no step of a training depends on those before it."""
    values, x = table_and_tensor()
    weights = tp.zeros(3)
    for _ in range(3):
        weights = weights + tp.mean(x, axis=0)
        tp.synchronize()
        assert not distributed.futures_of(tensorplug_dask.to_dask(weights))
    cluster.close()
    np.testing.assert_allclose(weights.numpy(), 3 * values.mean(0), rtol=1e-5)


def test_a_block_that_kills_every_worker(cluster):
    """Dask gives up after some workers, here two; the cluster goes on."""
    cluster.scheduler.allowed_failures = 1
    values, x = table_and_tensor()

    def kill(block):  # nested, so that it travels to the workers, which cannot import this module
        os.kill(os.getpid(), signal.SIGKILL)
        return block

    lethal = da.from_array(values, (8, -1)).map_blocks(kill, meta=values[:0])
    with pytest.raises(tp.errors.DeviceLostError, match="workers died while running it"):
        tp.sum(tensorplug_dask.from_dask(lethal)).numpy()
    assert float(tp.sum(x)) == pytest.approx(values.sum(dtype=float), abs=1e-4)


@pytest.fixture
def scheduler(tmp_path):
    """Start a scheduler with a worker in another process; return it, and the address."""
    program = (
        "from distributed import LocalCluster\n"
        "started = LocalCluster(1, processes=False, protocol='tcp://', dashboard_address=':0')\n"
        "print(started.scheduler_address, flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_scheduler_that_is_killed(monkeypatch, scheduler):
    """Every read tells so, also the second one; what this process holds can still be read."""
    process, address = scheduler
    monkeypatch.setenv(settings.SCHEDULER, address)
    monkeypatch.setattr("tensorplug_dask.schedulers._SECONDS", 2)  # to connect again
    with isolated_engine() as engine:
        tp.set_backend("dask")
        backend = engine.open("dask").backend
        values, x = table_and_tensor()
        kept, total = x * 2, tp.sum(x)
        assert backend.explain_loss() == ""
        tensorplug_dask.persist(kept)
        assert float(total) == pytest.approx(values.sum(dtype=float), abs=1e-4)
        process.kill()
        process.wait()
        for lost in (kept, tp.sum(kept), x):
            with pytest.raises(tp.errors.DeviceLostError):
                lost.numpy()
        assert float(total) == pytest.approx(values.sum(dtype=float), abs=1e-4)
        assert backend.explain_loss() == f"the scheduler at {address} is gone"
        monkeypatch.setenv(settings.SCHEDULER, "threads")
        with pytest.warns(tp.errors.BackendWarning, match="could not be read back"):
            tp.set_backend("dask")
        assert float(total) == pytest.approx(values.sum(dtype=float), abs=1e-4)
        assert tp.sum(table_and_tensor()[1]).item() == pytest.approx(total.item(), abs=1e-4)

"""What executes: settings, threads, clients of distributed, and errors."""

from __future__ import annotations

import sys

import dask
import numpy as np
import pytest

import tensorplug as tp
import tensorplug_dask
from tensorplug.testing import isolated_engine
from tensorplug_dask import settings

ADDRESS = "tcp://127.0.0.1:1"  # where nothing listens


def check_it_computes():
    x = tensorplug_dask.from_dask(dask.array.ones((8, 3), chunks=(2, 3), dtype=np.float32))
    assert tp.sum(tp.exp(x) * 0 + x, axis=0).tolist() == [8, 8, 8]
    large = x * 2
    tensorplug_dask.persist(large)
    assert large.numpy().tolist() == [[2, 2, 2]] * 8
    assert float(tp.asarray(2.0) + 1) == 3


def test_defaults():
    found = settings.read({})
    assert found == settings.Settings(128 * 2**20, 100, None)
    with dask.config.set({"array.chunk-size": "3KiB"}):
        assert settings.read({}).chunk_bytes == 3072


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (settings.CHUNK_BYTES, "many", "must be a size such as"),
        (settings.CHUNK_BYTES, "0", "must be a size such as"),
        (settings.MAX_LAYERS, "0", "whole number above 0"),
        (settings.MAX_LAYERS, "-3", "whole number above 0"),
        (settings.SCHEDULER, "localhost:8786", "or an address such as tcp://"),
    ],
)
def test_invalid_setting(monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    refused = pytest.raises(tp.errors.SettingsError, match=f"{name}='{value}'.*{message}")
    with refused, isolated_engine("dask"):
        pass


@pytest.mark.parametrize("name", ["threads", "synchronous"])
def test_a_scheduler_of_this_process(monkeypatch, name):
    monkeypatch.setenv(settings.SCHEDULER, name)
    with isolated_engine("dask"):
        assert name in tp.describe_device()
        check_it_computes()


def test_no_scheduler_answers(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("tensorplug_dask.schedulers._SECONDS", 0.5)
    monkeypatch.setenv(settings.SCHEDULER, ADDRESS)
    message = f"no scheduler answers at .*{ADDRESS}"
    refused = pytest.raises(tp.errors.BackendUnavailableError, match=message)
    with refused, isolated_engine("dask"):
        pass


def test_distributed_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setenv(settings.SCHEDULER, ADDRESS)
    message = r"pip install .tensorplug-dask\[distributed\]"
    refused = pytest.raises(tp.errors.BackendUnavailableError, match=message)
    with refused, isolated_engine("dask"):
        pass


@pytest.fixture
def cluster(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        dashboard_address=":0",  # a port that is free
        local_directory=str(tmp_path),
    ) as started:
        yield started


def test_a_local_cluster(monkeypatch, cluster):
    monkeypatch.setenv(settings.SCHEDULER, cluster.scheduler_address)
    with isolated_engine("dask"):
        assert cluster.scheduler_address in tp.describe_device()
        before = cluster.scheduler.transition_counter
        check_it_computes()
        assert cluster.scheduler.transition_counter > before
        faulty = tp.gather(tp.ones(3), tp.asarray([7]))
        with pytest.raises(tp.errors.OutOfRangeError, match="index 7"):
            faulty.numpy()


def test_the_active_client_is_used(cluster):
    with cluster.get_client():
        before = cluster.scheduler.transition_counter
        check_it_computes()
        assert cluster.scheduler.transition_counter > before
